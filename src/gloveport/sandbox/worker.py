"""One guest process that has reported ready: its socket, its limits and how it died."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from gloveport.errors import SandboxError, WireError
from gloveport.sandbox import wire
from gloveport.sandbox.exit_reason import exit_error, limit_error, place_in
from gloveport.sandbox.guest import Exit, Guest
from gloveport.sandbox.jail.limits import MAX_THREADS
from gloveport.sandbox.launcher import Launcher
from gloveport.sandbox.process_status import data_bytes, held_bytes
from gloveport.sandbox.start_event import Preparation
from gloveport.sandbox.watchdog import WATCHDOG, ExceededLimit, Watch, Watched
from gloveport.types import MIB, Limits

READY_TIMEOUT_SECONDS = 60.0
REAP_TIMEOUT_SECONDS = 60.0
# To kill a worker and to start another one takes the loop milliseconds: the outcome of a run reaches its caller before.
END_DELAY_SECONDS = 0.002
READ_BUFFER_BYTES = 256 * 1024
MAX_STDERR_BYTES = 16 * 1024
# The engine whose guests write their stack to stderr at this signal. It would end any other.
PLACING_ENGINE, PLACE_SIGNAL = "cpython ", signal.SIGUSR1
MAX_PREPARATION_SECONDS = 10.0  # of CPU time
MAX_PREPARED_MB = 512  # above the idle size
RESIDENT_SLACK_FACTOR = 1.1  # resident memory may exceed the limit by this factor


class Worker:
    """A started, jailed engine that waits for a program. It is used for one run and then ended."""

    lost: str | None = None

    def __init__(self, guest: Guest, engine: str) -> None:
        self.guest = guest
        self.engine = engine
        self.prepared: Preparation | None = None
        self._idle_data = data_bytes(guest.pid)
        self.idle_mb = held_bytes(guest.pid) / MIB
        self._cpu_clock = (~guest.pid << 3) | 2  # the kernel's clock id for the CPU time of a process
        self._idle_cpu = self.cpu_seconds()
        self._loop = asyncio.get_running_loop()
        self._fd = guest.socket.fileno()  # for the loop: given a socket object, it would format it each time it is added
        # One buffer for all reads, allocated while no run waits: recv() of this size would allocate it each time.
        self._buffer = memoryview(bytearray(READ_BUFFER_BYTES))
        self._unsent = bytearray()
        self._when_sent: Callable[[], None] | None = None
        self._ending: asyncio.Task[tuple[Exit, str]] | None = None
        self._watch: Watch | None = None
        self._ends_at_once = False

    @classmethod
    async def start(cls, launcher: Launcher, greet: Callable[[Guest], Awaitable[str]] | None = None) -> Worker:
        """Start a worker and wait until it is ready. `greet` returns its engine; by default a frame names it."""
        guest = await launcher.spawn()
        try:
            async with asyncio.timeout(READY_TIMEOUT_SECONDS):
                engine = await (greet or _read_ready)(guest)
            return cls(guest, engine)
        except (TimeoutError, WireError, OSError) as error:
            guest.kill()
            await guest.wait()
            stderr = _read_stderr(guest)
            guest.close()
            raise SandboxError(
                f"the engine did not start: {stderr or error or type(error).__name__}",
                code="sandbox-crashed",
                hint="run `gloveport doctor`",
            ) from None
        except BaseException:
            guest.close()
            raise

    async def prepare(self, preparation: Preparation) -> bool:
        """Have the process import modules; return whether it did so, and nothing else. Otherwise it is of no use any more.

        It has limits of its own meanwhile. Its memory counts for the run that comes, its CPU time does not.
        """
        cpu, held = self.cpu_seconds() + MAX_PREPARATION_SECONDS, (self.idle_mb + MAX_PREPARED_MB) * MIB
        watched = Watched(
            self.guest.pid, self.guest.pidfd, max_cpu_seconds=cpu, max_held_bytes=held, max_threads=MAX_THREADS
        )
        watch = WATCHDOG.watch(watched)
        try:
            async with asyncio.timeout(2 * MAX_PREPARATION_SECONDS):
                self.send(wire.pack(preparation.event()))
                answer = await _read_message(self.guest)
        except (TimeoutError, WireError, OSError):
            return False
        finally:
            watch.stop()
        self.prepared = preparation
        return answer == ["prepared", True]

    def alive(self) -> bool:
        """Return whether the process is still running."""
        return not self.guest.has_ended()

    def take_workspace(self) -> int | None:
        """Return the descriptor of the workspace, which is then the caller's to close; None if it has none."""
        self._ends_at_once = True  # whoever has it waits for the end
        return self.guest.take_workspace()

    def limit(self, limits: Limits, on_exceeded: Callable[[], None]) -> None:
        """Set the run's limits, from outside, until the process is dead. `on_exceeded` is called in the loop, soon.

        The kernel limits the memory that the program allocates above its idle size, and CPU time as a backstop. The
        watchdog ends the process for the rest, and does not need the loop for that.
        """
        self._idle_cpu = self.cpu_seconds()
        cpu_seconds = self._idle_cpu + limits.cpu_seconds
        data_bytes = self._idle_data + limits.memory_mb * MIB
        self.guest.set_limits(data_bytes=data_bytes, cpu_seconds=int(cpu_seconds) + 2)
        self._watch = WATCHDOG.watch(
            Watched(
                self.guest.pid,
                self.guest.pidfd,
                deadline=time.monotonic() + limits.wall_seconds,
                max_cpu_seconds=cpu_seconds,
                max_held_bytes=(self.idle_mb + limits.memory_mb * RESIDENT_SLACK_FACTOR) * MIB,
                max_threads=MAX_THREADS,
                on_exceeded=partial(self._tell_loop, on_exceeded),
                place_signal=PLACE_SIGNAL if self.engine.startswith(PLACING_ENGINE) else None,
            )
        )

    def pause_clock(self) -> None:
        """Stop the wall clock of the run until `resume_clock`. CPU time and memory stay limited."""
        if self._watch is not None:
            self._watch.pause()

    def resume_clock(self) -> None:
        """Let the wall clock go on."""
        if self._watch is not None:
            self._watch.resume()

    def limit_memory(self, memory_mb: int) -> None:
        """Limit the memory that the process allocates above its idle size."""
        self.guest.set_limits(data_bytes=self._idle_data + memory_mb * MIB, cpu_seconds=None)

    @property
    def exceeded(self) -> ExceededLimit | None:
        """The limit for which the watchdog has killed the process."""
        return None if self._watch is None else self._watch.exceeded

    def limit_of(self, exit_: Exit) -> ExceededLimit | None:
        """Return the limit for which the process has died.

        The watchdog signals a process before it kills it, so that it prints its traceback. If a stack frame is incomplete
        at that moment, the process faults instead.
        """
        if self.exceeded is None and self._watch is not None and exit_.signal == signal.SIGSEGV:
            return self._watch.asked_at
        return self.exceeded

    def death(self, exit_: Exit, stderr: str, limits: Limits) -> dict[str, Any]:
        """Return the error of a run whose process has died."""
        if (limit := self.limit_of(exit_)) is not None:
            was_running = self._watch is not None and self._watch.was_running
            return {**limit_error(limit, limits), **place_in(stderr), "was_running": was_running}
        return exit_error(exit_, stderr, limits, self.idle_mb)

    def _tell_loop(self, on_exceeded: Callable[[], None], _: ExceededLimit) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            # By a timer, because a loop reads sockets before it runs timers: what the guest sent in time comes first.
            self._loop.call_soon_threadsafe(self._loop.call_later, 0, on_exceeded)

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process has used so far; 0 after it has ended."""
        try:
            return time.clock_gettime(self._cpu_clock)
        except OSError:
            return 0.0

    def run_cpu_seconds(self) -> float:
        """Return the CPU time used since the worker's run began."""
        return max(0.0, self.cpu_seconds() - self._idle_cpu)

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        """Pass everything that the guest sends to `on_bytes`; empty bytes mean that it has ended."""
        buffer, receive = self._buffer, self.guest.socket.recv_into

        def readable() -> None:
            if self._ending is not None:
                return
            try:
                size = receive(buffer)
            except BlockingIOError:
                return
            except OSError:
                size = 0
            if not size:
                self._loop.remove_reader(self._fd)
            on_bytes(bytes(buffer[:size]))

        self._readable = readable
        self._loop.add_reader(self._fd, readable)

    def pause(self) -> None:
        """Stop listening until `resume`. The guest blocks once its socket is full."""
        self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Listen again."""
        if self._ending is None:
            self._loop.add_reader(self._fd, self._readable)

    def send(self, data: bytes) -> int:
        """Send bytes, now or when the socket accepts them; return how many bytes still wait."""
        if self._ending is not None:
            return 0
        if not self._unsent:
            try:
                sent = self.guest.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return 0  # it has ended; listen() reports it
            if sent == len(data):
                return 0
            data = data[sent:]
            self._loop.add_writer(self._fd, self._send_rest)
        self._unsent += data
        return len(self._unsent)

    @property
    def unsent(self) -> int:
        """The number of bytes that the guest has not read yet."""
        return len(self._unsent)

    def when_sent(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the guest has read everything sent to it."""
        self._when_sent = callback

    def _send_rest(self) -> None:
        if self._ending is not None:
            return
        try:
            sent = self.guest.socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._fd)
            callback, self._when_sent = self._when_sent, None
            if callback is not None:
                callback()

    def peak_mb(self) -> float:
        """Return the peak memory of the process; 0 after it has ended."""
        try:
            return held_bytes(self.guest.pid, b"VmHWM:") / MIB
        except OSError:
            return 0.0

    def end(self, delay: float = 0) -> asyncio.Task[tuple[Exit, str]]:
        """Kill the process, after a delay if one is given; the returned task yields its exit and the end of its stderr."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._reap(delay))
        return self._ending

    async def _reap(self, delay: float) -> tuple[Exit, str]:
        if delay and not self._ends_at_once:
            await asyncio.sleep(delay)
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self.guest.kill()
        if self._watch is not None:
            self._watch.stop()
        try:
            async with asyncio.timeout(REAP_TIMEOUT_SECONDS):
                exit_ = await self.guest.wait()
        except TimeoutError:  # the fork server does not answer; the kernel has the signal
            exit_ = Exit(None, signal.SIGKILL, 0.0, 0)
        stderr = _read_stderr(self.guest)
        self.guest.close()
        return exit_, stderr


async def _read_ready(guest: Guest) -> str:
    match await _read_message(guest):
        case ["ready", wire.PROTOCOL_VERSION, str(engine)]:
            return engine
    raise WireError("its first message was not `ready`")


async def _read_message(guest: Guest) -> list[Any]:
    """Return the one message that a guest sends before its run begins, or is about to."""
    loop = asyncio.get_running_loop()
    reader = wire.FrameReader(4096, 8192)
    while True:
        data = await loop.sock_recv(guest.socket, 4096)
        if not data:
            raise WireError("it ended before it was ready")
        if frames := reader.feed(data):
            if len(frames) > 1:
                raise WireError("it sent more than one message")
            return wire.parse(frames[0])


def _read_stderr(guest: Guest) -> str:
    with contextlib.suppress(OSError):
        return os.read(guest.stderr, MAX_STDERR_BYTES).decode("utf-8", "replace").strip()
    return ""
