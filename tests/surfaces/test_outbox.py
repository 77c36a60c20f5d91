"""An outbox sends messages in order, and at once if none waits."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from starlette.websockets import WebSocketDisconnect

from gloveport.surfaces.http.api.outbox import Outbox


class Socket:
    """A WebSocket whose client reads only while `is_open` is set."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.is_open = asyncio.Event()
        self.is_closed = False
        self.fourth = asyncio.Event()

    async def send_text(self, text: str) -> None:
        await self.is_open.wait()
        if self.is_closed:
            raise WebSocketDisconnect
        self.sent.append(json.loads(text)["n"])
        if len(self.sent) == 4:
            self.fourth.set()


async def test_a_message_goes_out_without_a_turn_of_the_loop_when_none_waits() -> None:
    socket = Socket()
    socket.is_open.set()
    await Outbox(cast(Any, socket)).send({"n": 1})
    assert socket.sent == [1]


async def test_messages_keep_their_order_when_their_reader_is_slow() -> None:
    socket = Socket()
    outbox = Outbox(cast(Any, socket))
    first = asyncio.create_task(outbox.send({"n": 1}))
    await asyncio.sleep(0)
    sending = asyncio.create_task(outbox.send_all())
    outbox.put({"n": 2, "text": "x" * 100_000})  # which is encoded in another thread
    async with asyncio.timeout(10):
        await outbox.send({"n": 3})  # it does not wait: two are before it
        outbox.put({"n": 4})
        socket.is_open.set()
        await first
        await socket.fourth.wait()
    sending.cancel()
    assert socket.sent == [1, 2, 3, 4]


async def test_a_socket_that_closed_ends_the_sending() -> None:
    socket = Socket()
    socket.is_open.set()
    socket.is_closed = True
    outbox = Outbox(cast(Any, socket))
    await outbox.send({"n": 1})
    async with asyncio.timeout(10):
        await outbox.send_all()
    assert socket.sent == []
