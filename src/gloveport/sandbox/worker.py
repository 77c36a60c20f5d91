"""One guest process that has said it is ready: its socket, its limits and how it died."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable

from gloveport.errors import SandboxError, WireError
from gloveport.sandbox import wire
from gloveport.sandbox.guest import Exit, Guest
from gloveport.sandbox.launcher import Launcher
from gloveport.types import MIB

READY_SECONDS = 30.0
REAP_SECONDS = 10.0
READ_BYTES = 256 * 1024
STDERR_BYTES = 16 * 1024
_BESIDE = (b"VmPTE:", b"VmSwap:")  # what a process has the machine hold beside its resident pages


class Worker:
    """A started, jailed engine that waits for a program. It is used for one run and then ended."""

    def __init__(self, guest: Guest, engine: str) -> None:
        self.guest = guest
        self.engine = engine
        self._idle_data, *held = _status_bytes(guest.pid, b"VmData:", b"VmRSS:", *_BESIDE)
        self.idle_mb = sum(held) / MIB
        self._cpu_clock = (~guest.pid << 3) | 2  # the kernel's clock id for a process's CPU time
        self._idle_cpu = self.cpu_seconds()
        self._loop = asyncio.get_running_loop()
        self._fd = guest.socket.fileno()  # for the loop, which has the socket itself written out each time it is new
        # One buffer for all reads, made while nobody waits: asking recv() for this much would allocate it each time.
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._unsent = bytearray()
        self._when_sent: Callable[[], None] | None = None
        self._ending: asyncio.Task[tuple[Exit, str]] | None = None

    @classmethod
    async def start(cls, launcher: Launcher, greet: Callable[[Guest], Awaitable[str]] | None = None) -> Worker:
        """A new worker, once `greet` knows that it is ready, and which engine it is; the prelude of most says so itself."""
        guest = await launcher.spawn()
        try:
            async with asyncio.timeout(READY_SECONDS):
                engine = await (greet or _read_ready)(guest)
            return cls(guest, engine)
        except (TimeoutError, WireError, OSError) as error:
            guest.kill()
            await guest.wait()
            said = _read_stderr(guest)
            guest.close()
            raise SandboxError(
                f"the engine did not start: {said or error or type(error).__name__}",
                code="sandbox-crashed",
                hint="run `gloveport doctor`",
            ) from None
        except BaseException:
            guest.close()
            raise

    def alive(self) -> bool:
        """False once the process has died while it waited."""
        return not self.guest.has_ended()

    def limit(self, *, memory_mb: int, cpu_seconds: float) -> None:
        """Put the run's caps on the process, from outside: memory above what it held idle, CPU time as a backstop."""
        self._idle_cpu = self.cpu_seconds()
        self.guest.set_limits(
            data_bytes=self._idle_data + memory_mb * MIB, cpu_seconds=int(self._idle_cpu + cpu_seconds) + 2
        )

    def cpu_seconds(self) -> float:
        """CPU time that the process has used so far; 0 when it is gone."""
        try:
            return time.clock_gettime(self._cpu_clock)
        except OSError:
            return 0.0

    def run_cpu_seconds(self) -> float:
        """CPU time used since the worker's run began."""
        return max(0.0, self.cpu_seconds() - self._idle_cpu)

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        """Give every piece that the guest sends to `on_bytes`; empty bytes mean that it is gone."""
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
        """Stop listening for a while; the guest waits when it has filled its socket."""
        self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Listen again."""
        if self._ending is None:
            self._loop.add_reader(self._fd, self._readable)

    def send(self, data: bytes) -> int:
        """Send bytes; what the socket does not take now goes when it can. How many wait for that."""
        if self._ending is not None:
            return 0
        if not self._unsent:
            try:
                sent = self.guest.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return 0  # it is gone; listen() tells
            if sent == len(data):
                return 0
            data = data[sent:]
            self._loop.add_writer(self._fd, self._send_rest)
        self._unsent += data
        return len(self._unsent)

    @property
    def unsent(self) -> int:
        """How many bytes the guest has not taken yet."""
        return len(self._unsent)

    def when_sent(self, callback: Callable[[], None]) -> None:
        """Call back once the guest has taken all that it was sent."""
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

    def resident_mb(self) -> float:
        """The memory that the process holds now; 0 when it is gone."""
        try:
            return held_bytes(self.guest.pid) / MIB
        except OSError:
            return 0.0

    def threads(self) -> int:
        """How many threads the process has; 0 when it is gone."""
        try:
            return count_threads(self.guest.pid)
        except OSError:
            return 0

    def peak_mb(self) -> float:
        """The most memory that the process has held at once; 0 when it is gone."""
        try:
            return held_bytes(self.guest.pid, b"VmHWM:") / MIB
        except OSError:
            return 0.0

    def end(self) -> asyncio.Task[tuple[Exit, str]]:
        """Hear no more of the process and kill it; await the task for how it ended and the tail of what it wrote to stderr.

        The kill itself goes out in the next turn of the loop: it takes half a millisecond, which a finished run would wait.
        """
        if self._ending is None:
            self._ending = self._loop.create_task(self._reap())
        return self._ending

    async def _reap(self) -> tuple[Exit, str]:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self.guest.kill()
        try:
            async with asyncio.timeout(REAP_SECONDS):
                exit_ = await self.guest.wait()
        except TimeoutError:  # the fork server does not answer; the kernel has its kill
            exit_ = Exit(None, signal.SIGKILL, 0.0, 0)
        said = _read_stderr(self.guest)
        self.guest.close()
        return exit_, said


async def _read_ready(guest: Guest) -> str:
    loop = asyncio.get_running_loop()
    reader = wire.FrameReader(4096, 8192)
    while True:
        data = await loop.sock_recv(guest.socket, 4096)
        if not data:
            raise WireError("it ended before it was ready")
        for frame in reader.feed(data):
            match wire.parse(frame):
                case ["ready", wire.PROTOCOL_VERSION, str(engine)]:
                    return engine
            raise WireError("it did not say ready")


def _read_stderr(guest: Guest) -> str:
    with contextlib.suppress(OSError):
        return os.read(guest.stderr, STDERR_BYTES).decode("utf-8", "replace").strip()
    return ""


def held_bytes(pid: int, pages: bytes = b"VmRSS:") -> int:
    """The memory that a process has the machine hold, with its page tables; OSError when it is gone.

    A page table costs the kernel 4 KiB for each 2 MiB in which the process has as much as read one empty page, and is
    neither in its resident size nor under any limit. What lies in swap is held, too.
    """
    return sum(_status_bytes(pid, pages, *_BESIDE))


def count_threads(pid: int) -> int:
    """How many threads a process has; OSError when it is gone."""
    return _status(pid, b"Threads:")[0]


def _status_bytes(pid: int, *fields: bytes) -> list[int]:
    return [kilobytes * 1024 for kilobytes in _status(pid, *fields)]


def _status(pid: int, *fields: bytes) -> list[int]:
    text = _read_status(f"/proc/{pid}")
    if b"\nVmRSS:" not in text:  # its first thread has ended; the others may well go on without it
        threads = (_read_status(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
        text = next((told for told in threads if b"\nVmRSS:" in told), b"")
    return [_read_number(text, field) for field in fields]


def _read_status(place: str) -> bytes:
    try:
        status = os.open(f"{place}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it has ended
        return b""
    try:
        return os.read(status, 4096)
    except OSError:
        return b""
    finally:
        os.close(status)


def _read_number(text: bytes, field: bytes) -> int:
    # From the start of a line: the first line holds the process's name, which it chooses, and which may be a field's.
    _, found, rest = text.partition(b"\n" + field)
    if not found:
        raise OSError("the process is gone")
    return int(rest.split(None, 1)[0])
