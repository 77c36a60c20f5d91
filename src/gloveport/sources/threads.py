"""Threads for functions that block: named, bounded, and daemons, so that a stuck function never holds up the exit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

MOST = 64


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[tuple[bool, Any]]
    context: contextvars.Context
    function: Callable[..., Any]
    args: Sequence[Any]
    keywords: Mapping[str, Any]


class Threads:
    """Runs blocking functions, each in its own copy of the caller's context.

    Invariant: a permit of `_idle` stands for a thread that waits for a job nobody has claimed it for.
    """

    def __init__(self, name: str, most: int = MOST) -> None:
        self._name = name
        self._most = most
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def run(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What the function returned. A caller that is cancelled stops waiting; the function runs to its end."""
        if self._closed:
            raise RuntimeError(f"the source {self._name} is closed")
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), contextvars.copy_context(), function, args, keywords)
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=f"gloveport-{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        # The exception travels as a value: a Future refuses to carry StopIteration.
        worked, value = await job.future
        if worked:
            return value
        raise value

    def close(self) -> None:
        """Ends the threads as they become idle."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not job.future.cancelled():
                _do(job)
            del job  # an idle thread must not keep the last arguments alive

    def _next(self) -> _Job | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._jobs.get()


def _do(job: _Job) -> None:
    try:
        outcome = (True, job.context.run(job.function, *job.args, **job.keywords))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
        outcome = (False, error)
    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
        job.loop.call_soon_threadsafe(_settle, job.future, outcome)


def _settle(future: asyncio.Future[tuple[bool, Any]], outcome: tuple[bool, Any]) -> None:
    if not future.done():
        future.set_result(outcome)
