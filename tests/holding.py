"""How long a function keeps the event loop from turning, whether it runs on the loop or in a thread beside it."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MAX_HOLD_MS = 50
MAX_ATTEMPTS = 4


def longest_hold_ms(function: Callable[..., Any], *args: Any) -> float:
    """Return the longest time, in CPU time of this process, for which no other thread got the interpreter lock.

    The objects of the test run are frozen: they are many more than a host has, and collecting garbage takes that much longer.
    """
    gc.collect()
    gc.freeze()
    try:
        # On a busy machine the kernel lets the thread that measures wait, too: the shortest of a few attempts counts.
        held = math.inf
        for _ in range(MAX_ATTEMPTS):
            held = min(held, _longest_hold_ms(function, *args))
            if held < MAX_HOLD_MS:
                break
        return held
    finally:
        gc.unfreeze()


def _longest_hold_ms(function: Callable[..., Any], *args: Any) -> float:
    ended = threading.Event()

    def run() -> None:
        with suppress(Exception):
            function(*args)
        ended.set()

    thread = threading.Thread(target=run)
    longest, last = 0.0, time.process_time()
    thread.start()
    while not ended.is_set():
        time.sleep(0.0005)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    thread.join()
    return 1000 * longest


def cpu_ms(function: Callable[..., Any], *args: Any) -> float:
    """Return the CPU time of a call in this thread; the better of two."""
    return 1000 * min(_cpu_seconds(function, *args) for _ in range(2))


def _cpu_seconds(function: Callable[..., Any], *args: Any) -> float:
    began = time.thread_time()
    with suppress(Exception):
        function(*args)
    return time.thread_time() - began
