"""The connections of the HTTP client: requests in one piece, a server that reads slowly, and ends of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpcore2
import pytest

from gloveport.policy.egress.stream import MAX_HELD_BYTES, TcpStream

pytestmark = pytest.mark.integration

Sides = tuple[TcpStream, asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected() -> AsyncIterator[Sides]:
    """Yield a connection, and what the server at its other side reads and writes."""
    accepted: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    stream = await TcpStream.connect("127.0.0.1", server.sockets[0].getsockname()[1], 5)
    reader, writer = await accepted
    try:
        yield stream, reader, writer
    finally:
        await stream.aclose()
        writer.close()
        server.close()


async def test_what_is_written_in_one_turn_is_sent_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected() as (stream, reader, _):
        sent: list[bytes] = []
        send = stream._writer.write
        monkeypatch.setattr(stream._writer, "write", lambda data: (sent.append(data), send(data)))
        await stream.write(b"head ")
        await stream.write(b"body")
        assert await reader.readexactly(9) == b"head body"  # nobody has read from the stream
        assert sent == [b"head body"]


async def test_a_writer_waits_for_a_server_that_reads_nothing() -> None:
    async with connected() as (stream, reader, _):
        piece, written = b"x" * MAX_HELD_BYTES, 0
        with pytest.raises(httpcore2.WriteTimeout):
            while True:
                await stream.write(piece, timeout=0.2)
                written += len(piece)
        assert written < 64 * 1024 * 1024
        assert len(await reader.readexactly(written)) == written


async def test_an_idle_connection_shows_that_the_server_has_ended_it() -> None:
    async with connected() as (stream, _, writer):
        assert not stream.get_extra_info("is_readable")
        writer.close()
        await writer.wait_closed()
        assert stream.get_extra_info("is_readable")
        assert await stream.read(10) == b""


async def test_a_silent_server_and_a_refused_connection_are_named() -> None:
    async with connected() as (stream, _, _):
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(10, timeout=0.05)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    for address in ("127.0.0.1", "localhost"):  # a name is no address
        with pytest.raises(httpcore2.ConnectError):
            await TcpStream.connect(address, port, 5)
