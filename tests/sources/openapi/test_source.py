"""An OpenAPI source: its tools, and calls down to the socket."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
import orjson
import pytest

from gloveport.errors import ToolError
from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.openapi.operation import FieldEncoding, MediaContent, Operation, Parameter, RequestBody
from tests.sources.openapi.compiled import openapi
from tests.sources.openapi.support import Kit, Seen, answer, tool_of

pytestmark = pytest.mark.integration

JSON = MediaContent("application/json", "json")


async def test_a_call_with_every_kind_of_argument_arrives_intact(kit: Kit) -> None:
    operation = Operation(
        "PUT",
        "/shops/{shop}/items/{path}",
        parameters=(
            Parameter("shop", "shop", "path", style="matrix", explode=False),
            Parameter("path", "path", "path", style="simple", explode=False),
            Parameter("tag", "tag", "query"),
            Parameter("filter", "filter", "query", style="deepObject"),
            Parameter("X-Ids", "ids", "header", style="simple", explode=False),
            Parameter("theme", "theme", "cookie"),
        ),
        body=RequestBody((JSON,)),
        produces=("application/json",),
    )
    args = {
        "shop": "é/1",
        "path": "src/a b.ts",
        "tag": ["x&y", "z"],
        "filter": {"a": {"b": 1}},
        "ids": [1, 2],
        "theme": "dark",
    }
    await kit.call(operation, {**args, "price": 9.5}, headers={"X-Fixed": "yes"})
    seen = kit.server.last
    assert seen.path == "/shops/;shop=%C3%A9%2F1/items/src%2Fa%20b.ts"
    assert parse_qsl(seen.query) == [("tag", "x&y"), ("tag", "z"), ("filter[a][b]", "1")]
    assert [seen.header(name) for name in ("x-ids", "cookie", "x-fixed", "content-type")] == [
        "1,2",
        "theme=dark",
        "yes",
        "application/json",
    ]
    assert seen.header("host") == kit.server.url.removeprefix("http://")
    assert orjson.loads(seen.body) == {"price": 9.5}


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (
            MediaContent("multipart/form-data", "multipart", {"m": FieldEncoding("application/json")}, ("f",)),
            {"f": b"\0\r\n", "m": {"a": 1}},
        ),
        (MediaContent("application/octet-stream", "bytes"), b"\0" * 100_000),
        (MediaContent("application/x-www-form-urlencoded", "form"), {"a": "é=&"}),
        (MediaContent("text/plain", "text"), ""),
    ],
)
async def test_bodies_of_every_kind_arrive_whole(kit: Kit, content: MediaContent, value: Any) -> None:
    await kit.call(Operation("POST", "/x", body=RequestBody((content,), "body")), {"body": value})
    seen = kit.server.last
    assert seen.header("content-length") == str(len(seen.body))
    assert (seen.header("content-type") or "").startswith(content.media_type)
    if isinstance(value, bytes):
        assert seen.body == value
    if content.kind == "form":
        assert dict(parse_qsl(seen.body.decode())) == value


async def test_a_header_beyond_ascii_is_sent_in_utf_8(kit: Kit) -> None:
    operation = Operation("GET", "/x", parameters=(Parameter("X-Name", "name", "header", style="simple"),))
    await kit.call(operation, {"name": "Zoë ✓"})
    assert (kit.server.last.header("x-name") or "").encode("latin-1").decode() == "Zoë ✓"


async def test_arguments_that_can_not_be_sent_are_refused_before_the_wire(kit: Kit) -> None:
    operation = Operation("GET", "/x/{id}", parameters=(Parameter("id", "id", "path", style="simple"),))
    for value in ("..", "", "a/../b", float("nan"), "\ud800"):
        with pytest.raises(ToolError) as caught:
            await kit.call(operation, {"id": value})
        assert (caught.value.code, caught.value.tool) == ("bad-arguments", "api.it")
        assert "`id`" in str(caught.value) or "segment" in str(caught.value)
    assert kit.server.seen == []


async def test_a_header_that_the_configuration_sets_is_no_argument(kit: Kit, tmp_path: Path) -> None:
    def parameter(name: str, place: str) -> dict[str, Any]:
        return {"name": name, "in": place, "required": True, "schema": {"type": "string"}}

    flat = {"parameters": [parameter("X-Tenant", "header"), parameter("q", "query")]}
    grouped = {"parameters": [parameter("X-Tenant", "header"), parameter("q", "query"), parameter("q", "header")]}
    document = tmp_path / "api.json"
    document.write_bytes(msgspec.json.encode(openapi({"/flat": {"get": flat}, "/grouped": {"get": grouped}})))
    async with kit.opened(document, headers={"x-tenant": "ours"}) as source:
        by_name = {tool.address: tool for tool in source.tools()}
        tool = by_name["api.flat.get"]
        assert tool.parameters == tuple(tool.input_schema["properties"]) == ("q",) and tool.input_schema["required"] == [
            "q"
        ]
        await source.call(tool, {"q": "a"})
        assert (kit.server.last.header("x-tenant"), kit.server.last.query) == ("ours", "q=a")
        tool = by_name["api.grouped.get"]
        assert list(tool.input_schema["properties"]["header"]["properties"]) == ["q"]
        await source.call(tool, {"query": {"q": "a"}, "header": {"q": "b"}})
        assert (kit.server.last.header("x-tenant"), kit.server.last.header("q")) == ("ours", "b")


async def test_a_server_of_the_definition_is_called_with_its_variables(kit: Kit) -> None:
    template = f"{kit.server.url}/{{stage}}"
    facts = {"variables": {template: {"stage": {"default": "v1"}}}}
    operation = Operation("GET", "/x", servers=(template, "http://127.0.0.1:1"))
    await kit.call(operation, facts=facts, base_url=None)
    await kit.call(operation, facts=facts, base_url=None, variables={"stage": "v2"})
    assert [seen.path for seen in kit.server.seen] == ["/v1/x", "/v2/x"]


async def test_an_operation_without_a_server_of_its_own_goes_to_that_of_the_document(kit: Kit) -> None:
    await kit.call(Operation("GET", "/x"), facts={"servers": [f"{kit.server.url}/v3"]}, base_url=None)
    assert kit.server.last.path == "/v3/x"


async def test_an_operation_without_any_server_says_how_to_give_one(kit: Kit) -> None:
    with pytest.raises(ToolError) as caught:
        await kit.call(Operation("GET", "/x"), base_url=None)
    assert caught.value.code == "source-failed" and caught.value.setting and "base_url" in caught.value.setting


async def test_arguments_never_choose_the_server(kit: Kit) -> None:
    template = f"{kit.server.url}/{{stage}}"
    facts = {"variables": {template: {"stage": {"default": "v1"}}}}
    operation = Operation("GET", "/x", servers=(template,), parameters=(Parameter("stage", "stage", "query"),))
    await kit.call(operation, {"stage": "evil"}, facts=facts, base_url=None)
    assert kit.server.last.target == "/v1/x?stage=evil"


async def test_a_redirect_to_another_origin_is_not_followed(kit: Kit) -> None:
    kit.server.reply = answer(b"", 302, None, location="http://localhost:1/x")
    with pytest.raises(ToolError) as caught:
        await kit.call(Operation("GET", "/x"))
    assert caught.value.code == "egress-denied"


async def test_a_private_server_needs_a_grant(kit: Kit) -> None:
    with pytest.raises(ToolError) as caught:
        await kit.call(Operation("GET", "/x"), allow_private=False)
    assert caught.value.code == "egress-denied" and kit.server.seen == []


async def test_a_service_that_does_not_answer_is_given_up(kit: Kit) -> None:
    hung: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    kit.server.reply = lambda _: hung
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(kit.call(Operation("GET", "/x"), timeout_seconds=0.3), 30)
    assert caught.value.code == "source-timeout"
    hung.cancel()


async def test_calls_made_at_once_do_not_mix(kit: Kit) -> None:
    kit.server.reply = lambda seen: answer(orjson.dumps(unquote(seen.query)))
    source = kit.source({"it": Operation("GET", "/x", parameters=(Parameter("n", "n", "query"),))})
    answers = await asyncio.gather(*(source.call(tool_of(source), {"n": n}) for n in range(40)))
    assert answers == [f"n={n}" for n in range(40)]


async def test_a_call_that_is_cancelled_lets_go_of_its_connection(kit: Kit) -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def wait(_: Seen) -> bytes:
        arrived.set()
        await left.wait()
        return answer()

    kit.server.reply = wait
    source = kit.source({"it": Operation("GET", "/x")})
    task = asyncio.create_task(source.call(tool_of(source), {}))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left.set()
    kit.server.reply = answer(b"1")
    assert await source.call(tool_of(source), {}) == 1


def test_include_and_exclude_select_operations_and_an_unmatched_pattern_is_a_warning(kit: Kit) -> None:
    get = Operation("GET", "/x")
    operations = dict.fromkeys(["issues.list", "issues.create", "pulls.list", "admin.drop"], get)
    source = kit.source(operations, include=("issues.*", "pulls.*", "gone.*"), exclude=("*.create",))
    assert [tool.address for tool in source.tools()] == ["api.issues.list", "api.pulls.list"]
    assert source.warnings == ("the source api: `gone.*` in include matches no operation",)


def test_a_fingerprint_changes_with_where_requests_go_and_what_goes_with_them(kit: Kit) -> None:
    def of(slots: tuple[CredentialSlot, ...] = (), servers: tuple[str, ...] = ("https://a.example",), **config: Any) -> str:
        source = kit.source({"it": Operation("GET", "/x")}, slots, {"servers": servers}, **{"base_url": None, **config})
        assert list(source.fingerprints) == ["api.it"]
        return source.fingerprints["api.it"]

    assert of() == of()
    assert (
        len(
            {
                of(),
                of(servers=("https://b.example",)),
                of((CredentialSlot("key", "bearer"),)),
                of((CredentialSlot("key", "query", "key"),)),
            }
        )
        == 4
    )
    assert of(base_url="https://c.example") == of(servers=("https://b.example",), base_url="https://c.example")


async def test_schemas_are_read_when_accessed_and_closing_twice_is_harmless(kit: Kit) -> None:
    source = kit.source({"it": Operation("POST", "/x")})
    tool = tool_of(source)
    assert (dict(tool.input_schema), tool.kind, tool.writes, source.title) == (
        {"type": "object"},
        "openapi",
        True,
        "An API",
    )
    await source.close()
    await source.close()
