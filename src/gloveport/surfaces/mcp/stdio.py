"""`gloveport mcp`: the MCP server on standard input and output; the client starts it."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from typing import Any, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

from gloveport.host.port import Gloveport
from gloveport.host.source_opener import SourceOptions, SourceSpec
from gloveport.sources.detection import check, likely_name
from gloveport.sources.mcp.line_splitter import LineSplitter, OverlongLine
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.mcp.server import AgentServer
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, read_message
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import claim_stdout, stream
from gloveport.types import DEFAULT_AGENT, Strength

READ_BYTES = 256 * 1024
MAX_QUEUED_LINES = 64
TERMINAL_NOTICE = "This speaks MCP with the client that starts it; `gloveport connect` sets one up. Ctrl-C ends it."


@dataclass(frozen=True, slots=True)
class ServedSources:
    """What to serve: sources in addition to those of the configuration, the configuration, and the weakest allowed sandbox.

    With `private`, the sources in `sources` may reach loopback and private addresses. With `writes`, programs may call the
    tools of theirs that write. With `trust_annotations`, MCP servers among them say which of their tools only read. `agent`
    is the agent on the other side of standard input and output.
    """

    sources: tuple[str, ...]
    config: str | None
    minimum: Strength | None
    private: bool
    writes: bool = False
    trust_annotations: bool = False
    agent: str = DEFAULT_AGENT

    def port(self) -> Gloveport:
        """Return the port; it type-checks programs before they run.

        Text that can't be a source is refused here. A source that can't be reached is not: it may be up later.
        """
        for text in self.sources:
            check(text)
        settings = load_settings(self.config, named=[name for text in self.sources if (name := likely_name(text))])
        options = SourceOptions(self.private, ("*",) if self.writes else (), self.trust_annotations)
        sources = [SourceSpec(text, options) for text in self.sources]
        store = settings.governance.store_path
        port = Gloveport(sources=sources, config=settings, minimum=self.minimum, check_types=True, store=store)
        port.agent(self.agent)
        return port


SERVED_OPTIONS = tuple(each.name for each in fields(ServedSources) if each.name != "agent")


def mcp_command(serving: ServedSources) -> int:
    """Serve until standard input ends; return the exit code."""
    cast(io.TextIOWrapper, sys.stdout).reconfigure(encoding="utf-8")
    out = claim_stdout()
    requests = _claim_stdin()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with redirect_stdout(sys.stderr):  # what tools print is shown at once
        port = serving.port()
        run_interruptible(_serve(port, requests, out, serving.agent))
    return 0


async def _serve(port: Gloveport, requests: int, out: TextIO, agent: str) -> None:
    if os.isatty(requests):
        stream(sys.stderr).line(TERMINAL_NOTICE)  # only now does Ctrl-C end it cleanly
    server = AgentServer(port, agent=agent)
    try:
        lines = _Lines(requests)
        stdin = cast(anyio.AsyncFile[str], lines)
        async with stdio_server(stdin=stdin, stdout=anyio.wrap_file(out)) as (read, lines.replies):
            server.open()
            await server.protocol.run(read, lines.replies, server.protocol.create_initialization_options())
    except* (asyncio.CancelledError, BrokenPipeError):
        pass  # a signal ended it, or its client is gone
    finally:
        await server.close()
        await port.close()


def _claim_stdin() -> int:
    """Return the real standard input; from now on tools, and programs that they start, read an empty one."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own


class _Lines:
    """The lines of input. One that is no message, or exceeds a bound, is answered here, and the library never parses it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.replies: Any = None  # the library's stream of messages to the client; set before the first line is read

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in _read(self._descriptor):
            try:
                if isinstance(line, OverlongLine):
                    raise ValueError(f"has more than {MAX_REQUEST_BYTES:,} bytes")
                await read_message(line)
            except ValueError as problem:
                known = line if isinstance(line, OverlongLine) else OverlongLine.of(line)
                error = ErrorData(code=INVALID_REQUEST, message=f"the request {problem}")
                await self.replies.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=known.id, error=error)))
            else:
                yield line.decode()


async def _read(descriptor: int) -> AsyncIterator[bytes | OverlongLine]:
    """Yield lines of input. A daemon thread reads them, because a blocking read can't be cancelled."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | OverlongLine | None] = asyncio.Queue()
    room = threading.Semaphore(MAX_QUEUED_LINES)

    def read() -> None:
        splitter = LineSplitter(MAX_REQUEST_BYTES)
        while chunk := os.read(descriptor, READ_BYTES):
            for line in splitter.feed(chunk):
                room.acquire()
                loop.call_soon_threadsafe(queue.put_nowait, line)
        loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        room.release()
        if isinstance(line, OverlongLine) or line.strip():
            yield line
