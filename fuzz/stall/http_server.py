"""The HTTP server of Gloveport that a stall target attacks, on a port of loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gloveport import Gloveport
from gloveport.config import ServeConfig
from gloveport.policy.credentials import Secret
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import Role, TokenCheck

TOKEN = "t" * 40


@asynccontextmanager
async def served(port: Gloveport, role: Role, settings: ServeConfig | None = None) -> AsyncIterator[int]:
    """Run a server that gives TOKEN this role while the block runs; yield its port number."""
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), own_role=role)
    server = HttpServer(port, ServerNames(), check, Admission(), grace_seconds=1, settings=settings)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield listening.getsockname()[1]
    finally:
        server.stop()
        await serving
