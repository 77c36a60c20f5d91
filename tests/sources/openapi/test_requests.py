"""Requests from operations and arguments: where each argument goes, and that it goes nowhere else."""

from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gloveport.policy.egress import Request
from gloveport.sources.openapi.call.request import RequestBuilder
from gloveport.sources.openapi.operation import MediaContent, Operation, Parameter, RequestBody

BASE = "https://api.example.com/v1"
JSON = MediaContent("application/json", "json")


def build(operation: Operation, args: dict[str, Any], base: str = BASE, fixed: dict[str, str] | None = None) -> Request:
    return RequestBuilder(operation, base, fixed or {}).build(args)


def headers(request: Request) -> dict[str, str]:
    assert len({name.lower() for name, _ in request.headers}) == len(request.headers)
    return {name.lower(): value for name, value in request.headers}


def path_parameter(name: str = "id", style: str = "simple") -> Parameter:
    return Parameter(name, name, "path", required=True, style=style, explode=False)


def test_each_argument_goes_to_its_place_under_its_name_on_the_wire() -> None:
    operation = Operation(
        "POST",
        "/shops/{shop-id}/orders",
        parameters=(
            Parameter("shop-id", "shop_id", "path", style="simple", explode=False),
            Parameter("dry.run", "dry_run", "query"),
            Parameter("X-Trace", "x_trace", "header", style="simple", explode=False),
            Parameter("seen", "seen", "cookie"),
        ),
        body=RequestBody((JSON,)),
        produces=("application/json", "text/csv"),
    )
    request = build(operation, {"shop_id": 7, "dry_run": True, "x_trace": ["a", "b"], "seen": "x y", "total": 5})
    assert request.url == f"{BASE}/shops/7/orders?dry.run=true"
    assert request.body == b'{"total":5}'
    assert headers(request) == {
        "accept": "application/json, text/csv, */*;q=0.1",
        "content-type": "application/json",
        "cookie": "seen=x%20y",
        "x-trace": "a,b",
    }


def test_grouped_arguments_are_taken_from_their_groups() -> None:
    parameters = (path_parameter(), Parameter("id", "id", "query"), Parameter("id", "id", "header", style="simple"))
    operation = Operation("PUT", "/{id}", parameters=parameters, body=RequestBody((JSON,)), grouped=True)
    request = build(operation, {"path": {"id": 1}, "query": {"id": 2}, "header": {"id": 3}, "body": {"id": 4}})
    assert (request.url, headers(request)["id"], request.body) == (f"{BASE}/1?id=2", "3", b'{"id":4}')


@pytest.mark.parametrize(
    ("body", "args", "sent"),
    [
        (RequestBody((JSON,)), {}, None),
        (RequestBody((JSON,), required=True), {}, b"{}"),
        (RequestBody((JSON,), argument="body"), {}, None),
        (RequestBody((JSON,), argument="body"), {"body": None}, b"null"),
        (RequestBody((JSON,), argument="body"), {"body": [1, "é"]}, '[1,"é"]'.encode()),
    ],
)
def test_a_body_is_sent_when_there_is_something_to_send(
    body: RequestBody, args: dict[str, Any], sent: bytes | None
) -> None:
    request = build(Operation("POST", "/x", body=body), args)
    assert request.body == sent
    assert ("content-type" in headers(request)) == (sent is not None)


def test_content_type_chooses_among_several_bodies() -> None:
    body = RequestBody((JSON, MediaContent("application/x-www-form-urlencoded", "form")))
    operation = Operation("POST", "/x", body=body)
    assert build(operation, {"a": 1}).body == b'{"a":1}'
    request = build(operation, {"a": 1, "content_type": "application/x-www-form-urlencoded"})
    assert (request.body, headers(request)["content-type"]) == (b"a=1", "application/x-www-form-urlencoded")


def test_content_parameters_are_sent_as_their_media_type() -> None:
    parameters = (Parameter("filter", "filter", "query", content="application/json"),)
    request = build(Operation("GET", "/x", parameters=parameters), {"filter": {"a": [1, "&"]}})
    assert unquote(request.url) == f'{BASE}/x?filter={{"a":[1,"&"]}}'
    assert "&" not in request.url


def test_parameters_without_a_value_are_left_out() -> None:
    parameters = tuple(Parameter(name, name, "query") for name in "abcd")
    request = build(Operation("GET", "/x", parameters=parameters), {"a": None, "b": ""})
    assert request.url == f"{BASE}/x?b="


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),)), {"b": 1}),
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),)), {"body": 1}),
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),)), {"a": []}),
        (Operation("POST", "/x", body=RequestBody((JSON,), "body")), {"a": 1}),
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),), grouped=True), {"query": {"b": 1}}),
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),), grouped=True), {"header": {"a": 1}}),
        (Operation("GET", "/x", parameters=(Parameter("a", "a", "query"),), grouped=True), {"body": 1}),
        (Operation("GET", "/x", parameters=(path_parameter(),)), {"id": 1}),
        (Operation("GET", "/x?at=({id},{y})", parameters=(path_parameter(), Parameter("y", "y", "query"))), {"id": 1, "y": 2}),
        (Operation("POST", "/x", body=RequestBody((JSON, MediaContent("text/csv", "text")))), {"content_type": "text/csv"}),
        (Operation("POST", "/x", body=RequestBody((JSON, MediaContent("text/csv", "text")), "body")), {"body": 1, "content_type": "a/b"}),
        (Operation("POST", "/x", body=RequestBody((MediaContent("application/x-www-form-urlencoded", "form"),))), {"a": []}),
        (Operation("POST", "/x", body=RequestBody((MediaContent("multipart/form-data", "multipart"),))), {"a": []}),
    ],
)  # fmt: skip
def test_an_argument_that_no_part_of_the_request_would_hold_fails_the_call(
    operation: Operation, args: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"no argument|can't be sent|no place|needs a body"):
        build(operation, args)


def test_a_path_keeps_what_the_definition_wrote_into_its_query_and_drops_a_fragment() -> None:
    operation = Operation("GET", "/a b/{id}?kind=big&id={id}#Action=List", parameters=(path_parameter(),))
    assert build(operation, {"id": "1"}).url == f"{BASE}/a%20b/1?kind=big&id=1"


def test_parameters_in_the_query_of_a_path_are_sent_there() -> None:
    parameters = (path_parameter("lat"), path_parameter("x y"), Parameter("unit", "unit", "query"))
    operation = Operation("GET", "/alerts?lat={lat}&at=({x y},0)&unit={unit}&key={key}", parameters=parameters)
    args = {"lat": "1&b=2#c", "x y": 7}
    assert build(operation, args).url == f"{BASE}/alerts?lat=1%26b%3D2%23c&at=(7,0)"
    assert build(operation, args | {"unit": "m"}).url == f"{BASE}/alerts?lat=1%26b%3D2%23c&at=(7,0)&unit=m"
    with pytest.raises(ValueError, match="`lat` is sent as a credential"):
        RequestBuilder(operation, BASE, {}).build(args, {("query", "lat")})


def test_a_name_in_the_query_of_a_path_can_not_ask_for_another_method() -> None:
    operation = Operation("GET", "/x?{key}=DELETE", parameters=(path_parameter("key"),))
    assert build(operation, {"key": "filter"}).url == f"{BASE}/x?filter=DELETE"
    with pytest.raises(ValueError, match="another method"):
        build(operation, {"key": "_method"})


def test_a_missing_path_parameter_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="needs `id`"):
        build(Operation("GET", "/x/{id}", parameters=(path_parameter(),)), {"id": None})


HOSTILE = [
    "..",
    ".",
    "../admin",
    "a/../../b",
    "%2e%2e",
    "%2e%2e%2fadmin",
    "..%2f",
    "%252e%252e",
    "..\\x",
    "..;/x",
    "..;",
    "",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_path_parameter_that_could_leave_its_place_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="path parameter"):
        build(Operation("GET", "/x/{id}", parameters=(path_parameter(),)), {"id": value})


def test_a_label_of_dots_is_refused_too() -> None:
    for value in ("", "."):
        with pytest.raises(ValueError, match="path parameter"):
            build(Operation("GET", "/x/{id}/y", parameters=(path_parameter(style="label"),)), {"id": value})


traversal = st.text(alphabet=st.sampled_from(list("./%2eEfF5cC\\?#;:@&=+ab\r\n\t\0 é…[]{}|")), min_size=1, max_size=12)


@given(value=st.one_of(traversal, st.text(min_size=1)), style=st.sampled_from(["simple", "label", "matrix"]))
@example(value="//evil.example", style="simple")
@example(value="@evil.example", style="simple")
@example(value="?admin=1", style="simple")
def test_no_path_parameter_changes_origin_base_or_the_steps_of_the_path(value: str, style: str) -> None:
    operation = Operation("GET", "/users/{id}/posts", parameters=(path_parameter(style=style),))
    try:
        url = build(operation, {"id": value}).url
    except ValueError:
        return
    parts, parsed = urlsplit(url), httpx2.URL(url)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("https", "api.example.com", "", "")
    assert url.isascii() and url.isprintable() and " " not in url
    before, users, segment, posts = parts.path.removeprefix("/v1/").partition("users/")[0], *parts.path.split("/")[2:]
    assert (before, users, posts) == ("", "users", "posts")
    assert unquote(segment).endswith(value)
    assert (parsed.host, parsed.raw_path.decode()) == ("api.example.com", parts.path)


@given(name=st.text(min_size=1), value=st.text())
def test_no_query_value_adds_a_parameter(name: str, value: str) -> None:
    operation = Operation("GET", "/x", parameters=(Parameter(name, "it", "query"), Parameter("z", "z", "query")))
    url = build(operation, {"it": value, "z": 1}).url
    assert url.startswith(f"{BASE}/x?") and url.endswith("&z=1")
    assert url.count("&") == 1 and "#" not in url and url.isascii() and url.isprintable()


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\x7f", "a\x85b", "a\u2028b", "\ud800"])
def test_a_header_takes_nothing_that_could_end_it(value: str) -> None:
    operation = Operation("GET", "/x", parameters=(Parameter("X-It", "it", "header", style="simple"),))
    with pytest.raises(ValueError, match="control characters"):
        build(operation, {"it": value})


def test_a_definition_can_not_smuggle_a_header_in_a_name() -> None:
    operation = Operation("GET", "/x", parameters=(Parameter("X\r\nHost: evil", "it", "header", style="simple"),))
    with pytest.raises(ValueError, match="name"):
        build(operation, {"it": "1"})


@pytest.mark.parametrize("name", ["Host", "authorization", "Content-Length", "Transfer-Encoding", "COOKIE", "Connection"])
def test_arguments_can_not_set_headers_of_the_connection_or_of_credentials(name: str) -> None:
    operation = Operation("GET", "/x", parameters=(Parameter(name, "it", "header", style="simple"),))
    with pytest.raises(ValueError, match="no argument can set this header"):
        build(operation, {"it": "evil"})


def test_arguments_can_not_set_what_the_configuration_sets() -> None:
    parameters = (Parameter("X-Tenant", "tenant", "header", style="simple"), Parameter("theme", "theme", "cookie"))
    operation = Operation("GET", "/x", parameters=parameters)
    request = build(operation, {}, fixed={"x-tenant": "ours", "Accept": "text/csv"})
    assert headers(request) == {"x-tenant": "ours", "accept": "text/csv"}
    for args in ({"tenant": "other"}, {"theme": "dark"}):
        with pytest.raises(ValueError, match="the configuration of the source sets the header"):
            build(operation, args, fixed={"x-tenant": "ours", "Cookie": "sid=1"})


def test_arguments_do_not_take_the_place_of_a_credential() -> None:
    parameters = (
        Parameter("api_key", "a", "query"),
        Parameter("X-Key", "b", "header", style="simple"),
        Parameter("sid", "c", "cookie"),
        Parameter("filter", "filter", "query"),
    )
    builder = RequestBuilder(Operation("GET", "/x", parameters=parameters), BASE, {})
    taken = {("query", "api_key"), ("query", "a b"), ("header", "x-key"), ("cookie", "sid")}
    assert builder.build({"filter": {"ok": 1}}, taken).url == f"{BASE}/x?ok=1"
    for args in ({"a": "mine"}, {"b": "mine"}, {"c": "mine"}, {"filter": {"API_KEY": "mine"}}, {"filter": {"A b": "mine"}}):
        with pytest.raises(ValueError, match="is sent as a credential"):
            builder.build(args, taken)


def test_a_lone_surrogate_is_refused() -> None:
    for place in ("path", "query", "cookie"):
        parameter = Parameter("id", "id", place, style="simple" if place == "path" else "form")
        with pytest.raises(ValueError, match="`id`"):
            build(Operation("GET", "/{id}" if place == "path" else "/", parameters=(parameter,)), {"id": "\ud800"})


@pytest.mark.parametrize(
    "name", ["_method", "_METHOD", "X-HTTP-Method-Override", " _method", ".method", "_method[]", "_method\0", "_HttpMethod"]
)
def test_a_free_form_argument_can_not_bring_another_method(name: str) -> None:
    free = Operation("GET", "/x", parameters=(Parameter("filter", "filter", "query"),))
    assert build(free, {"filter": {"a": "b"}}).url == f"{BASE}/x?a=b"
    with pytest.raises(ValueError, match="another method"):
        build(free, {"filter": {name: "DELETE"}})
    reserved = Operation("GET", "/x", parameters=(Parameter("q", "q", "query", allow_reserved=True),))
    assert f"&{name}" not in build(reserved, {"q": f"a&{name}=DELETE"}).url
    declared = Operation("GET", "/x", parameters=(Parameter(name, "m", "query"),))  # it counts as one that writes
    assert build(declared, {"m": "DELETE"}).url == f"{BASE}/x?{quote(name, safe='')}=DELETE"
