"""Limit the connections of clients that have not shown the token, so that they can't take what other clients need (R4).

The library lets a client wait for ever before it sends a request, and refuses everybody when it has too many connections.
Here, only so many connections without the token are kept. Each further one closes the oldest, of the address that has most.
A connection on which no request begins for a while is closed: soon without the token, later with it.

What is written to a connection in one turn of the event loop is sent together: each system call that wakes a client costs
as much as the rest of a small response.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_UNAUTHENTICATED = 256  # with the sandboxes' descriptors they fit into the usual limit of 1,024
UNAUTHENTICATED_TIMEOUT_SECONDS = 5.0
IDLE_TIMEOUT_SECONDS = 30.0
MAX_JOINED_BYTES = 64 * 1024  # that are written in one turn, before they are sent at once
MAX_UNPAUSED_BYTES = 64 * 1024  # of a message that waits for the application while more are read
READ_BYTES = 4096
MAX_READING_SECONDS = 0.005  # in one turn of the loop
MAX_FRAGMENTS = 16_384  # of one message
TOO_BIG = 1009  # a code of RFC 6455 that closes a WebSocket
_CONNECTION = "gloveport.connection"


def mark_authenticated(scope: MutableMapping[str, Any]) -> None:
    """Note that the request of this ASGI scope had the token: its connection no longer counts as a stranger's."""
    connection = scope.get(_CONNECTION)
    if isinstance(connection, _Connection):
        connection.unauthenticated.discard(connection)


class UnauthenticatedConnections:
    """The connections of one server on which no request has had the token, oldest first."""

    def __init__(self) -> None:
        self._connections: dict[_Connection, str] = {}  # each with the address of its client

    def protocol(self, **options: Any) -> asyncio.Protocol:
        """Return the protocol of a new connection; uvicorn calls this instead of its own class."""
        return _Connection(self, **options)

    def add(self, connection: _Connection, address: str) -> None:
        """Count a new connection; close another when there are too many."""
        self._connections[connection] = address
        if len(self._connections) > MAX_UNAUTHENTICATED:
            most = Counter(self._connections.values()).most_common(1)[0][0]
            oldest = next(other for other, client in self._connections.items() if client == most)
            self.discard(oldest)
            oldest.transport.abort()

    def discard(self, connection: _Connection) -> None:
        """Stop counting a connection: it has shown the token, or it is closed."""
        self._connections.pop(connection, None)

    def __contains__(self, connection: _Connection) -> bool:
        """Return whether no request on this connection has had the token."""
        return connection in self._connections


class _Connection(H11Protocol):
    """A connection that closes itself when no request has begun for a while and none is being answered."""

    _timer: asyncio.TimerHandle | None = None

    def __init__(self, unauthenticated: UnauthenticatedConnections, **options: Any) -> None:
        super().__init__(**options)
        self.unauthenticated = unauthenticated
        inner = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope[_CONNECTION] = self
            await inner(scope, receive, send)

        self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Count the connection and start its timer."""
        super().connection_made(cast(Any, _JoinedWrites(transport, self.loop)))
        self.unauthenticated.add(self, self.client[0] if self.client else "")
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.unauthenticated.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Hand the connection over. The guard decides on it at once, and the protocol of WebSockets has pings."""
        self.unauthenticated.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.transport = cast(_JoinedWrites, self.transport).unwrapped()  # a message is one write already
        super().handle_websocket_upgrade(event)

    def _start_timer(self) -> None:
        seconds = UNAUTHENTICATED_TIMEOUT_SECONDS if self in self.unauthenticated else IDLE_TIMEOUT_SECONDS
        self._timer = self.loop.call_later(seconds, self._check, self.cycle, self._idle)

    def _check(self, last: Any, was_idle: bool) -> None:
        if was_idle and self._idle and self.cycle is last:
            self.transport.close()
        else:
            self._start_timer()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


class _JoinedWrites:
    """A transport that sends in one system call the small pieces that are written to it in one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._unsent = bytearray()

    def write(self, data: bytes) -> None:
        """Send the data at the end of this turn; at once, behind what waits, where that is much."""
        if len(self._unsent) + len(data) > MAX_JOINED_BYTES:
            self._send()
            self._transport.write(data)
            return
        if data and not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent += data

    def close(self) -> None:
        """Send what waits, and close the connection."""
        self._send()
        self._transport.close()

    def unwrapped(self) -> asyncio.Transport:
        """Send what waits, and return the transport itself."""
        self._send()
        return self._transport

    def _send(self) -> None:
        if self._unsent:
            unsent, self._unsent = self._unsent, bytearray()
            self._transport.write(unsent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A connection of a WebSocket. One that was refused with an HTTP status is complete.

    The library takes it for an application that forgot to answer, and logs an error for every wrong token.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unread = bytearray()
        self._queued_bytes = 0
        self.read_paused = True  # so the library leaves it to `_update_reading`

    def data_received(self, data: bytes) -> None:
        """Read frames in short steps: thousands of the smallest arrive at once, and each takes some microseconds."""
        is_under_way = bool(self._unread)
        self._unread += data
        if not is_under_way:
            self._read_frames()

    def _read_frames(self) -> None:
        until = self.loop.time() + MAX_READING_SECONDS
        while self._unread and not self.transport.is_closing():
            piece = bytes(self._unread[:READ_BYTES])
            super().data_received(piece)
            del self._unread[:READ_BYTES]
            if self._unread and self.loop.time() > until:
                self.loop.call_soon(self._read_frames)
                break
        else:
            self._unread.clear()
        self._update_reading()

    def handle_cont(self, event: Any) -> None:
        """Take a part of a message; close the connection on one of too many parts: empty ones cost memory, too."""
        if len(self.frames) > MAX_FRAGMENTS:
            self.conn.fail(TOO_BIG, "the message has too many parts")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the application."""
        self._queued_bytes += sum(map(len, self.frames))
        super().send_receive_event_to_app()
        self._update_reading()

    async def receive(self) -> Any:
        """Return what the client says next. A flood of messages leaves other connections their turns."""
        if not self.queue.empty():
            await asyncio.sleep(0)
        message = await self.queue.get()
        if self.queue.empty():
            self._queued_bytes = 0
        self._update_reading()
        return message

    def _update_reading(self) -> None:
        """Pause reading while messages wait, else resume it. One small message may wait: a pause costs two system calls."""
        is_behind = not self.close_sent and (self.queue.qsize() > 1 or self._queued_bytes > MAX_UNPAUSED_BYTES)
        if self._unread or is_behind:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    async def send(self, message: Any) -> None:
        """Send a message of the application."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
