"""Support for tests of the MCP server: a server on loopback, and clients of both revisions and transports."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import Role
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.protected_resource import ProtectedResource
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from gloveport.surfaces.mcp.server import AgentServer

TOKEN = "a-token-of-32-characters-or-more"
AUTHORIZATION = {"Authorization": f"Bearer {TOKEN}"}
MODES = ("legacy", "2026-07-28")
WAYS = (("memory", "legacy"), ("http", "legacy"), ("http", "2026-07-28"))


class Lingering:
    """A tool that waits until the test lets it go on, and notices when it is cancelled."""

    def __init__(self) -> None:
        self.started, self.released, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def linger(self) -> str:
        """Wait."""
        self.started.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "released"


@contextlib.asynccontextmanager
async def http_server(
    port: Gloveport,
    admission: Admission | None = None,
    names: ServerNames | None = None,
    resource: ProtectedResource | None = None,
    role: Role = "agent",
    direct: tuple[str, ...] = (),
) -> AsyncIterator[str]:
    """Yield the URL of a server on loopback; it closes the port."""
    listening = listen("127.0.0.1", 0, None)
    token = TokenCheck(Secret(TOKEN, "token"), None, port.agent, resource, own_role=role)
    server = HttpServer(port, names or ServerNames(), token, admission or Admission(), 30, direct=direct)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield url_of(listening)
    finally:
        server.stop()
        server.stop()
        await serving


def url_of(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.asynccontextmanager
async def http_client(url: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """Yield a client with the token."""
    async with httpx2.AsyncClient(headers=AUTHORIZATION, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, **options) as client:
            yield client


@contextlib.asynccontextmanager
async def client_of(
    port: Gloveport, way: str, mode: str, *, direct: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[Client]:
    """Yield a client of a server over the port, in memory or over HTTP."""
    if way == "http":
        async with http_server(port, direct=direct) as url, http_client(url, mode, **options) as client:
            yield client
        return
    server = AgentServer(port, direct=direct)
    try:
        async with Client(server.protocol, mode=mode, **options) as client:
            yield client
    finally:
        await server.close()
        await port.close()
