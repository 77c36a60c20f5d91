"""Compiled operations: writes, descriptions, responses, paging, servers, security, and fingerprints."""

from typing import Any

import pytest

from gloveport.sources.openapi.operation import Paging
from tests.sources.openapi.compiled import Compiled, openapi, operation, returning

TEXTS = {"type": "array", "items": {"type": "string"}}


def content(media_type: str, schema: Any = None) -> dict[str, Any]:
    return {"description": "", "content": {media_type: {"schema": schema or {}}}}


def test_the_method_separates_reads_from_writes() -> None:
    methods = ("get", "head", "options", "trace", "post", "put", "patch", "delete")
    compiled = Compiled(openapi({"/x": {method: {"operationId": method} for method in methods}}))
    assert {head.address.partition(".")[2]: head.writes for head in compiled.heads.values()} == {
        method: method in ("post", "put", "patch", "delete") for method in methods
    }


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("X-HTTP-Method-Override", "header"),
        ("x-http-method", "header"),
        ("X-Method-Override", "header"),
        ("_method", "query"),
    ],
)
def test_a_read_that_can_ask_for_another_method_is_a_write(name: str, place: str) -> None:
    parameter = {"name": name, "in": place, "schema": {"type": "string"}}
    for document in (
        operation(parameters=[parameter]),
        openapi({"/x": {"parameters": [parameter], "get": {"operationId": "get"}}}),
        openapi({f"/x?{name}=DELETE": {"get": {"operationId": "get"}}}),
        operation(requestBody={"content": {"application/json": {"schema": {"properties": {name: {"type": "string"}}}}}}),
    ):
        (head,) = Compiled(document).heads.values()
        assert head.writes
    (head,) = Compiled(operation(parameters=[{**parameter, "name": f"{name}s"}])).heads.values()
    assert not head.writes


def test_descriptions_are_plain_text_without_hidden_characters() -> None:
    document = operation(summary="List <b>pets</b>", description="<p>All of them &amp; more.&#x202e;</p>", deprecated=True)
    (head,) = Compiled(document).heads.values()
    assert head.description == "List pets\n\nAll of them & more." and head.deprecated


def test_a_summary_that_the_description_repeats_appears_once() -> None:
    (head,) = Compiled(operation(summary="List pets.", description="List pets by name.")).heads.values()
    assert head.description == "List pets by name."
    (head,) = Compiled(operation()).heads.values()
    assert head.description == "GET /things"


@pytest.mark.parametrize(
    ("responses", "expected", "produces"),
    [
        ({"200": content("application/json", {"type": "string"}), "404": content("text/x")}, {"type": "string"}, ("application/json",)),
        ({"2XX": content("application/json", {"type": "string"})}, {"type": "string"}, ("application/json",)),
        ({"default": content("application/json", {"type": "string"})}, {"type": "string"}, ("application/json",)),
        ({"204": {"description": ""}}, {"type": "null"}, ()),
        ({"200": content("image/png")}, {"type": "string", "format": "binary"}, ("image/png",)),
        ({"200": content("text/csv")}, {"type": "string"}, ("text/csv",)),
        ({"200": content("application/json", {"type": "string"}), "204": {}}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ("application/json",)),
        ({}, None, ()),
    ],
)  # fmt: skip
def test_the_output_schema_is_that_of_success(responses: Any, expected: Any, produces: tuple[str, ...]) -> None:
    made, _, output = Compiled(operation(responses=responses)).only()
    assert output == expected and made.produces == produces


def paged(schema: Any, *names: str, **rest: Any) -> Paging | None:
    parameters = [{"name": name, "in": "query", "schema": {"type": "integer"} | rest} for name in names]
    compiled = Compiled(operation(parameters=parameters, responses=returning(schema)))
    (head,) = compiled.heads.values()
    found = compiled.only()[0].paging
    assert head.pages == (found is not None)
    return found


def test_paging_is_detected_from_the_definition() -> None:
    def around(name: str, **rest: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {name: TEXTS, **rest}}

    text = {"type": "string"}
    things = {"type": "array", "items": {"type": "object", "properties": {"id": text}}}
    assert paged(TEXTS, "page", "per_page") == Paging(number="page")
    assert paged(TEXTS, "page", default=0) == Paging(number="page", first=0)
    assert paged(around("files", nextPageToken=text), "pageToken") == Paging(
        cursor="pageToken", at=("nextPageToken",), items=("files",)
    )
    assert paged(around("value", **{"@odata.nextLink": text}), "$top") == Paging(at=("@odata.nextLink",), items=("value",))
    assert paged(around("data"), "offset", "limit") == Paging(offset="offset", items=("data",))
    listed = {"type": "object", "properties": {"data": things, "has_more": {"type": "boolean"}}}
    assert paged(listed, "starting_after") == Paging(cursor="starting_after", at=("data", "-1", "id"), items=("data",))
    flag = {"type": "boolean"}
    for place, rest in (("last_id", {"last_id": text}), ("next", {"next": text})):
        openai = around("data", has_more=flag, **rest)
        assert paged(openai, "after", "limit") == Paging(cursor="after", at=(place,), items=("data",))
    assert paged(listed, "after") == Paging(cursor="after", at=("data", "-1", "id"), items=("data",))
    usage = around("data", has_more=flag, next_page=text)
    assert paged(usage, "page", type="string") == Paging(cursor="page", at=("next_page",), items=("data",))
    assert paged(usage, "page") == Paging(number="page", items=("data",))
    slack = around("channels", response_metadata={"type": "object", "properties": {"next_cursor": text}})
    assert paged(slack, "cursor") == Paging(cursor="cursor", at=("response_metadata", "next_cursor"), items=("channels",))


def test_paging_is_not_guessed() -> None:
    assert paged(TEXTS, "q") is None
    assert paged({"type": "object"}, "page") is None
    assert paged({"type": "object", "properties": {"a": TEXTS}}, "cursor") is None
    things = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}
    assert paged({"type": "object", "properties": {"data": things}}, "after") is None


def test_a_link_header_means_pages() -> None:
    response = content("application/json", TEXTS) | {"headers": {"Link": {}}}
    (head,) = Compiled(operation(responses={"200": response})).heads.values()
    assert head.pages
    (head,) = Compiled(operation("post", responses={"200": response})).heads.values()
    assert not head.pages


def test_servers_keep_their_variables_and_say_what_those_may_be() -> None:
    url = "https://{region}.example.com/{v}"
    declared = {"region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": 2}}
    paths = {"/a": {"get": {"operationId": "a.one"}, "servers": [{"url": "https://other.example.com"}]}, "/b": {"get": {"operationId": "b.one", "servers": [{"url": "/below"}]}}}  # fmt: skip
    compiled = Compiled(openapi(paths, servers=[{"url": url, "variables": declared}]))
    assert compiled.facts["servers"] == [url]
    assert compiled.facts["variables"] == {url: {"region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": "2"}}}
    assert compiled.definitions["a.one"].operation.servers == ("https://other.example.com",)
    assert compiled.definitions["b.one"].operation.servers == ("https://api.example.com/below",)


@pytest.mark.parametrize(
    ("base", "url", "expected"),
    [
        ("https://api.example.com/v1/openapi.json", "/", ["https://api.example.com/"]),
        ("https://api.example.com/v1/openapi.json", "./x", ["https://api.example.com/v1/x"]),
        ("https://api.example.com/v1/openapi.json", "//evil.example.com/x", ["https://evil.example.com/x"]),
        ("https://api.example.com/v1/openapi.json", "file:///etc", []),
        ("https://api.example.com/v1/openapi.json", "{scheme}://{host}", ["{scheme}://{host}"]),
        ("/tmp", "/v1", []),
        ("/tmp", "https://api.example.com", ["https://api.example.com"]),
    ],
)
def test_relative_servers_are_those_of_the_document(base: str, url: str, expected: list[str]) -> None:
    compiled = Compiled(openapi({"/a": {"get": {}}}, servers=[{"url": url}]) | {"openapi": "3.0.3"}, base)
    assert compiled.facts["servers"] == expected


def test_security_schemes_are_slots_and_operations_name_their_alternatives() -> None:
    schemes = {
        "api-key": {"type": "apiKey", "in": "query", "name": "key", "description": "Your\u200b key"},
        "basic": {"type": "http", "scheme": "Basic"},
        "token": {"type": "http", "scheme": "bearer"},
        "login": {"type": "oauth2", "flows": {"implicit": {"scopes": {"read": "", "write": ""}}}},
        "id": {"type": "openIdConnect", "openIdConnectUrl": "https://x"},
        "tls": {"type": "mutualTLS"},
    }
    paths = {
        "/a": {"get": {"operationId": "a.one"}},
        "/b": {"get": {"operationId": "b.one", "security": []}},
        "/c": {"get": {"operationId": "c.one", "security": [{"api-key": [], "token": []}, {}, {"tls": []}]}},
    }
    compiled = Compiled(openapi(paths, components={"securitySchemes": schemes}, security=[{"login": ["read"]}]))
    slots = {slot["name"]: slot for slot in compiled.facts["slots"]}
    assert {name: slot["kind"] for name, slot in slots.items()} == {
        "api_key": "query", "basic": "basic", "token": "bearer", "login": "oauth2", "id": "openid",
    }  # fmt: skip
    assert slots["api_key"]["parameter"] == "key" and slots["api_key"]["description"] == "Your key"
    assert slots["login"]["scopes"] == ["read", "write"]
    found = {address: made.operation.security for address, made in compiled.definitions.items()}
    assert found == {"a.one": (("login",),), "b.one": (), "c.one": (("api_key", "token"), ())}
    assert any("tls" in warning for warning in compiled.warnings)


def document_with(**changes: Any) -> dict[str, Any]:
    deep = {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}}
    given = {"summary": "One", "path": "/x", "deepest": {"type": "string"}, "title": "Things"} | changes
    schemas = {"A": deep, "B": {"properties": {"a": {"$ref": "#/components/schemas/A"}, "c": {"$ref": "#/components/schemas/C"}}}, "C": given["deepest"]}  # fmt: skip
    node = {"operationId": "x.one", "summary": given["summary"], "responses": returning({"$ref": "#/components/schemas/A"})}
    other = {"operationId": "x.other"}
    paths = {given["path"]: {"get": node}, "/other": {"get": other}}
    return openapi(paths, components={"schemas": schemas}, info={"title": given["title"]})


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"title": "Other things"}, True),
        ({"summary": "Two"}, False),
        ({"path": "/y"}, False),
        ({"deepest": {"type": "integer"}}, False),
    ],
)
def test_a_fingerprint_changes_with_what_a_tool_shows_or_sends(change: dict[str, Any], same: bool) -> None:
    before, after = Compiled(document_with()).heads, Compiled(document_with(**change)).heads
    assert (before["x.one"].fingerprint == after["x.one"].fingerprint) is same
    assert before["x.other"].fingerprint == after["x.other"].fingerprint


def test_fingerprints_do_not_depend_on_the_order_of_the_document() -> None:
    document = document_with()
    turned = document | {"paths": dict(reversed(document["paths"].items()))}
    turned["components"] = {"schemas": dict(reversed(document["components"]["schemas"].items()))}
    assert Compiled(document).heads == Compiled(turned).heads


def test_the_descriptions_of_all_parameters_are_kept_for_search() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "string", "description": "How large"}, "any": True}}
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {}, "description": "Which one"}]
    body = {"content": {"application/json": {"schema": schema}}}
    (head,) = Compiled(operation("put", "/things/{id}", parameters=parameters, requestBody=body)).heads.values()
    assert head.parameters == ("id", "size", "any")
    assert head.described == "Which one\nHow large"
