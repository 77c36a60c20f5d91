"""`@modelcontextprotocol/server-everything`: every kind of content, over stdio and streamable HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.sources.mcp.elicitation import CallProgress, ElicitationAnswer, ElicitationQuestion
from gloveport.sources.mcp.source import McpSource
from tests.servers.support import npm
from tests.sources.mcp.support import DEADLINE, call, on_stdio, opened, paths

COMMAND = npm("mcp-server-everything")
asked: list[ElicitationQuestion] = []
heard: list[CallProgress] = []


async def answer(question: ElicitationQuestion) -> ElicitationAnswer:
    asked.append(question)
    return ElicitationAnswer("accept", {"name": "Ada Lovelace"})


@asynccontextmanager
async def over_http() -> AsyncIterator[SourceConfig]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "streamableHttp", env={"PORT": str(port), "PATH": "/usr/bin"}, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield SourceConfig("it", "mcp", f"http://127.0.0.1:{port}/mcp", allow_private=True)
    finally:
        process.kill()
        await process.wait()


@pytest.fixture(scope="module", params=["stdio", "http"])
async def source(request: pytest.FixtureRequest) -> AsyncIterator[McpSource]:
    seams = {"on_elicit": answer, "on_progress": heard.append}
    if request.param == "stdio":
        async with opened(on_stdio(*COMMAND, env={"MODE": "test"}), **seams) as found:
            yield found
        return
    async with over_http() as config:
        async with asyncio.timeout(DEADLINE):
            while True:  # the server needs a moment before it listens
                try:
                    opening = opened(config, **seams)
                    found = await opening.__aenter__()
                    break
                except SourceError:
                    await asyncio.sleep(0.1)
        try:
            yield found
        finally:
            await opening.__aexit__(None, None, None)


async def test_values_of_every_kind_come_back(source: McpSource) -> None:
    assert await call(source, "echo", message="hello") == "Echo: hello"
    assert "5" in await call(source, "get_sum", a=2, b=3)
    weather = await call(source, "get_structured_content", location="Chicago")
    assert {"temperature", "conditions", "humidity"} <= set(weather)
    image = next(each for each in await call(source, "get_tiny_image") if isinstance(each, dict))
    assert image["mimeType"] == "image/png" and image["data"].startswith(b"\x89PNG")
    reference = await call(source, "get_resource_reference", resourceType="Blob", resourceId=2)
    assert any(isinstance(each, dict) and isinstance(each.get("data"), bytes) for each in reference)


async def test_arguments_that_do_not_fit_are_an_error(source: McpSource) -> None:
    with pytest.raises(ToolError):
        await call(source, "get_sum", a="two", b=3)
    assert "3" in await call(source, "get_sum", a=1, b=2)


async def test_progress_is_heard(source: McpSource) -> None:
    heard.clear()
    await call(source, "trigger_long_running_operation", duration=0.4, steps=4)
    assert sorted(each.progress for each in heard) == [1, 2, 3, 4]


async def test_a_person_is_asked(source: McpSource) -> None:
    asked.clear()
    (path,) = [each for each in paths(source) if "elicitation_request" in each and "async" not in each]
    said = await call(source, path)
    assert "Ada Lovelace" in str(said)
    assert asked[0].schema


async def test_resources_and_prompts_are_there(source: McpSource) -> None:
    found = await call(source, "resources.list")
    assert found and await call(source, "resources.read", uri=found[0]["uri"])
    assert await call(source, "resources.templates")
    names = [prompt["name"] for prompt in await call(source, "prompts.list")]
    got = await call(source, "prompts.get", name=names[0])
    assert got["messages"][0]["content"]


async def test_many_calls_at_once_get_their_own_answers(source: McpSource) -> None:
    said = await asyncio.gather(*(call(source, "echo", message=str(n)) for n in range(100)))
    assert said == [f"Echo: {n}" for n in range(100)]


async def test_the_command_sees_the_environment_that_it_was_given() -> None:
    async with opened(on_stdio(*COMMAND, env={"MODE": "test"})) as source:
        assert set(await call(source, "get_env")) == {"MODE", "PATH", "HOME"}
