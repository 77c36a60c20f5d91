"""Frames of a hostile caller on a WebSocket: floods of the smallest keep nobody from their turn, and cost no memory (S23)."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.surfaces.http import connections
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.connections import MAX_FRAGMENTS, WebSocketConnection
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of

pytestmark = pytest.mark.integration

PING, PONG, TEXT, REST, CLOSE = b"\x89", b"\x8a\x00", b"\x01", b"\x00", b"\x88"
EMPTY = b"\x80" + bytes(4)  # a masked frame without content
MAX_STEP_SECONDS = 0.03  # of CPU time


@pytest.fixture
async def url() -> AsyncIterator[str]:
    port = Gloveport(spare=0)
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), own_role="host")
    server = HttpServer(port, ServerNames(), check, Admission(), 1)
    serving = asyncio.create_task(server.serve(listening))
    yield url_of(listening)
    server.stop()
    server.stop()
    await serving


async def opened(url: str, path: str = "/v1/host") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a WebSocket whose frames the test makes itself."""
    host, _, number = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(number))
    key = base64.b64encode(bytes(16)).decode()
    head = f"GET {path} HTTP/1.1\r\nHost: {host}:{number}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    writer.write(head.encode())
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the CPU time that each step of reading takes."""
    taken: list[float] = []
    read = WebSocketConnection._read_frames

    def timed(connection: WebSocketConnection) -> None:
        began = time.thread_time()
        read(connection)
        taken.append(time.thread_time() - began)

    monkeypatch.setattr(WebSocketConnection, "_read_frames", timed)
    return taken


@pytest.mark.parametrize("path", ["/v1/host", "/v1/sandbox"])
async def test_a_flood_of_pings_is_answered_in_short_steps(url: str, path: str, steps: list[float]) -> None:
    reader, writer = await opened(url, path)
    count = 40_000
    writer.write((PING + EMPTY) * count)
    async with asyncio.timeout(60), httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert await reader.readexactly(len(PONG) * count) == PONG * count
    writer.close()
    assert max(steps) < MAX_STEP_SECONDS
    assert len(steps) > 1


async def test_messages_after_a_flood_are_read_in_their_order(url: str, steps: list[float]) -> None:
    reader, writer = await opened(url)
    unknown = b'{"type":"cancel","run":"x"}'
    run = b'{"type":"run","run":"r","code":"1 + 1","quiet":true,"unnamed":true}'
    flood = b"\x81" + bytes([0x80 | len(unknown)]) + bytes(4) + unknown
    writer.write(flood * 10_000 + b"\x81" + bytes([0x80 | len(run)]) + bytes(4) + run)
    async with asyncio.timeout(60):
        assert b'"value":2' in await reader.readuntil(b'"value":2')
    writer.close()
    assert max(steps) < MAX_STEP_SECONDS


async def test_a_message_of_too_many_parts_closes_the_socket(url: str) -> None:
    reader, writer = await opened(url)
    writer.write(TEXT + EMPTY + (REST + EMPTY) * (MAX_FRAGMENTS + 10))
    async with asyncio.timeout(60):
        said = await reader.readexactly(4)
    writer.close()
    assert (said[:1], int.from_bytes(said[2:4])) == (CLOSE, connections.TOO_BIG)
