"""The messages that wait to be sent on one WebSocket, in their order and within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from gloveport.large_values import is_large, off_loop
from gloveport.surfaces.http.api.endpoint import json_bytes
from gloveport.types import MIB

MAX_UNSENT_BYTES = 128 * MIB
MAX_UNSENT_MESSAGES = 100_000


class Outbox:
    """Sends messages one after the other. A caller that reads too slowly loses its socket, not the server its memory."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._messages: asyncio.Queue[bytes | asyncio.Future[bytes]] = asyncio.Queue()
        self._unsent = 0  # messages, with the one that is being sent
        self._unsent_bytes = 0
        self._turn = asyncio.Lock()
        self._overflow = asyncio.Event()
        self._is_closed = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message at once if none waits before it, which saves a turn of the loop; else queue it."""
        if self._unsent or self._is_closed or is_large(message):
            self.put(message)
            return
        text = json_bytes(message)
        self._unsent += 1
        self._count(len(text))
        try:
            await self._deliver(text)
        except (WebSocketDisconnect, RuntimeError):
            self._overflow.set()  # whoever waits for `send_all` sees that the socket is closed

    def put(self, message: Mapping[str, Any], encode: Callable[[Mapping[str, Any]], bytes] = json_bytes) -> None:
        """Queue a message. A large one is encoded away from the event loop."""
        if self._is_closed:
            return
        self._unsent += 1
        if is_large(message):
            encoding = off_loop(encode, message)
            encoding.add_done_callback(self._encoded)
            self._messages.put_nowait(encoding)
        else:
            text = encode(message)
            self._count(len(text))
            self._messages.put_nowait(text)

    def _encoded(self, encoding: asyncio.Future[bytes]) -> None:
        if not encoding.cancelled() and encoding.exception() is None:
            self._count(len(encoding.result()))

    def _count(self, size: int) -> None:
        self._unsent_bytes += size
        if self._unsent_bytes > MAX_UNSENT_BYTES or self._messages.qsize() > MAX_UNSENT_MESSAGES:
            self._overflow.set()

    async def send_all(self) -> None:
        """Send messages until the socket closes, or too many wait."""
        sending = asyncio.ensure_future(self._send())
        overflow = asyncio.ensure_future(self._overflow.wait())
        try:
            await asyncio.wait([sending, overflow], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._is_closed = True
            sending.cancel()
            overflow.cancel()

    async def _send(self) -> None:
        try:
            while True:
                message = await self._messages.get()
                text = message if isinstance(message, bytes) else await message
                await self._deliver(text)
        except (WebSocketDisconnect, RuntimeError):  # Starlette's words for a socket that was closed meanwhile
            return

    async def _deliver(self, text: bytes) -> None:
        try:
            async with self._turn:
                await self._socket.send_text(text.decode())
        finally:
            self._unsent -= 1
            self._unsent_bytes -= len(text)
