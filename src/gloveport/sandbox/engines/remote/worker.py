"""A worker at a sandbox host, with the interface of a local one: frames go out and come in as messages of a WebSocket."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable
from typing import Any

from gloveport.errors import WireError
from gloveport.sandbox.engines.remote import messages
from gloveport.sandbox.engines.remote.messages import MAX_PIECE_BYTES, Connection, Ended, Ready
from gloveport.sandbox.exit_reason import exit_error, limit_error, place_in
from gloveport.sandbox.guest import Exit
from gloveport.sandbox.start_event import Preparation
from gloveport.sandbox.watchdog import ExceededLimit
from gloveport.types import Limits

GRACE_SECONDS = 2.0  # after the wall-clock limit, for the sandbox host to report it; then this side ends the run itself


class RemoteWorker:
    """A worker that a sandbox host has lent us for one run. Closing the connection gives it back, and ends it."""

    def __init__(self, connection: Connection, ready: Ready) -> None:
        self.engine = ready.engine
        self.idle_mb = ready.idle_mb
        self.lost: str | None = None
        self.prepared: Preparation | None = None
        self._connection = connection
        self._highest = ready.limits
        self._limits = ready.limits  # those of the run, once it has begun
        self._loop = asyncio.get_running_loop()
        self._usage = 0.0, 0.0
        self._ended: Ended | None = None
        self._exceeded: ExceededLimit | None = None
        self._on_bytes: Callable[[bytes], None] = lambda data: None
        self._tasks: list[asyncio.Task[None]] = []
        self._inbox: deque[bytes] = deque()
        self._listening = asyncio.Event()
        self._outbox: deque[bytes | str] = deque()
        self._unsent = 0
        self._has_outgoing = asyncio.Event()
        self._when_sent: Callable[[], None] | None = None
        self._clock: _Clock | None = None
        self._ending: asyncio.Task[tuple[Exit, str]] | None = None

    def alive(self) -> bool:
        """Return whether it can take a program."""
        return self._ending is None and self.lost is None and self._ended is None

    async def prepare(self, preparation: Preparation) -> bool:
        """Return False: a sandbox host lends a process for one run, and none is asked for before it."""
        return False

    # Limits. The sandbox host enforces them; a clock here ends the run if it does not.

    def take_workspace(self) -> None:
        """Return None: what a program does at a sandbox host is not kept."""

    def limit(self, limits: Limits, on_exceeded: Callable[[], None]) -> None:
        """Begin the run with these limits, cut down to the highest that the sandbox host grants."""
        self._limits = messages.lower(limits, self._highest)
        self._post(messages.limit(limits))

        def expired() -> None:
            self._exceeded = "time-limit"
            on_exceeded()

        self._clock = _Clock(self._loop, self._limits.wall_seconds + GRACE_SECONDS, expired)

    def pause_clock(self) -> None:
        """Stop the wall clock of the run until `resume_clock`. CPU time and memory stay limited."""
        if self._clock is not None and self._clock.pause():
            self._post(messages.text("pause"))

    def resume_clock(self) -> None:
        """Let the wall clock go on."""
        if self._clock is not None and self._clock.resume():
            self._post(messages.text("go-on"))

    def run_cpu_seconds(self) -> float:
        """Return the CPU time that the sandbox host claims for the run."""
        return self._usage[0]

    def peak_mb(self) -> float:
        """Return the peak memory that the sandbox host claims for the process."""
        return self._usage[1]

    def limit_of(self, exit_: Exit) -> ExceededLimit | None:
        """Return the limit for which the process has died."""
        return self._exceeded or (self._ended.exceeded if self._ended is not None else None)

    def death(self, exit_: Exit, stderr: str, limits: Limits) -> dict[str, Any]:
        """Return the error of a run whose process has died, or of which nobody knows what became of it."""
        if (limit := self.limit_of(exit_)) is not None:
            return {**limit_error(limit, self._limits), **place_in(stderr)}
        if self.lost is not None:
            return {"code": "sandbox-lost", "message": self.lost}
        return exit_error(exit_, stderr, self._limits, self.idle_mb)

    # Frames of the guest.

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        """Pass everything that the guest sends to `on_bytes`; empty bytes mean that it has ended, or is lost."""
        self._on_bytes = on_bytes
        self._listening.set()
        self._tasks.append(self._loop.create_task(self._read()))

    def pause(self) -> None:
        """Stop listening until `resume`. The guest blocks once every buffer between us is full."""
        self._listening.clear()

    def resume(self) -> None:
        """Listen again."""
        self._listening.set()
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Pass on what has come. The loop calls this: the calls of a program can't begin inside another task."""
        while self._inbox and self._listening.is_set() and self._ending is None:
            self._on_bytes(self._inbox.popleft())

    def _keep(self, data: bytes) -> None:
        self._inbox.append(data)
        self._loop.call_soon(self._deliver)

    async def _read(self) -> None:
        try:
            while self._ended is None:
                message = await self._connection.receive()
                await self._listening.wait()
                if isinstance(message, str):
                    self._ended = messages.read_ended(messages.parse(message), self._limits, self.idle_mb)
                else:
                    data, *usage = messages.split_usage(message, self._limits, self.idle_mb)
                    self._usage = usage[0], usage[1]
                    self._keep(data)
        except ConnectionError as error:
            self._lose(f"the connection to the sandbox host was lost ({error})")
        except WireError as error:
            self._lose(f"the sandbox host broke the protocol: {error.message}")
        self._keep(b"")

    def _lose(self, problem: str) -> None:
        self.lost = f"{problem}; nobody knows how far the program got, and it is not started again"

    # Events for the guest.

    def send(self, data: bytes) -> int:
        """Send bytes in the background; return how many bytes still wait."""
        if self._ending is not None:
            return 0
        for start in range(0, len(data), MAX_PIECE_BYTES):
            self._post(data[start : start + MAX_PIECE_BYTES])
        return self._unsent

    def _post(self, message: bytes | str) -> None:
        self._outbox.append(message)
        self._unsent += len(message)
        self._has_outgoing.set()
        if len(self._tasks) == 0 or self._tasks[0].get_name() != "write":
            self._tasks.insert(0, self._loop.create_task(self._write(), name="write"))

    @property
    def unsent(self) -> int:
        """The number of bytes that the connection has not taken yet."""
        return self._unsent

    def when_sent(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the connection has taken everything."""
        self._when_sent = callback

    async def _write(self) -> None:
        try:
            while True:
                while self._outbox:
                    message = self._outbox.popleft()
                    await self._connection.send(message)
                    self._unsent -= len(message)
                callback, self._when_sent = self._when_sent, None
                if callback is not None:
                    self._loop.call_soon(callback)
                self._has_outgoing.clear()
                await self._has_outgoing.wait()
        except ConnectionError:
            self._outbox.clear()  # the reader reports it

    # The end.

    def end(self, delay: float = 0) -> asyncio.Task[tuple[Exit, str]]:
        """Close the connection, which ends the process there; the task yields how it ended, as far as that is known."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._close(delay))
        return self._ending

    async def _close(self, delay: float) -> tuple[Exit, str]:
        if delay:
            await asyncio.sleep(delay)
        if self._clock is not None:
            self._clock.stop()
        for task in self._tasks:
            task.cancel()
        await self._connection.close()
        if self._ended is not None:
            return self._ended.exit, self._ended.stderr
        return Exit(None, signal.SIGKILL, self._usage[0], int(self._usage[1] * 1024)), ""


class _Clock:
    """Calls back after so many seconds, without the time for which it was paused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, on_expired: Callable[[], None]) -> None:
        self._loop = loop
        self._on_expired = on_expired
        self._left = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.resume()

    def pause(self) -> bool:
        """Stop it; return whether it ran."""
        if self._timer is None:
            return False
        self._left = max(0.0, self._timer.when() - self._loop.time())
        self.stop()
        return True

    def resume(self) -> bool:
        """Let it go on; return whether it stood still."""
        if self._timer is not None:
            return False
        self._timer = self._loop.call_later(self._left, self._on_expired)
        return True

    def stop(self) -> None:
        """Stop it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
