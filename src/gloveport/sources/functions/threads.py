"""Threads for functions that block: named, bounded, and daemons, so that a stuck function never delays the exit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gloveport.errors import CODES, ToolError

MAX_THREADS = 256

STILL_RUNNING = "the function can't be stopped, and goes on"


def left_running(error: BaseException) -> bool:
    """Return whether this is the cancellation of a call whose function goes on.

    It has no class of its own, because asyncio.timeout recognises only CancelledError itself.
    """
    return isinstance(error, asyncio.CancelledError) and STILL_RUNNING in error.args


class _ThreadJob:
    """A call of a function. `state` changes under the lock of its threads: caller or thread, whoever is first, decides."""

    __slots__ = ("args", "context", "function", "future", "keywords", "loop", "state")

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self.function, self.args, self.keywords = function, args, keywords
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[tuple[bool, Any]] = self.loop.create_future()
        self.state: Literal["waiting", "dropped", "running", "abandoned", "ended"] = "waiting"


class FunctionThreads:
    """Runs blocking functions, each in its own copy of the caller's context.

    Functions whose callers have gone must not keep others waiting: their threads don't count towards `max_threads`, and are
    replaced. A further call is refused only when as many again are left running.

    Invariant: a permit of `_idle` stands for a waiting thread that no job has claimed yet.
    """

    def __init__(self, name: str, max_threads: int = MAX_THREADS) -> None:
        self._name = name
        self._max_threads = max_threads
        self._jobs: queue.SimpleQueue[_ThreadJob | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._abandoned = 0
        self._closed = False

    def check(self) -> None:
        """Raise ToolError `tool-busy` when too many functions are left running."""
        if self._abandoned >= self._max_threads:
            message = f"{self._abandoned} functions of `{self._name}` still run for runs that have ended"
            raise ToolError(message, code="tool-busy", retryable=True, hint=CODES["tool-busy"].fix)

    async def run(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Return what the function returned. A cancelled caller stops waiting; a function that has begun goes on."""
        if self._closed:
            raise RuntimeError(f"the source {self._name} is closed")
        job = _ThreadJob(function, args, keywords)
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False):
            self._grow()
        try:
            # The exception travels as a value: a Future refuses to carry StopIteration.
            worked, value = await job.future
        except asyncio.CancelledError:
            if self._abandon(job):
                raise asyncio.CancelledError(STILL_RUNNING) from None
            raise
        if worked:
            return value
        raise value

    def close(self) -> None:
        """End the threads as they become idle."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._jobs.put(None)

    def _grow(self) -> None:
        if len(self._threads) - self._abandoned < self._max_threads:
            thread = threading.Thread(target=self._work, name=f"gloveport-{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _abandon(self, job: _ThreadJob) -> bool:
        """Give a job up; return whether its function goes on."""
        with self._lock:
            runs = job.state == "running"
            job.state = "abandoned" if runs else "dropped"
            self._abandoned += runs
        if runs and not self._jobs.empty():
            self._grow()
        return runs

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if self._begin(job):
                outcome = _call(job)
                if self._end(job):
                    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                        job.loop.call_soon_threadsafe(_settle, job.future, outcome)
                del outcome
            del job  # an idle thread must not keep the last arguments alive

    def _next(self) -> _ThreadJob | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._jobs.get()

    def _begin(self, job: _ThreadJob) -> bool:
        with self._lock:
            if job.state == "waiting":
                job.state = "running"
            return job.state == "running"

    def _end(self, job: _ThreadJob) -> bool:
        """Note the end of a job; return whether its caller still waits for the outcome."""
        with self._lock:
            self._abandoned -= job.state == "abandoned"
            waited = job.state == "running"
            job.state = "ended"
        return waited


def _call(job: _ThreadJob) -> tuple[bool, Any]:
    try:
        return True, job.context.run(job.function, *job.args, **job.keywords)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it
        return False, error


def _settle(future: asyncio.Future[tuple[bool, Any]], outcome: tuple[bool, Any]) -> None:
    if not future.done():
        future.set_result(outcome)
