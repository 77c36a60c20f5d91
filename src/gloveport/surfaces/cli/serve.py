"""`gloveport serve`: starts the HTTP server and prints how to reach it."""

from __future__ import annotations

import logging
import socket
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from gloveport.host.port import Gloveport
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.http import MCP_PATH
from gloveport.surfaces.http.admission import MAX_CONCURRENT_RUNS, MAX_WAITING_RUNS, Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, is_loopback, listen
from gloveport.surfaces.http.token import TokenCheck, own_token, own_token_file, read_token
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.mcp.stdio import ServedSources
from gloveport.surfaces.terminal import Stream, claim_stdout, stream


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
    grace: float
    as_json: bool
    color: str


def serve_command(options: ServeOptions) -> int:
    """Serve until the process is asked to stop; return the exit code."""
    out, err = stream(claim_stdout(), options.color), stream(sys.stderr, options.color)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    given = Path(options.token_file) if options.token_file else None
    token = read_token(given) if given else own_token()
    port = options.what.port()
    listening = listen(options.host, options.port, given)
    url = _url(listening)
    document = {"ok": True, "url": url, "mcp": f"{url}{MCP_PATH}", "token_file": str(given or own_token_file())}
    if options.as_json:
        write_document(out, document)
    else:
        _greet(out, err, document, None if given else token.reveal())
    with redirect_stdout(sys.stderr):  # shows at once what tools print
        run_interruptible(_serve(options, port, listening, TokenCheck(token)), grace_seconds=options.grace)
    return 0


async def _serve(options: ServeOptions, port: Gloveport, listening: socket.socket, token: TokenCheck) -> None:
    names = ServerNames(is_loopback(listening), frozenset(name.lower() for name in options.allow_host))
    waiting = MAX_WAITING_RUNS if options.waiting is None else options.waiting
    admission = Admission(options.at_once or MAX_CONCURRENT_RUNS, waiting)
    await HttpServer(port, names, token, admission, options.grace).serve(listening)


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _greet(out: Stream, err: Stream, document: dict[str, object], token: str | None) -> None:
    """Print the URL, the token if we created it, and three commands to try next."""
    mcp, file = document["mcp"], document["token_file"]
    out.line(f"MCP     {out.paint(str(mcp), 'bold')}")
    out.line(f"token   {token or 'as in'}{'  (in ' if token else ' '}{file}{')' if token else ''}")
    header = f'"Authorization: Bearer $(cat {file})"'
    out.line("\nNext:")
    out.line(f"  curl {document['url']}/readyz")
    out.line(f"  gloveport connect claude-code --url {mcp}")
    out.line(f"  npx @modelcontextprotocol/inspector --cli {mcp} --method tools/list --header {header}")
    err.line(err.paint("\nPress Ctrl-C to stop when running programs have finished, twice to stop at once.", "dim"))
