"""The event loop of a Gloveport: the first one that used it, or one in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from gloveport.errors import OptionError

T = TypeVar("T")


class Closing(Protocol):
    """Something to close before the process ends."""

    def close_sync(self) -> None:
        """Close it."""
        ...


class PortLoop:
    """Runs work on one event loop for callers on that loop, on another loop, and in threads without one."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed  # called when somebody closed the loop while sandboxes still used it
        self._at_exit = False
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the work on the loop and return its result."""
        running = asyncio.get_running_loop()
        loop = self._acquire(running)
        if loop is running:
            return await work()
        return await asyncio.wrap_future(self._submit(loop, work))

    def block(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the work for a caller without an event loop and return its result. Interrupting the caller cancels it."""
        loop = self._acquire(None)
        if _running_loop() is loop:
            raise OptionError("run_sync would wait for its own event loop", hint="use `await port.run(…)` here")
        future = self._submit(loop, work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Stop the thread, if there is one. Nothing may use the loop any more."""
        with self._lock:
            thread, loop, self._thread, self._loop = self._thread, self._loop, None, None
        if thread is not None and loop is not None and os.getpid() == self._process:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    @property
    def in_use(self) -> bool:
        """True when there is a loop that can still run work."""
        return self._loop is not None and not self._loop.is_closed() and os.getpid() == self._process

    def _acquire(self, running: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        if os.getpid() != self._process:
            raise OptionError("this Gloveport was made before a fork", hint="make a new Gloveport in the child process")
        with self._lock:
            if self._loop is not None and self._loop.is_closed():
                self._on_closed()
                self._loop = None
            if self._loop is None:
                self._loop = running or self._start_thread()
            return self._loop

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run_forever, args=(loop,), name="gloveport", daemon=True)
        self._thread.start()
        return loop

    def _submit(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        if not loop.is_running() and self._thread is None:
            raise OptionError(
                "the event loop of this Gloveport is not running",
                hint="use one event loop, or run_sync from the start",
            )
        return asyncio.run_coroutine_threadsafe(work(), loop)

    def close_at_exit(self, port: Closing) -> None:
        """Close the port at the exit of the process that created it, if it still exists; not in a fork."""
        if not self._at_exit:
            self._at_exit = True
            atexit.register(_close_if_alive, weakref.ref(port), os.getpid())


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _close_if_alive(reference: weakref.ref[Closing], process: int) -> None:
    port = reference()
    if port is not None and os.getpid() == process:
        port.close_sync()
