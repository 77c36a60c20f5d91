"""The event loop that a Gloveport's sandboxes and tools live on: the first that used it, or one in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from gloveport.errors import OptionError

T = TypeVar("T")


class Home:
    """Brings work to its event loop, from that loop, from another one, and from threads without any."""

    def __init__(self, forsake: Callable[[], None]) -> None:
        self._forsake = forsake  # called when the loop was closed with things still living on it
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work, done at home."""
        here = asyncio.get_running_loop()
        home = self._settle(here)
        if home is here:
            return await work()
        return await asyncio.wrap_future(self._send(home, work))

    def block(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work, for a caller without an event loop; interrupting the caller cancels the work."""
        home = self._settle(None)
        if _running_loop() is home:
            raise OptionError("run_sync would wait for its own event loop", hint="use `await port.run(…)` here")
        future = self._send(home, work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def leave(self) -> None:
        """Stop the thread, if there is one; nothing lives here any more."""
        with self._lock:
            thread, loop, self._thread, self._loop = self._thread, self._loop, None, None
        if thread is not None and loop is not None and os.getpid() == self._process:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    @property
    def settled(self) -> bool:
        """True when something may live on a loop that can still be used."""
        return self._loop is not None and not self._loop.is_closed() and os.getpid() == self._process

    def _settle(self, here: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        if os.getpid() != self._process:
            raise OptionError("this Gloveport was made before a fork", hint="make a new Gloveport in the child process")
        with self._lock:
            if self._loop is not None and self._loop.is_closed():
                self._forsake()
                self._loop = None
            if self._loop is None:
                self._loop = here or self._start_thread()
            return self._loop

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_turn, args=(loop,), name="gloveport", daemon=True)
        self._thread.start()
        return loop

    def _send(self, home: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        if not home.is_running() and self._thread is None:
            raise OptionError(
                "the event loop that this Gloveport lives on is not running",
                hint="use one event loop, or run_sync from the start",
            )
        return asyncio.run_coroutine_threadsafe(work(), home)


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
