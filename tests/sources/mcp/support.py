"""Opens MCP sources for the tests: real servers, on stdio and on loopback."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import uvicorn

from gloveport.config import SourceConfig
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext, TaskRunner
from gloveport.sources.mcp.opening import open_mcp
from gloveport.sources.mcp.source import McpSource
from gloveport.types import Tool
from tests.sources.in_process_tasks import InProcessTasks
from tests.sources.mcp.servers.library import Legacy, build

WAYS = [(way, version) for way in ("stdio", "http") for version in ("2026-07-28", "2025-11-25")]
SERVERS = Path(__file__).parent / "servers"
LIBRARY = (sys.executable, str(SERVERS / "library.py"))
RAW = (sys.executable, str(SERVERS / "raw.py"))
DEADLINE = 120.0


@asynccontextmanager
async def opened(
    config: SourceConfig, environment: dict[str, str] | None = None, tasks: TaskRunner | None = None, **seams: Any
) -> AsyncIterator[McpSource]:
    """The source, closed when the block ends."""
    slots = {
        (config.name, slot): origin
        for slot, origin in {**config.credentials, **config.env}.items()
        if origin.startswith("env:")
    }
    egress = Egress()
    credentials = EnvironmentCredentials(slots, environment or {})
    outside = SourceContext(egress, credentials, Path("/nonexistent"), tasks or InProcessTasks())
    source = None
    try:
        source = await open_mcp(config, outside, **seams)
        yield source
    finally:
        if source:
            await source.close()
        await egress.close()


def on_stdio(*argv: str, **options: Any) -> SourceConfig:
    return SourceConfig("it", "mcp", argv, **options)


def raw(behaviour: str, **options: Any) -> SourceConfig:
    return on_stdio(*RAW, behaviour, **options)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The URL of an ASGI application on loopback."""

    class Server(uvicorn.Server):
        def capture_signals(self) -> Any:
            return nullcontext()

    server = Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())
    try:
        await eventually(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def library(
    way: str, version: str, environment: dict[str, str] | None = None, **seams: Any
) -> AsyncIterator[McpSource]:
    """The library's server, reached in one of two ways, in one of two revisions."""
    legacy = version == "2025-11-25"
    if way == "stdio":
        argv = (*LIBRARY, "--legacy") if legacy else LIBRARY
        async with opened(on_stdio(*argv, env=environment or {}), **seams) as source:
            yield source
        return
    app = build().streamable_http_app()
    async with served(Legacy(app) if legacy else app) as url:
        async with opened(SourceConfig("it", "mcp", url, allow_private=True), **seams) as source:
            yield source


def tool(source: McpSource, path: str) -> Tool:
    return next(each for each in source.tools() if each.address == f"{source.name}.{path}")


def paths(source: McpSource) -> list[str]:
    return [each.address.partition(".")[2] for each in source.tools()]


async def call(source: McpSource, path: str, /, **args: Any) -> Any:
    return await source.call(tool(source, path), args)


def lives(pid: int) -> bool:
    """True for a process that is neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def eventually(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not done():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)
