"""A WebSocket to a checked address: the handshake carries the credentials, and nothing is compressed or redirected."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import httpcore2
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.uri import WebSocketURI

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress.inject import inject_headers
from gloveport.urls import Url

READ_BYTES = 64 * 1024
CLOSE_SECONDS = 2.0
MAX_WAITING_MESSAGES = 64  # in one read of the socket


class WebSocket:
    """Whole messages of bounded size in both directions. Its methods raise ConnectionError once it is closed."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, protocol: ClientProtocol) -> None:
        self._stream = stream
        self._protocol = protocol
        self._writing = asyncio.Lock()
        self._received: deque[bytes | str] = deque()
        self._parts: list[bytes] = []
        self._is_text = False
        self._closed = False

    async def send(self, message: bytes | str) -> None:
        """Send a message; wait while the other side does not read."""
        if self._closed or self._protocol.state is not State.OPEN:
            raise ConnectionError("it is closed")
        async with self._writing:
            if isinstance(message, str):
                self._protocol.send_text(message.encode())
            else:
                self._protocol.send_binary(message)
            await self._write()

    async def receive(self) -> bytes | str:
        """Return the next message."""
        while not self._received:
            if self._closed or self._protocol.state is not State.OPEN:
                raise ConnectionError(_reason(self._protocol))
            await self._read()
        return self._received.popleft()

    async def close(self) -> None:
        """Say goodbye, if the other side listens, and close the connection."""
        if self._closed:
            return
        self._closed = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS), self._writing:
                if self._protocol.state is State.OPEN:
                    self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
                    await self._write()
        except (TimeoutError, ConnectionError):
            pass
        finally:
            await self._stream.aclose()

    async def _read(self) -> None:
        try:
            data = await self._stream.read(READ_BYTES)
        except (httpcore2.NetworkError, OSError) as error:
            raise ConnectionError(type(error).__name__) from None
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
        async with self._writing:
            await self._write()  # answers to pings, and to a goodbye

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._parts.append(bytes(frame.data))
        if frame.fin:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._received.append(whole.decode("utf-8", "replace") if self._is_text else whole)

    async def _write(self) -> None:
        for data in self._protocol.data_to_send():
            try:
                if data:
                    await self._stream.write(data)
            except (httpcore2.NetworkError, OSError) as error:
                raise ConnectionError(type(error).__name__) from None


async def shake_hands(
    stream: httpcore2.AsyncNetworkStream, url: Url, attachments: Sequence[Attachment], max_bytes: int
) -> WebSocket:
    """Return the WebSocket of a new connection. Raise ToolError `http-error` if the server does not open one."""
    protocol = ClientProtocol(
        WebSocketURI(url.scheme == "https", url.host, url.port, url.path or "/", url.query), max_size=max_bytes
    )
    request = protocol.connect()
    for name, value in inject_headers(url, [(b"User-Agent", b"gloveport")], attachments):
        request.headers[name.decode()] = value.decode("latin-1")
    protocol.send_request(request)
    socket = WebSocket(stream, protocol)
    await socket._write()
    while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
        await socket._read()
    if protocol.handshake_exc is not None:
        raise _refusal(protocol.handshake_exc, url)
    return socket


def _refusal(problem: Exception, url: Url) -> ToolError:
    if isinstance(problem, InvalidStatus):
        status = problem.response.status_code
        return ToolError(f"{url.host} answered {status} instead of opening a WebSocket", code="http-error", status=status)
    return ToolError(f"{url.host} does not speak WebSocket there", code="http-error")


def _reason(protocol: Any) -> str:
    problem = protocol.close_exc if protocol.state is State.CLOSED else None
    if isinstance(problem, WebSocketException) and getattr(problem, "rcvd", None) is None:
        return "it broke off"
    return "the other side closed it"
