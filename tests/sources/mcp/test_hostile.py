"""Hostile servers, and a hostile compiler: the host does not stop, and no tool is another than the server listed."""

import gc
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gloveport.errors import SourceError, TooComplexError, ToolError
from gloveport.sources.context import Answer
from gloveport.sources.mcp.compile.task import compile_tool_list
from gloveport.sources.mcp.messages import KeptResults
from gloveport.sources.mcp.tool_rows import check_rows
from tests.sources.heartbeat import assert_no_stall
from tests.sources.in_process_tasks import InProcessTasks
from tests.sources.mcp.support import call, eventually, library, opened, paths, raw, tool

ECHO = {"name": "echo", "description": "Say it back.", "inputSchema": {"type": "object"}}
ROW = {"row": "tool", "name": "echo", "identifier": "echo", "description": "", "takes": {"type": "object"}, "gives": None}

FORGED: dict[str, list[dict[str, Any]]] = {
    "a tool that is not listed": [{**ROW, "name": "other"}],
    "a tool that is there twice": [ROW, {**ROW, "identifier": "echo2"}],
    "two tools of one address": [ROW, {**ROW, "name": "add"}],
    "an address of two parts": [{**ROW, "identifier": "echo.x"}],
    "an address that is taken": [{**ROW, "identifier": "resources"}],
    "an address that objects have": [{**ROW, "identifier": "__proto__"}],
    "an address of marks": [{**ROW, "identifier": "a" + "\u0301\u0316" * 100_000}],
    "a long address": [{**ROW, "identifier": "a" * 1_000_000}],
    "a long description": [{**ROW, "description": "x" * 10_000}],
    "no input schema": [{**ROW, "takes": None}],
    "a schema that is a list": [{**ROW, "takes": []}],
    "a schema that is too large": [{**ROW, "takes": {"x": "y" * 400_000}}],
    "a claim that it does not write": [{**ROW, "writes": False}],
    "a row of an unknown kind": [{"row": "code"}],
}


@pytest.mark.parametrize("what", FORGED)
def test_what_no_compiler_returns_is_refused(what: str) -> None:
    batch = msgspec.json.encode(FORGED[what])
    with pytest.raises(SourceError, match="the compiled list of tools can't be used"):
        check_rows("it", [batch], {"echo": True, "add": False}, trust_annotations=True)


@pytest.mark.parametrize("trusted", [True, False])
def test_the_host_decides_what_writes_from_what_the_server_listed(trusted: bool) -> None:
    rows = [ROW, {**ROW, "name": "add", "identifier": "add"}]
    found, _ = check_rows("it", [msgspec.json.encode(rows)], {"echo": True, "add": False}, trust_annotations=trusted)
    assert {address: each.tool.writes for address, each in found.items()} == {"it.echo": not trusted, "it.add": True}


def test_tools_that_nobody_uses_leave_few_objects_for_the_garbage_collector() -> None:
    properties = {f"p{number}": {"type": "array", "items": {"type": "object", "properties": {}}} for number in range(100)}
    rows = [{**ROW, "name": f"t{at}", "identifier": f"t{at}", "takes": {"properties": properties}} for at in range(50)]
    batch, listed = msgspec.json.encode(rows), {f"t{at}": False for at in range(50)}
    gc.collect()
    before = len(gc.get_objects())
    found, _ = check_rows("it", [batch], listed, trust_annotations=False)
    gc.collect()
    assert len(gc.get_objects()) - before < 10 * len(rows)
    tool = found["it.t7"].tool
    assert tool.parameters == tuple(properties)
    assert tool.input_schema == {"properties": properties}
    assert len(gc.get_objects()) - before > 200


def test_bounds_of_an_older_draft_come_through() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}}
    batches = list(compile_tool_list([msgspec.json.encode([{**ECHO, "inputSchema": schema}])], lambda _: None))
    found, _ = check_rows("it", batches, {"echo": False}, trust_annotations=False)
    assert found["it.echo"].tool.input_schema["properties"]["a"]["exclusiveMinimum"] == 0


class ExhaustedTasks:
    """A task process that was killed."""

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        raise TooComplexError("reading the definition takes too much CPU time")


@pytest.mark.integration
async def test_a_list_that_takes_too_long_is_refused_with_the_name_of_its_source() -> None:
    with pytest.raises(SourceError, match="the tools of the source it can't be listed: reading") as caught:
        async with opened(raw("plain"), tasks=ExhaustedTasks()):
            pass
    assert caught.value.code == "definition-too-complex"


@pytest.mark.integration
async def test_an_unchanged_list_is_compiled_once() -> None:
    tasks = InProcessTasks()
    async with opened(raw("restless"), tasks=tasks) as source:
        before = source.tools()
        source._list_changed()
        await eventually(lambda: not source._stale and source._refresher is not None)
        assert await call(source, "echo") == "echo"
        assert source.tools() == before
    assert len(tasks.ran) == 1


@pytest.mark.integration
async def test_a_changed_list_is_compiled_again() -> None:
    tasks = InProcessTasks()
    async with library("stdio", "2025-11-25", tasks=tasks) as source:
        await call(source, "grow")
        await eventually(lambda: "grown" in paths(source))
    assert len(tasks.ran) == 2


@pytest.mark.integration
@pytest.mark.parametrize(
    "behaviour",
    ["10,000 tools", "names of marks", "long names", "long texts", "alternatives", "a large schema", "headers", "hints"],
)
async def test_a_hostile_list_does_not_stop_the_host(behaviour: str) -> None:
    async with assert_no_stall():
        async with opened(raw(behaviour)) as source:
            assert source.tools()
            assert all(len(each.address) < 300 and len(each.description) <= 2000 for each in source.tools())
            assert all(each.writes for each in source.tools())
            assert await source.call(source.tools()[-1], {}) == "echo"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("way", "refused"),
    [
        ("blocks", True),
        ("wrong blocks", True),
        ("keys", True),
        ("nested", True),
        ("more escapes", True),
        ("structured", False),
        ("text", False),
        ("escapes", False),
        ("base64", False),
        ("notices", False),
    ],
)
async def test_a_hostile_reply_does_not_stop_the_host(way: str, refused: bool) -> None:
    async with opened(raw("hostile replies")) as source:
        async with assert_no_stall():
            if refused:
                with pytest.raises(ToolError) as caught:
                    await call(source, "echo", way=way)
                assert caught.value.code == "reply-too-large"
            else:
                assert await call(source, "echo", way=way)
        assert tool(source, "echo")
        assert await call(source, "echo", way="nothing") == "done"


async def test_a_server_can_not_refer_to_the_result_of_another_call() -> None:
    kept = KeptResults()
    reply = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {"secret": "x" * 40_000}}}
    short = msgspec.json.decode(await kept.shortened(msgspec.json.encode(reply)))
    assert len(f"{short}") < 200
    for forged in ({"gloveport/result": "1"}, {"gloveport/result": 7}, {"gloveport/result": ""}):
        assert kept.claim(dict(forged)) == forged
    assert kept.claim(short["result"]) == reply["result"]
    assert kept.claim(short["result"]) == short["result"]  # once
