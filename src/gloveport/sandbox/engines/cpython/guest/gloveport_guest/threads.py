"""Threads run inline: starting one runs its function at once, in the same thread.

Real threads would run in an order that no replay could repeat. A thread that only computes and returns does not notice. One
that waits for another would wait for ever, so that wait raises an error.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import concurrent.futures
import concurrent.futures.thread
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

ALONE = "this would wait for ever: threads run one after the other here, at their start; use asyncio"


def patch_threads(sleep: Callable[[float], None]) -> None:
    """Make threads and thread pools run inline. `sleep` passes time."""

    def start(self: threading.Thread) -> None:
        if self._started.is_set():
            raise RuntimeError("threads can only be started once")
        self._started.set()
        try:
            self.run()
        except SystemExit:
            pass
        except Exception:
            print(f"Exception in thread {self.name}:", file=sys.stderr)
            traceback.print_exc()

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        if not self._started.is_set():
            raise RuntimeError("cannot join thread before it is started")

    def is_alive(self: threading.Thread) -> bool:
        return self is threading.main_thread()

    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None:
            raise RuntimeError(ALONE)
        sleep(max(timeout, 0))
        return False

    def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future

    def start_new_thread(*args: Any, **options: Any) -> Any:
        raise RuntimeError("threads are not offered here: use asyncio")

    threading.Thread.start, threading.Thread.join, threading.Thread.is_alive = start, join, is_alive
    threading.Condition.wait = wait
    threading._start_new_thread = start_new_thread
    concurrent.futures.thread.ThreadPoolExecutor.submit = submit
