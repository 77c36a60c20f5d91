"""`gloveport mcp`: the MCP server on standard input and output; the client starts it."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from typing import TextIO, cast

from gloveport.config import Config
from gloveport.host.port import Gloveport
from gloveport.host.source_opener import SourceOptions, SourceSpec
from gloveport.sources.detection import check, likely_name
from gloveport.surfaces.activity_log import log_warnings
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.mcp.server import AgentServer
from gloveport.surfaces.mcp.stdio_transport import StdioTransport
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import claim_stdout, stream
from gloveport.types import DEFAULT_AGENT, Strength

TERMINAL_NOTICE = "This speaks MCP with the client that starts it; `gloveport connect` sets one up. Ctrl-C ends it."


@dataclass(frozen=True, slots=True)
class ServedSources:
    """What to serve: sources in addition to those of the configuration, the configuration, and the weakest allowed sandbox.

    With `private`, the sources in `sources` may reach loopback and private addresses. With `writes`, programs may call the
    tools of theirs that write. With `trust_annotations`, MCP servers among them say which of their tools only read. `agent`
    is the agent on the other side of standard input and output. `direct` are the tools that clients get as MCP tools.
    """

    sources: tuple[str, ...]
    config: str | None
    minimum: Strength | None
    private: bool
    writes: bool = False
    trust_annotations: bool = False
    agent: str = DEFAULT_AGENT
    direct: tuple[str, ...] = ()

    def settings(self) -> Config:
        """Return the settings. Text that can't be a source is refused here, unless a plugin may know better."""
        settings = load_settings(self.config, named=[name for text in self.sources if (name := likely_name(text))])
        for text in () if settings.plugins else self.sources:
            check(text)
        return settings

    def port(self, settings: Config) -> Gloveport:
        """Return the port; it type-checks programs before they run. A source that can't be reached may be up later."""
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
    log_warnings()
    with redirect_stdout(sys.stderr):  # what tools print is shown at once
        port = serving.port(serving.settings())
        run_interruptible(_serve(port, requests, out, AgentServer(port, agent=serving.agent, direct=serving.direct)))
    return 0


async def _serve(port: Gloveport, requests: int, out: TextIO, server: AgentServer) -> None:
    if os.isatty(requests):
        stream(sys.stderr).line(as_typed(TERMINAL_NOTICE))  # only now does Ctrl-C end it cleanly
    try:
        async with StdioTransport(requests, out).open() as (incoming, outgoing):
            server.open()
            await server.protocol.run(incoming, outgoing, server.protocol.create_initialization_options())
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
