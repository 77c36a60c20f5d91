"""`gloveport serve`: starts the HTTP server and prints how to reach it."""

from __future__ import annotations

import asyncio
import logging
import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.errors import GloveportError
from gloveport.host.port import Gloveport, program_logger
from gloveport.sandbox.jail.strength import STRENGTH_MEANING, JailReport
from gloveport.store.tokens import Role
from gloveport.surfaces.activity_log import ActivityLog, LogFormat, log_warnings
from gloveport.surfaces.documents import to_text, write_document
from gloveport.surfaces.http import MCP_PATH
from gloveport.surfaces.http.admission import MAX_CONCURRENT_RUNS, MAX_WAITING_RUNS, Admission
from gloveport.surfaces.http.api.programs.example_programs import examples_for
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.protected_resource import resource_from
from gloveport.surfaces.http.server import HttpServer, is_loopback, listen
from gloveport.surfaces.http.token import TokenCheck, own_token, own_token_file, read_token
from gloveport.surfaces.interruption import run_interruptible, stop_at_end_of_input
from gloveport.surfaces.mcp.stdio import ServedSources
from gloveport.surfaces.own_command import as_typed, typed_command
from gloveport.surfaces.terminal import Stream, claim_stdout, stream, visible_line
from gloveport.surfaces.web.links import LinkServer, link, page_url, person
from gloveport.surfaces.web.sessions import CODE_SECONDS, WebSessions
from gloveport.types import Tool

MAX_SHOWN_TOOLS = 12
STOPPING = "Press Ctrl-C to stop when running programs have finished, twice to stop at once."
PROTOCOL = "2026-07-28"
REQUEST_META = {"protocolVersion": PROTOCOL, "clientInfo": {"name": "curl", "version": "1"}, "clientCapabilities": {}}

logger = logging.getLogger("gloveport")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The command line of `gloveport serve`, not yet checked."""

    what: ServedSources
    host: str
    port: int
    token_file: str | None
    allow_host: tuple[str, ...]
    at_once: int | None
    waiting: int | None
    role: Role
    grace: float
    until_eof: bool
    examples: bool
    quiet: bool
    log_format: LogFormat
    as_json: bool
    color: str


def serve_command(options: ServeOptions) -> int:
    """Serve until the process is asked to stop; return the exit code."""
    out, err = stream(claim_stdout(), options.color), stream(sys.stderr, options.color)
    log_warnings()
    program_logger.setLevel(logging.INFO)  # whoever starts a run may ask for it
    given = Path(options.token_file) if options.token_file else None
    token = read_token(given) if given else own_token()
    if options.until_eof:
        stop_at_end_of_input()
    settings = options.what.settings()
    port = options.what.port(settings)
    for agent in settings.serve.agents.values():
        port.agent(agent)  # raises OptionError for one that the settings don't name
    listening = listen(options.host, options.port, given)
    url = _url(listening)
    document = {"ok": True, "url": url, "mcp": f"{url}{MCP_PATH}", "token_file": str(given or own_token_file())}
    log = None if options.quiet else ActivityLog(err, options.log_format)
    if options.as_json:
        write_document(out, document)
    else:
        _show_address(out, document, None if given else token.reveal())
    try:
        with redirect_stdout(sys.stderr):  # shows at once what tools print
            resource = resource_from(settings.serve)
            check = TokenCheck(token, port.store_path, port.agent, resource, own_role=options.role)
            sessions, pages = WebSessions(check), page_url(*listening.getsockname()[:2])

            def show_ready(report: JailReport) -> None:
                _show_ready(out, port, document, report)
                _show_pages(out, pages, sessions)
                err.line()
                err.line(err.paint(err.fold(STOPPING), "dim"))

            shown = {"on_activity": log.record if log else None, "on_ready": None if options.as_json else show_ready}
            shown |= {"settings": settings.serve, "traces": settings.serve.traces, "sessions": sessions}
            shown |= {"pages": pages}
            run_interruptible(_serve(options, port, listening, check, shown), grace_seconds=options.grace)
    finally:
        if log is not None:
            log.close()
    return 0


async def _serve(
    options: ServeOptions, port: Gloveport, listening: socket.socket, token: TokenCheck, shown: Mapping[str, Any]
) -> None:
    address = listening.getsockname()
    names = ServerNames(is_loopback(listening), frozenset(name.lower() for name in options.allow_host))
    waiting = MAX_WAITING_RUNS if options.waiting is None else options.waiting
    admission = Admission(options.at_once or MAX_CONCURRENT_RUNS, waiting)
    server = HttpServer(port, names, token, admission, options.grace, direct=options.what.direct, **shown)
    examples = asyncio.create_task(_run_examples(port)) if options.examples else None
    async with LinkServer(shown["pages"], address[1], shown["sessions"]).serving():
        await server.serve(listening)
    if examples is not None:
        examples.cancel()
        await asyncio.wait([examples])


async def _run_examples(port: Gloveport) -> None:
    """Run the example programs, so that the pages have something to show; but not while a run waits for somebody."""
    store = StoreReader(port.store_path)
    try:
        await port.open(naming="")
        if not await store.runs(lambda runs: runs.latest(limit=1, statuses=("waiting",))):
            examples = examples_for(port.catalog)
            await asyncio.gather(*(port.run(one.code, language=one.language) for one in examples))
    except GloveportError as error:  # whoever asks for a run gets it, too
        logger.warning("can't run the examples: %s", error.message)
    finally:
        await store.close()


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _show_address(out: Stream, document: Mapping[str, object], token: str | None) -> None:
    """Print the URL, and the token if we created it."""
    file = document["token_file"]
    out.line(f"MCP      {out.paint(str(document['mcp']), 'bold')}")
    out.line(out.fold(f"token    {token or 'as in'}{'  (in ' if token else ' '}{file}{')' if token else ''}", " " * 9))


def _show_ready(out: Stream, port: Gloveport, document: Mapping[str, object], report: JailReport) -> None:
    """Print the strength of the jail, the tools, and commands to try next: each works as it is printed."""
    catalog = port.catalog
    out.line(out.fold(f"sandbox  {STRENGTH_MEANING[report.strength]}", " " * 9))
    paths = [catalog.path_of(tool) for tool in catalog.tools]
    more = f", … and {len(paths) - MAX_SHOWN_TOOLS:,} more" if len(paths) > MAX_SHOWN_TOOLS else ""
    none = as_typed("none: name a file, a URL or a command, or use `gloveport add`")
    listed = ", ".join(paths[:MAX_SHOWN_TOOLS]) + more or none
    out.line(out.fold(f"tools    {len(paths):,}: {listed}", " " * 9))
    for problem in port.problems:
        if problem.broken:
            out.line(f"{out.paint('!', 'yellow')} {visible_line(problem.message)}")
    out.line()
    out.line(out.fold("Next, in another terminal: run a program here, connect a client, look at the sandbox"))
    out.line(f"\n{_execute_command(document, _example(catalog.tools, catalog.path_of))}\n")
    out.line(f"{typed_command()} connect claude-code --url {document['mcp']}")
    out.line(f"{typed_command()} doctor")


def _show_pages(out: Stream, page: str, sessions: WebSessions) -> None:
    """Print where the pages are. A link that signs in goes to a terminal only: other output may be kept as a log."""
    out.line()
    if not out.terminal:
        out.line(f"The pages are at {page}; `{typed_command()} open` signs you in.")
        return
    code, _ = sessions.new_code(person())
    minutes = f"works once, within {CODE_SECONDS / 60:g} minutes; then: {typed_command()} open"
    out.line(f"{out.paint('Open the pages', 'bold')}  ({minutes})")
    out.line()
    out.line(f"  {out.paint(link(page, code), 'bold')}")


def _example(tools: Sequence[Tool], path_of: Callable[[Tool], str]) -> str:
    """Return a program that calls a tool which reads and needs no arguments; without one, a program that searches."""
    found = next((tool for tool in tools if not tool.writes and not tool.input_schema.get("required")), None)
    return f"await tools.{path_of(found)}()" if found else 'await tools.search("")'


def _execute_command(document: Mapping[str, object], code: str) -> str:
    """Return a `curl` command that runs a program: MCP's revision 2026-07-28 needs no session."""
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in REQUEST_META.items()}
    params = {"name": "execute", "arguments": {"code": code}, "_meta": meta}
    body = to_text({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, indented=False)
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": PROTOCOL, "Mcp-Method": "tools/call"}
    given = " ".join(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in {**headers, "Mcp-Name": "execute"}.items())
    token = f'-H "Authorization: Bearer $(cat {shlex.quote(str(document["token_file"]))})"'
    return f"curl -s {document['mcp']} {token} \\\n  {given} \\\n  -d {shlex.quote(body)}"
