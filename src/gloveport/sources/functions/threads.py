"""Threads for functions that block: named, bounded, and daemons, so that a stuck function never holds up the exit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gloveport.errors import CODES, ToolError

MOST = 256


GOES_ON = "the function can't be stopped, and goes on"


def left_running(error: BaseException) -> bool:
    """True for the cancellation of a call whose function goes on. It is no class of its own: asyncio.timeout knows one."""
    return isinstance(error, asyncio.CancelledError) and GOES_ON in error.args


class _Job:
    """A call of a function. `state` goes on under the lock of its Threads: who comes first, caller or thread, decides."""

    __slots__ = ("args", "context", "function", "future", "keywords", "loop", "state")

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self.function, self.args, self.keywords = function, args, keywords
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[tuple[bool, Any]] = self.loop.create_future()
        self.state: Literal["waiting", "dropped", "running", "left", "ended"] = "waiting"


class Threads:
    """Runs blocking functions, each in its own copy of the caller's context.

    Functions whose callers have gone must not keep others waiting: their threads don't count among the `most`, and are
    replaced. Only when as many again are left running is a further call refused.

    Invariant: a permit of `_idle` stands for a thread that waits for a job nobody has claimed it for.
    """

    def __init__(self, name: str, most: int = MOST) -> None:
        self._name = name
        self._most = most
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._left = 0
        self._closed = False

    async def run(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What the function returned. A caller that is cancelled stops waiting; a function that has begun goes on."""
        if self._closed:
            raise RuntimeError(f"the source {self._name} is closed")
        if self._left >= self._most:
            message = f"{self._left} functions of `{self._name}` still run for runs that have ended"
            raise ToolError(message, code="tool-busy", retryable=True, hint=CODES["tool-busy"].fix)
        job = _Job(function, args, keywords)
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False):
            self._grow()
        try:
            # The exception travels as a value: a Future refuses to carry StopIteration.
            worked, value = await job.future
        except asyncio.CancelledError:
            if self._leave(job):
                raise asyncio.CancelledError(GOES_ON) from None
            raise
        if worked:
            return value
        raise value

    def close(self) -> None:
        """Ends the threads as they become idle."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._jobs.put(None)

    def _grow(self) -> None:
        if len(self._threads) - self._left < self._most:
            thread = threading.Thread(target=self._work, name=f"gloveport-{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _leave(self, job: _Job) -> bool:
        """Gives a job up; true when its function runs on."""
        with self._lock:
            runs = job.state == "running"
            job.state = "left" if runs else "dropped"
            self._left += runs
        if runs and not self._jobs.empty():
            self._grow()
        return runs

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if self._begin(job):
                outcome = _do(job)
                if self._end(job):
                    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                        job.loop.call_soon_threadsafe(_settle, job.future, outcome)
                del outcome
            del job  # an idle thread must not keep the last arguments alive

    def _next(self) -> _Job | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._jobs.get()

    def _begin(self, job: _Job) -> bool:
        with self._lock:
            if job.state == "waiting":
                job.state = "running"
            return job.state == "running"

    def _end(self, job: _Job) -> bool:
        """True when somebody waits for the outcome."""
        with self._lock:
            self._left -= job.state == "left"
            waited = job.state == "running"
            job.state = "ended"
        return waited


def _do(job: _Job) -> tuple[bool, Any]:
    try:
        return True, job.context.run(job.function, *job.args, **job.keywords)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
        return False, error


def _settle(future: asyncio.Future[tuple[bool, Any]], outcome: tuple[bool, Any]) -> None:
    if not future.done():
        future.set_result(outcome)
