"""The MCP server, with clients of both revisions of the protocol, in memory and over HTTP."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification

from gloveport import Gloveport
from gloveport.host import source_opener
from gloveport.sources.opening import open_source
from gloveport.surfaces.mcp import server
from tests.conftest import TOOLS
from tests.surfaces.agents import WAYS, Lingering, client_of

pytestmark = [pytest.mark.parametrize(("way", "mode"), WAYS), pytest.mark.integration]


def fresh(**options: Any) -> Gloveport:
    return Gloveport(tools=TOOLS, spare=1, **options)


async def test_three_tools_are_listed_with_schemas_of_what_they_take_and_give(way: str, mode: str) -> None:
    async with client_of(fresh(), way, mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == ["search", "describe", "execute"]
        assert "- local (6 tools): add, echo, fail, crash, get_weather, …" in str(listed["search"].description)
        for tool in listed.values():
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema
        assert listed["search"].annotations
        assert listed["search"].annotations.read_only_hint is True
        assert listed["execute"].annotations
        assert listed["execute"].annotations.read_only_hint is False


async def test_a_client_finds_describes_and_runs(way: str, mode: str) -> None:
    async with client_of(fresh(), way, mode) as client:
        found = await client.call_tool("search", {"query": "weather"})
        assert found.structured_content["tools"][0]["path"] == "get_weather"
        described = await client.call_tool("describe", {"paths": ["get_weather"]})
        assert "city: string" in described.content[0].text
        ran = await client.call_tool("execute", {"code": "[(await tools.get_weather({city: 'Oslo'})).temp_f, null]"})
        assert (ran.is_error, ran.structured_content["value"]) == (False, [50, None])
        assert ran.content[0].text == "[50,null]"


async def test_mistakes_come_back_as_errors_that_say_where_and_what_to_do(way: str, mode: str) -> None:
    async with client_of(fresh(check_types=True), way, mode) as client:
        wrong = await client.call_tool("execute", {"code": "const city = 5;\nawait tools.get_weather({city});"})
        assert wrong.is_error
        text = wrong.content[0].text
        assert "type-error: " in text
        assert "line 2, column 26" in text
        assert "\n  |                          ^^^^" in text
        assert "hint: " in text
        assert wrong.structured_content["error"]["line"] == 2
        refused = await client.call_tool("execute", {})
        assert (refused.is_error, refused.structured_content) == (True, None)
        assert refused.content[0].text.startswith("bad-option: `code` is missing\nhint: ")
        blank = await client.call_tool("execute", {"code": " \n"})
        assert (blank.is_error, blank.content[0].text.partition("\n")[0]) == (True, "bad-option: `code` is blank")
        raised = await client.call_tool("execute", {"code": "{}['ttl']", "language": "python"})
        assert raised.content[0].text.startswith("program-failed: KeyError: 'ttl'\n")
        with pytest.raises(MCPError, match="there is no tool 'approve'"):
            await client.call_tool("approve", {})


async def test_emitted_values_become_content_of_their_own_type(way: str, mode: str) -> None:
    code = """
        emit({type: "image", mimeType: "image/png", data: new Uint8Array([137, 80])});
        emit({type: "audio", mimeType: "audio/wav", data: "UklGRg=="});
        emit(new Uint8Array([1, 2, 3]));
        emit({rows: 3}); emit("done"); emit({type: "image", mimeType: "text/html", data: "x"});
        return 1"""
    async with client_of(fresh(), way, mode) as client:
        result, image, audio, blob, rest = (await client.call_tool("execute", {"code": code})).content
        assert result.text == "1"
        assert (image.type, image.mime_type, base64.b64decode(image.data)) == ("image", "image/png", b"\x89P")
        assert (audio.type, audio.mime_type, base64.b64decode(audio.data)) == ("audio", "audio/wav", b"RIFF")
        assert base64.b64decode(blob.resource.blob) == b"\x01\x02\x03"
        assert rest.text == '{"rows":3}\ndone\n{"type":"image","mimeType":"text/html","data":"x"}'
        assert rest.annotations.audience == ["user"]


WRITES_A_FILE = {
    "typescript": """
        await files.write("plot.png", new Uint8Array([137, 80]));
        emit({type: "image", mimeType: "image/png", data: await files.readBytes("plot.png")}); return 1""",
    "python": "open('plot.png', 'wb').write(b'\\x89P')\n"
    "emit({'type': 'image', 'mimeType': 'image/png', 'data': open('plot.png', 'rb').read()})\n1",
}


async def test_a_file_that_a_program_wrote_is_emitted_as_content(way: str, mode: str) -> None:
    async with client_of(fresh(), way, mode) as client:
        for language, code in WRITES_A_FILE.items():
            called = await client.call_tool("execute", {"code": code, "language": language, "session": language})
            result, image = called.content
            assert (result.text, image.mime_type, base64.b64decode(image.data)) == ("1", "image/png", b"\x89P")


async def test_a_long_result_is_read_on_by_its_id(way: str, mode: str) -> None:
    async with client_of(fresh(), way, mode) as client:
        long = await client.call_tool("execute", {"code": "'x'.repeat(30000) + '!'"})
        rest = long.structured_content
        assert "[24,000 of 30,001 characters; read on with execute(" in long.content[0].text
        more = await client.call_tool("execute", {"result_id": rest["result_id"], "offset": rest["next_offset"]})
        assert more.content[0].text == "x" * 6000 + "!"


async def test_progress_is_sent_for_each_tool_call(way: str, mode: str) -> None:
    seen: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    code = "await Promise.all([tools.add(1, 2), tools.add(3, 4)]); await tools.echo(5)"
    async with client_of(fresh(), way, mode) as client:
        await client.call_tool("execute", {"code": code}, progress_callback=on_progress)
    assert seen == [(1, "tools.add"), (2, "tools.add"), (3, "tools.echo")]


async def test_logs_come_while_the_program_runs_to_clients_that_ask_for_them(way: str, mode: str) -> None:
    seen: list[tuple[str, Any]] = []

    async def on_log(params: Any) -> None:
        seen.append((params.level, params.data))

    code = "console.debug('small'); console.log('hi'); console.warn('careful')"
    options = {} if mode == "legacy" else {"log_level": "info"}
    async with client_of(fresh(), way, mode, logging_callback=on_log, **options) as client:
        if mode == "legacy":
            await client.call_tool("execute", {"code": code})
            assert seen == []
            with pytest.warns(Warning, match="deprecated"):
                await client.set_logging_level("info")
        await client.call_tool("execute", {"code": code})
    assert seen == [("info", "hi"), ("warning", "careful")]


async def test_a_cancelled_request_ends_its_run(way: str, mode: str) -> None:
    tool = Lingering()
    async with client_of(Gloveport(tools=[tool.linger], spare=1), way, mode) as client:
        running = asyncio.create_task(client.call_tool("execute", {"code": "await tools.linger()"}))
        await tool.started.wait()
        running.cancel()
        await asyncio.wait_for(tool.cancelled.wait(), 30)
        assert (await client.call_tool("execute", {"code": "1 + 1"})).content[0].text == "2"


async def test_sources_that_open_late_delay_runs_but_not_the_list(
    way: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LIST_TIMEOUT_SECONDS", 0.01)
    gate, changed = asyncio.Event(), asyncio.Event()
    (tmp_path / "late.py").write_text("def hello() -> str:\n    return 'hello'\n")
    port = Gloveport(sources=[str(tmp_path / "late.py"), str(tmp_path / "gone.json")], spare=1)

    async def late(*args: Any) -> Any:
        await gate.wait()
        return await open_source(*args)

    monkeypatch.setattr(source_opener, "open_source", late)

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with client_of(port, way, mode, message_handler=on_message) as client:
        early = (await client.list_tools()).tools[0].description
        assert "others are still being opened" in str(early)
        running = asyncio.create_task(client.call_tool("execute", {"code": "await tools.late.hello()"}))
        if mode == "legacy":
            gate.set()
            await asyncio.wait_for(changed.wait(), 30)
        else:
            async with client.listen(tools_list_changed=True) as events:
                gate.set()
                await asyncio.wait_for(anext(aiter(events)), 30)
        late = str((await client.list_tools(cache_mode="bypass")).tools[0].description)
        assert "- late (1 tool): hello" in late
        assert "NOT connected" in late
        assert "gone.json" in late
        assert (await running).content[0].text == "hello"
