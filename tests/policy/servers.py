"""Servers on loopback that answer with the bytes they are told to, and remember what they were sent."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpcore2

from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import Egress, Reach, Reply, Request, connect
from gloveport.policy.egress.values import Renew

LOCAL = Reach(allow_private=True, connect_seconds=20, total_seconds=30)

Answer = bytes | Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


async def send(
    request: Request,
    reach: Reach = LOCAL,
    attachments: Sequence[Attachment] = (),
    renew: Renew | None = None,
    **options: Any,
) -> Reply:
    """The reply that an egress of its own gets, closed again afterwards."""
    egress = Egress(**options)
    try:
        return await egress.send(request, reach, attachments, renew)
    finally:
        await egress.close()


def ok(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return ok(b"", f"Location: {location}", status=status)


def words(text: str) -> list[str]:
    return text.split()


class Server:
    """Keeps its connections open between requests; `requests` are the raw bytes of each request, body included."""

    def __init__(self, answers: dict[str, Answer] | Answer) -> None:
        self.answers = answers
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
                self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
                path = head.split(b" ")[1].decode("latin-1").partition("?")[0]
                answer = self.answers[path] if isinstance(self.answers, dict) else self.answers
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(head, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            writer.close()


@asynccontextmanager
async def serving(
    answers: dict[str, Answer] | Answer, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(answers)
    listening = await asyncio.start_server(server.handle, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.transport.abort()


class Dialled:
    """A dial that remembers the addresses and, whatever they are, connects to a server on loopback."""

    def __init__(self, port: int | None = None) -> None:
        self.addresses: list[str] = []
        self._port = port

    async def __call__(self, address: str, port: int, seconds: float | None) -> httpcore2.AsyncNetworkStream:
        self.addresses.append(address)
        if self._port is None:
            raise httpcore2.ConnectError("nobody is there")
        return await connect.connect("127.0.0.1", self._port, seconds)


def answering(*answers: Sequence[str]) -> connect.Resolve:
    """A resolver that gives these answers one after another, and the last one for ever."""
    waiting = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return resolve
