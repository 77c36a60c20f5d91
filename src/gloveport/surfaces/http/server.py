"""The HTTP server: MCP and the API behind the guard, health checks, and a graceful stop that lets runs finish."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from gloveport.config import ServeConfig
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.surfaces.activity_log import OnActivity
from gloveport.surfaces.http import MCP_PATH
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api.app import Api, nowhere
from gloveport.surfaces.http.connections import MAX_UNAUTHENTICATED, UnauthenticatedConnections, WebSocketConnection
from gloveport.surfaces.http.guard import Guard, ServerNames
from gloveport.surfaces.http.token import TokenCheck
from gloveport.surfaces.mcp.server import AgentServer, OnReady
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES
from gloveport.surfaces.web.sessions import WebSessions

MAX_SESSIONS, MAX_CONNECTIONS = 1000, 2000
MAX_ACCEPTED_AT_ONCE = 128  # connections between two turns of the event loop
MAX_PENDING_CONNECTIONS = 4096  # in the kernel, until the event loop accepts them; the kernel may keep fewer
PING_SECONDS, PONG_SECONDS = 30.0, 120.0  # a caller whose tool blocks its own loop for a while is not gone
FLUSH_SECONDS = 1  # to send responses, after runs have ended or were cancelled


class HttpServer:
    """Serves a port over HTTP until it is stopped."""

    def __init__(
        self,
        port: Gloveport,
        names: ServerNames,
        token: TokenCheck,
        admission: Admission,
        grace_seconds: float,
        *,
        direct: tuple[str, ...] = (),
        on_activity: OnActivity | None = None,
        on_ready: OnReady | None = None,
        traces: bool = False,
        settings: ServeConfig | None = None,
        sessions: WebSessions | None = None,
        pages: str = "",
    ) -> None:
        self._port = port
        shown = {"on_activity": on_activity, "on_ready": on_ready}
        self._agents = AgentServer(port, admission, direct=direct, pages=pages, **shown)
        self._admission = admission
        self._grace = grace_seconds
        self._stop_requested, self._stop_now = asyncio.Event(), asyncio.Event()
        self._sessions = StreamableHTTPSessionManager(
            self._agents.protocol, max_request_body_size=MAX_REQUEST_BYTES, max_sessions=MAX_SESSIONS
        )
        routes = [
            Route("/healthz", self._health),
            Route("/readyz", self._readiness),
            Route(MCP_PATH, StreamableHTTPASGIApp(self._sessions)),
        ]
        self._resource = token.resource
        routes += [] if self._resource is None else self._resource.routes
        sessions = sessions or WebSessions(token)
        told = {"on_activity": on_activity, "on_token_change": token.look_again}
        self._api = Api(port, admission, settings or ServeConfig(), sessions, **told)
        app = Starlette(routes=[*routes, *self._api.routes], lifespan=self._lifespan, exception_handlers={404: nowhere})
        self.app = Guard(_traced(app, port) if traces else app, names, token, admission, sessions)

    async def serve(self, listening: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT; then let runs finish within the grace period. A second signal stops at once."""
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws=WebSocketConnection,
            ws_max_size=MAX_REQUEST_BYTES,
            ws_per_message_deflate=False,  # a small message must not become a large one
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PONG_SECONDS,
            http=cast(Any, UnauthenticatedConnections().protocol),
            limit_concurrency=MAX_CONNECTIONS + MAX_UNAUTHENTICATED,
            backlog=MAX_ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=FLUSH_SECONDS,
        )
        server = _Uvicorn(config, self.stop)
        serving = asyncio.create_task(server.serve([listening]))
        try:
            await _first(serving, self._stop_requested.wait())
            self._admission.stopping = True
            for listener in server.servers:
                listener.close()
            await _first(self._stop_now.wait(), self._admission.wait_until_idle(), seconds=self._grace)
            await self._api.end_runs()  # and their requests with them, before the library cancels those
        finally:
            server.should_exit = True
            await serving

    def stop(self) -> None:
        """Begin to stop; when called again, stop at once."""
        (self._stop_now if self._stop_requested.is_set() else self._stop_requested).set()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            async with self._sessions.run():
                self._agents.open()
                yield
        finally:
            await self._agents.close()
            await self._api.close()
            if self._resource is not None:
                await self._resource.close()
            await self._port.close()

    async def _health(self, request: Request) -> JSONResponse:
        return JSONResponse({"ok": True})

    async def _readiness(self, request: Request) -> JSONResponse:
        """Report ready once sandboxes have started and sources were opened. Broken sources are counted, not named."""
        ready = self._agents.ready and not self._admission.stopping
        broken = sum(problem.broken for problem in self._port.problems)
        sources = {"connected": len(self._port.catalog.sources) - 1, "broken": broken}  # without `local`
        return JSONResponse({"ok": ready, "sources": sources}, status_code=200 if ready else 503)


def _traced(app: Starlette, port: Gloveport) -> ASGIApp:
    """Trace the runs of a port, and return the application with the spans of its callers as their parents."""
    try:
        from gloveport.host.runs.traces import RunTraces
        from gloveport.surfaces.http.trace_parents import TraceParents
    except ImportError:
        raise OptionError("traces need opentelemetry-api", hint="pip install 'gloveport[otel]'") from None
    port.observers.add(RunTraces())
    return TraceParents(app)


class _Uvicorn(uvicorn.Server):
    """Reports signals to a callback, and leaves it to others when to exit."""

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[], None]) -> None:
        super().__init__(config)
        self.servers = []
        self._loop, self._on_signal = asyncio.get_running_loop(), on_signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen. The library's one number for both would let a flood either fill our descriptors or the queue."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(MAX_PENDING_CONNECTIONS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Report the signal."""
        self._loop.call_soon_threadsafe(self._on_signal)


async def _first(*work: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait until the first is done, and cancel those that were passed as coroutines."""
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task, each in zip(tasks, work, strict=True):
        if task is not each:
            task.cancel()


def listen(host: str, port: int, token_file: Path | None) -> socket.socket:
    """Return a listening socket. Other addresses than loopback require a token file: a token chosen for them (M2)."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OptionError(f"can't resolve {host}: {error.strerror}", hint="--host takes an address or a name") from None
    if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback and token_file is None:
        hint = "give --token-file FILE with a token of your own, and put TLS in front; or omit --host"
        raise OptionError(f"{host} can be reached from other machines", hint=hint)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        hint = "choose another --port, or 0 for any free one"
        raise OptionError(f"can't listen on port {port} of {host}: {error.strerror}", hint=hint) from None
    return listening


def is_loopback(listening: socket.socket) -> bool:
    """Return True when only this machine can reach the socket."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
