"""A Monty worker with the interface of the other engines' workers: frames in, frames out, by way of a driver."""

from __future__ import annotations

import asyncio
import importlib.resources
import logging
from collections.abc import Callable
from functools import partial

from gloveport.errors import WireError
from gloveport.sandbox import wire
from gloveport.sandbox.engines.monty import messages
from gloveport.sandbox.engines.monty.driver import Driver
from gloveport.sandbox.engines.monty.messages import HEADER, Completed, Done, GaveUp, Message, Raised
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.worker import Worker

logger = logging.getLogger(__name__)

MAX_INLINE_BYTES = 256 * 1024
"""A larger message is decoded in a thread: it would hold up the event loop."""

MAX_CALL_HEAD_BYTES = 32 * 1024
"""The first bytes of a message, which contain everything about a call but its arguments."""

NO_LIMIT = 2**40
MAX_GREETING_BYTES = 64 * 1024


class MontyWorker(Worker):
    """A worker that has run the prelude and waits for a program."""

    def __init__(self, guest: Guest, engine: str) -> None:
        super().__init__(guest, engine)
        self._requests: list[bytes] = []
        self._frames: list[bytes] = []
        self._driver = Driver(self._requests.append, self._frames.append)
        self._events = wire.FrameReader(NO_LIMIT, NO_LIMIT)
        self._inbox = bytearray()
        self._skipped = 0  # remaining bytes of a message that is too large
        self._decoding = False

    # From the host.

    def send(self, data: bytes) -> int:
        """Take events of the host and return how many bytes wait for the guest."""
        if self._ending is not None:
            return 0
        for payload in self._events.feed(data):
            self._guarded(partial(self._driver.take, payload))
        self._pass_on()
        if self._frames:
            self._loop.call_soon(self._deliver)
        return self.unsent

    @property
    def unsent(self) -> int:
        """The bytes that the guest has not taken yet."""
        return len(self._unsent) + self._driver.queued

    def _pass_on(self) -> None:
        if self._requests:
            data = b"".join(self._requests)
            self._requests.clear()
            super().send(data)
        if self._when_sent is not None and not self.unsent:
            callback, self._when_sent = self._when_sent, None
            callback()

    # From the worker.

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        """Pass every frame to `on_bytes`. Empty bytes mean that the guest has exited."""
        self._on_bytes = on_bytes
        super().listen(self._hear)

    def _hear(self, data: bytes) -> None:
        if not data:
            self._on_bytes(b"")
            return
        passed = min(self._skipped, len(data))
        self._skipped -= passed
        self._inbox += data[passed:]
        self._read_on()

    def _read_on(self) -> None:
        while not self._decoding and self._ending is None:
            payload = self._cut()
            if payload is None:
                break
            if len(payload) > MAX_INLINE_BYTES:
                self._decoding = True
                self._loop.run_in_executor(None, messages.parse, payload).add_done_callback(self._decoded)
            else:
                self._guarded(partial(self._take, payload))
        self._pass_on()
        self._deliver()

    def _decoded(self, decoded: asyncio.Future[Message]) -> None:
        self._decoding = False
        if decoded.cancelled() or self._ending is not None:
            return
        self._guarded(lambda: self._driver.hear(decoded.result()))
        self._read_on()

    def _take(self, payload: bytes) -> None:
        self._driver.hear(messages.parse(payload))

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except WireError as error:
            self._driver.break_off(error)
        except Exception:
            logger.exception("internal error in the Monty driver; the run ends")
            self._driver.break_off(WireError("internal error in Gloveport"))

    def _cut(self) -> bytes | None:
        """Return the next message once it is complete."""
        inbox = self._inbox
        if len(inbox) <= HEADER:
            return None
        size = int.from_bytes(inbox[:HEADER], "little")
        if size > self._driver.max_message:
            return self._refuse(size)
        if len(inbox) < HEADER + size:
            return None
        payload = bytes(inbox[HEADER : HEADER + size])
        del inbox[: HEADER + size]
        return payload

    def _refuse(self, size: int) -> None:
        """Skip a message that is too large. If it is a call, the call fails; anything else ends the run."""
        key = self._inbox[HEADER]
        if key == messages.CALL_KEY and len(self._inbox) < min(HEADER + size, MAX_CALL_HEAD_BYTES):
            return
        begun = bytes(self._inbox[HEADER:MAX_CALL_HEAD_BYTES])
        self._skipped = max(0, HEADER + size - len(self._inbox))
        del self._inbox[: HEADER + size]
        if key == messages.COMPLETE_KEY:
            self._driver.end_too_large(size)
        elif key == messages.CALL_KEY:
            self._guarded(lambda: self._driver.hear(messages.parse_oversized(begun, size)))
        else:
            self._on_bytes(size.to_bytes(wire.HEADER_BYTES))  # the host refuses a frame of this size itself

    def _deliver(self) -> None:
        if self._frames and self._ending is None:
            data = b"".join(map(wire.pack, self._frames))
            self._frames.clear()
            self._on_bytes(data)


async def check_out(guest: Guest, *, version: str) -> str:
    """Start the session of a worker, run the prelude in it, and return the name of the engine."""
    await _ask(guest, messages.checkout(version), Done)
    prelude = importlib.resources.files("gloveport.sandbox.engines.monty") / "guest" / "prelude.py"
    await _ask(guest, messages.feed_start(prelude.read_text("utf-8")), Completed)
    return f"monty {version}"


async def _ask(guest: Guest, request: bytes, wanted: type[Message]) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(guest.socket, request)
    header = await _receive(guest, HEADER)
    size = int.from_bytes(header, "little")
    if size > MAX_GREETING_BYTES:
        raise WireError("its answer is too long for Monty")
    message = messages.parse(await _receive(guest, size))
    if isinstance(message, wanted):
        return
    said = message.reason if isinstance(message, GaveUp) else message.message if isinstance(message, Raised) else message
    raise WireError(f"its checkout failed: {said}")


async def _receive(guest: Guest, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await asyncio.get_running_loop().sock_recv(guest.socket, size - len(data))
        if not more:
            raise WireError("it exited before it was ready")
        data += more
    return data
