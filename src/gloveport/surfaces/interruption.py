"""Run the work of a command so that Ctrl-C and SIGTERM end it, whatever its event loop and its threads are doing.

The first signal cancels the work, which then closes its sources and sandboxes. A thread sees to it that this ends in time:
neither a loop that does not turn nor a thread that blocks for ever keeps the command alive. The interpreter passes signals
to it at once, through a pipe. When the time is over, or at another signal, it ends every child and the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from gloveport.errors import GloveportError, exit_code

STOP_TIMEOUT_SECONDS = 10.0  # an MCP server may take 6 s to end
EXIT_TIMEOUT_SECONDS = 3.0  # for threads that still run when everything is closed
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_WORK_ENDED = 0  # in the pipe, beside the numbers of signals

T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T], *, grace_seconds: float = 0) -> T:
    """Return what the work returns; raise `cancelled` when a signal ended it.

    With `grace_seconds`, the first signal lets the work go on for that long, and the second stops it.
    """
    gc.freeze()
    gc.enable()  # the command line loads its modules without it
    with _watching(grace_seconds) as ended, asyncio.Runner() as runner:
        try:
            return runner.run(_cancelled_by_signals(work))
        except asyncio.CancelledError:
            raise GloveportError("the command was interrupted", code="cancelled") from None
        finally:
            os.write(ended, bytes([_WORK_ENDED]))


def stop_at_end_of_input() -> None:
    """Stop this process as SIGTERM does when its standard input ends: so it ends with the one that started it."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="end of input", daemon=True).start()


async def _cancelled_by_signals(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel(*_: object) -> None:
        loop.call_soon_threadsafe(task.cancel)

    handlers = {number: signal.signal(number, cancel) for number in SIGNALS}
    try:
        return await work
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _watching(grace_seconds: float) -> Iterator[int]:
    """Yield the end of the pipe to write to; what is read there is watched until the work has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, grace_seconds), name="interruption", daemon=True).start()
    try:
        yield writing
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)


def _watch(reading: int, grace_seconds: float) -> None:
    """Wait for a signal, and for the end that must follow."""
    signals, deadline, poll = 0, None, [reading]
    while select.select(poll, [], [], None if deadline is None else max(deadline - time.monotonic(), 0))[0]:
        found = os.read(reading, 1)
        if found and found[0] in SIGNALS:
            signals += 1
            if signals > (2 if grace_seconds else 1):
                break
            deadline = time.monotonic() + STOP_TIMEOUT_SECONDS + (grace_seconds if signals == 1 else 0)
        elif not found and not signals:
            os.close(reading)
            return  # the work ended by itself
        elif not found:
            poll = []  # only time is left to pass
        elif found[0] == _WORK_ENDED and signals:
            deadline = time.monotonic() + EXIT_TIMEOUT_SECONDS
    _end_now()


def _end_now() -> None:
    """End every child, with its process group where it leads one, and this process."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                with contextlib.suppress(OSError):
                    (os.killpg if os.getpgid(child) == child else os.kill)(child, signal.SIGKILL)
    os._exit(exit_code("cancelled"))
