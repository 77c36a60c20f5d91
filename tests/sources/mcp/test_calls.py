"""Calls of a real server over stdio and HTTP, in both revisions: what comes back is what a program can use."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from gloveport.errors import ToolError
from gloveport.sources.mcp.source import McpSource
from tests.sources.mcp.servers.library import PNG
from tests.sources.mcp.support import WAYS, call, library, opened, paths, raw, tool

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
async def source(request: pytest.FixtureRequest) -> AsyncIterator[McpSource]:
    async with library(*request.param) as found:
        assert found._session and found._session.client.protocol_version == request.param[1]
        yield found


async def test_structured_content_comes_first(source: McpSource) -> None:
    assert await call(source, "weather", city="Oslo") == {"city": "Oslo", "celsius": 7.5}
    assert await call(source, "add", a=2, b=3) == {"result": 5}


async def test_text_is_text_unless_it_is_json(source: McpSource) -> None:
    assert await call(source, "say", text="hello") == "hello"
    assert await call(source, "say", text='{"a": [1, 123456789012345678901234567890]}') == {
        "a": [1, 123456789012345678901234567890]
    }
    assert await call(source, "say", text="[] or not []") == "[] or not []"
    assert await call(source, "say", text="7") == "7"
    assert await call(source, "nothing") is None


async def test_images_audio_and_resources_come_as_bytes_with_their_types(source: McpSource) -> None:
    assert await call(source, "picture") == {"type": "image", "mimeType": "image/png", "data": PNG}
    words, parsed, image, audio, resource, link = await call(source, "several")
    assert (words, parsed, image["data"]) == ("words", {"n": 1}, PNG)
    assert audio == {"type": "audio", "mimeType": "audio/wav", "data": b"\x00\x01\x02"}
    assert resource == {"type": "resource", "uri": "note://blob", "mimeType": "application/x", "data": b"\x00\x01\x02"}
    assert link == {"type": "resource_link", "uri": "note://hello", "name": "hello"}


async def test_a_failed_tool_is_a_tool_error(source: McpSource) -> None:
    with pytest.raises(ToolError, match="no luck") as caught:
        await call(source, "fail", why="no luck")
    assert (caught.value.code, caught.value.tool) == ("tool-failed", "it.fail")


async def test_state_stays_between_calls_because_the_session_does(source: McpSource) -> None:
    before = len((await call(source, "peek"))["result"])
    await call(source, "note", text="first")
    await asyncio.gather(*(call(source, "note", text=f"more {n}") for n in range(20)))
    assert len((await call(source, "peek"))["result"]) == before + 21


async def test_calls_at_once_get_their_own_answers(source: McpSource) -> None:
    answers = await asyncio.gather(*(call(source, "add", a=n, b=n) for n in range(50)))
    assert [answer["result"] for answer in answers] == [2 * n for n in range(50)]


async def test_resources_are_tools(source: McpSource) -> None:
    uris = [each["uri"] for each in await call(source, "resources.list")]
    assert uris == ["note://hello", "note://bytes"]
    assert await call(source, "resources.read", uri="note://hello") == [
        {"uri": "note://hello", "mimeType": "text/plain", "text": "hello"}
    ]
    assert (await call(source, "resources.read", uri="note://bytes"))[0]["data"] == b"\x00\x01\x02"
    assert (await call(source, "resources.templates"))[0]["uriTemplate"] == "note://{name}/text"
    assert (await call(source, "resources.read", uri="note://x/text"))[0]["text"] == "the note x"
    with pytest.raises(ToolError, match="Unknown resource"):
        await call(source, "resources.read", uri="note://nowhere/at/all")


async def test_prompts_are_tools(source: McpSource) -> None:
    (prompt,) = await call(source, "prompts.list")
    assert prompt["arguments"] == [{"name": "name", "required": True}]
    got = await call(source, "prompts.get", name="greet", arguments={"name": "Ada"})
    assert got["messages"] == [{"role": "user", "content": "Say hello to Ada."}]


async def test_what_the_protocol_calls_a_read_is_one_and_what_a_server_calls_so_is_not(source: McpSource) -> None:
    writes = {each.address.removeprefix("it."): each.writes for each in source.tools()}
    assert not writes["resources.read"] and not writes["prompts.get"]
    assert writes["peek"]  # it says readOnlyHint (B6)


async def test_dates_and_bytes_are_sent_as_text(source: McpSource) -> None:
    assert await source.call(tool(source, "say"), {"text": datetime(2026, 7, 28)}) == "2026-07-28T00:00:00"
    assert await source.call(tool(source, "say"), {"text": b"\x00\x01"}) == "AAE="


async def test_half_a_surrogate_pair_is_refused_before_it_is_sent(source: McpSource) -> None:
    with pytest.raises(ToolError) as caught:
        await call(source, "say", text="\ud800")
    assert caught.value.code == "bad-arguments"
    assert await call(source, "say", text="still there") == "still there"


async def test_the_server_sees_the_tools_in_the_order_in_which_it_lists_them(source: McpSource) -> None:
    assert paths(source)[:3] == ["add", "weather", "say"]
    assert paths(source)[-1] == "prompts.get"
    assert source.source_info().title == "A library"
    assert source.source_info().warnings == ()


@pytest.mark.parametrize("answer", ["type", "none", "base64"])
async def test_an_answer_that_is_no_mcp_fails_its_call_alone(answer: str) -> None:
    async with opened(raw("wrong")) as found:
        with pytest.raises(ToolError, match=r"not valid MCP|not base64"):
            await call(found, "echo", answer=answer)
        assert await call(found, "echo", answer="number") == "7"


async def test_text_that_is_json_too_deep_to_read_stays_text() -> None:
    async with opened(raw("wrong")) as found:
        assert (await call(found, "echo", answer="deep")).startswith("[[[")


async def test_a_result_that_does_not_say_what_it_is_is_complete() -> None:
    async with opened(raw("terse")) as found:
        assert await call(found, "echo", say="it") == {"say": "it"}
