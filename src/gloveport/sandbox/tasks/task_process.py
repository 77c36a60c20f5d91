"""One task process as the host sees it: it gets a task, may ask questions, and is ended when it takes too long."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gloveport.errors import CODES, ProgramError, SandboxError, SourceError, TooComplexError, WireError
from gloveport.sandbox import wire
from gloveport.sandbox.tasks.result_cache import ResultCache
from gloveport.sandbox.watchdog import WATCHDOG, Watch, Watched
from gloveport.sandbox.worker import RESIDENT_SLACK_FACTOR, Worker
from gloveport.types import MIB

logger = logging.getLogger("gloveport")

READ_BYTES = 256 * 1024
MAX_JOINED_BYTES = 1024 * 1024
MAX_WALL_SECONDS = 120.0  # a process that a hostile text controls may wait for ever without using its CPU time
MAX_ERROR_BYTES = 64 * 1024
MAX_TEXT_CHARS = 4000
MAX_QUESTIONS = 10_000

_PROBLEMS = {
    "time-limit": f"takes more than {MAX_WALL_SECONDS:g} s",
    "cpu-limit": "takes too much CPU time",
    "memory-limit": "takes too much memory",
}

Answer = Callable[[bytes], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class TaskBudget:
    """What one task may use. The CPU time is the process's own, so that a busy machine changes no answer."""

    cpu_seconds: float
    cpu_seconds_per_mib: float  # of its input
    memory_mb: int
    max_result_bytes: int = 16 * MIB


class _TaskError(msgspec.Struct):
    """An error that a task raised, as its process describes it."""

    type: str
    trace: str = ""
    code: str = ""
    message: str = ""
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    frame: str | None = None
    tool: str | None = None
    package: str | None = None


class TaskKilledError(TooComplexError):
    """A task did not end because its process was killed, not by us."""


class TaskProcess:
    """A started, jailed process. It runs one task at a time; after a failure of its own it is of no further use."""

    def __init__(self, worker: Worker, budget: TaskBudget) -> None:
        self.worker = worker
        self.tasks = 0
        self.usable = True
        self.results = ResultCache()
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        worker.limit_memory(budget.memory_mb)

    async def run(self, task: str, parts: Sequence[bytes], answer: Answer | None = None) -> list[bytes]:
        """Return what the task yields. Raise its SourceError or ProgramError, or TooComplexError over the budget."""
        self.usable = False  # until it has answered: a cancelled task leaves the process in the middle of something
        self.tasks += 1
        watch = self._watch(sum(map(len, parts)))
        try:
            await self._send(task, parts)
            result, questions = await self._receive(answer)
        except (ConnectionError, WireError) as error:
            if isinstance(error, WireError) and error.code != "frame-too-large":
                raise
            if watch.exceeded is None and isinstance(error, ConnectionError) and await self._was_killed():
                raise TaskKilledError("the process that reads it was killed") from None
            raise TooComplexError(f"reading it {_PROBLEMS.get(watch.exceeded or '', 'makes the parser fail')}") from None
        finally:
            watch.stop()
        if not questions:  # the answers may be others the next time
            self.results.add((task.encode(), *parts), result)
        return result

    async def _was_killed(self) -> bool:
        """Return whether somebody else ended the process, or the machine did for want of memory: no fault of the text."""
        exit_, _ = await self.worker.end()
        return exit_.signal == signal.SIGKILL

    async def _send(self, task: str, parts: Sequence[bytes]) -> None:
        """Send a request. Small parts go out in one write; a large one is never copied as a whole."""
        unsent = [wire.pack(b"T" + task.encode())]
        for part in parts:
            unsent.append((len(part) + 1).to_bytes(wire.HEADER_BYTES) + b"P")
            if len(part) <= MAX_JOINED_BYTES:
                unsent.append(part)
                continue
            await self._loop.sock_sendall(self.worker.guest.socket, b"".join(unsent))
            unsent = []
            for start in range(0, len(part), MAX_JOINED_BYTES):
                await self._loop.sock_sendall(self.worker.guest.socket, part[start : start + MAX_JOINED_BYTES])
        await self._loop.sock_sendall(self.worker.guest.socket, b"".join((*unsent, wire.pack(b"G"))))

    def _watch(self, size: int) -> Watch:
        worker, budget = self.worker, self._budget
        return WATCHDOG.watch(
            Watched(
                worker.guest.pid,
                worker.guest.pidfd,
                deadline=time.monotonic() + MAX_WALL_SECONDS,
                max_cpu_seconds=worker.cpu_seconds() + budget.cpu_seconds + budget.cpu_seconds_per_mib * size / MIB,
                max_held_bytes=(worker.idle_mb + budget.memory_mb * RESIDENT_SLACK_FACTOR) * MIB,
            )
        )

    async def _receive(self, answer: Answer | None) -> tuple[list[bytes], int]:
        """Return what the task yields, and how many questions it asked."""
        reader = wire.FrameReader(self._budget.max_result_bytes, self._budget.max_result_bytes)
        result: list[bytes] = []
        questions = 0
        while True:
            data = await self._loop.sock_recv(self.worker.guest.socket, READ_BYTES)
            if not data:
                raise ConnectionResetError
            for frame in reader.feed(data):
                match frame[:1]:
                    case b"R":
                        result.append(frame[1:])
                    case b"Q" if answer is not None and questions < MAX_QUESTIONS:
                        questions += 1
                        await self._answer(await answer(frame[1:]))
                        await asyncio.sleep(0)  # a process that only asks must not hold the loop
                    case b"D":
                        self.usable = True
                        return result, questions
                    case b"E":
                        self.usable = True
                        raise _error(frame[1:])
                    case b"L":
                        raise TooComplexError("it is nested too deeply, or takes too much memory to read")
                    case _:
                        raise WireError("a task process broke the protocol")

    async def _answer(self, answer: bytes | None) -> None:
        frame = b"A0" if answer is None else b"A1" + answer
        await self._loop.sock_sendall(self.worker.guest.socket, wire.pack(frame))


def _error(data: bytes) -> Exception:
    """Return the error that a task describes, within bounds; a defect of ours is logged and becomes a SandboxError."""
    try:
        if len(data) > MAX_ERROR_BYTES:
            raise WireError("a task process describes an error at great length")
        error = msgspec.json.decode(data, type=_TaskError)
    except (msgspec.DecodeError, RecursionError):
        raise WireError("a task process describes an error in an unknown form") from None
    message, hint = error.message[:MAX_TEXT_CHARS], (error.hint or "")[:MAX_TEXT_CHARS] or None
    code = error.code if error.code in CODES else None
    if error.type == "SourceError":
        return SourceError(message, code=code, hint=hint)
    if error.type == "ProgramError":
        place: dict[str, Any] = {"line": error.line, "column": error.column, "frame": (error.frame or "")[:MAX_TEXT_CHARS]}
        about = {name: (getattr(error, name) or "")[:MAX_TEXT_CHARS] or None for name in ("tool", "package")}
        return ProgramError(message, code=code, hint=hint, **about, **place)
    logger.error("a task failed: %s: %r", error.type[:100], error.trace[-MAX_TEXT_CHARS:])
    return SandboxError("a task failed with a defect of Gloveport; the log has the details", code="internal-error")
