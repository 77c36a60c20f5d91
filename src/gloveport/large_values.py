"""Work on large values away from the event loop, in one thread that gives the interpreter lock back every few milliseconds.

It is one thread for the whole process, because each further thread that computes would make the loop wait longer for its
turn. Only Python code and short steps of C belong there: a single long step of C would keep the lock in any thread.

Work that ends the life of a large value goes before work that creates another: so only a few of them are in memory at a
time, however many replies have arrived.
"""

from __future__ import annotations

import asyncio
import codecs
import gc
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from queue import PriorityQueue
from typing import Any, ParamSpec, TypeVar

from gloveport.errors import GloveportError

LARGE_BYTES = 32 * 1024
"""A text of more bytes than this is decoded away from the loop."""
LARGE_VALUES = 4000
"""A value that holds more values than this is copied, encoded and validated away from the loop."""
_STEP_BYTES = 1024 * 1024
_MAX_DEPTH = 200
_SCALARS = frozenset({int, float, bool, type(None)})
_LISTS = frozenset({list, tuple, set, frozenset})

P = ParamSpec("P")
T = TypeVar("T")


def off_loop(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Return the future result of a function that reads bytes. Cancelling it does not stop the function."""
    return _thread().submit(1, partial(function, *args, **kwargs))


def off_loop_soon(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Return the future result of a function that works on a large value which is already in memory."""
    return _thread().submit(0, partial(function, *args, **kwargs))


async def off_loop_if(large: bool, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the function returns: called here at once, or away from the loop if it works on something large."""
    return await off_loop(function, *args, **kwargs) if large else function(*args, **kwargs)


def is_large(value: Any, max_values: int = LARGE_VALUES, max_bytes: float = LARGE_BYTES) -> bool:
    """Return True when a value holds more values than that or, in texts and bytes, more bytes.

    It looks at the first of them only, so it takes less than a millisecond by default. Objects that are no data count
    once. A value that is nested too deeply to be data, or contains itself, is not large: whoever reads it refuses it.
    """
    if type(value) in _SCALARS:
        return False
    waiting: list[tuple[Any, int]] = [((value,), 0)]
    values = size = 0
    while waiting:
        items, depth = waiting.pop()
        values += len(items)
        if depth > _MAX_DEPTH:
            return False
        if values > max_values:
            return True
        for item in items:
            kind = type(item)
            if kind in _SCALARS:
                continue
            if kind is str or kind is bytes:
                size += len(item)
            elif kind is dict:
                waiting.append((item.values(), depth + 1))
                values += len(item)
            elif kind in _LISTS:
                waiting.append((item, depth + 1))
        if size > max_bytes:
            return True
    return False


def decode_text(data: bytes, encoding: str) -> str:
    """Return the text, with U+FFFD for bytes that are none; decoded in short steps."""
    if len(data) <= _STEP_BYTES:
        return data.decode(encoding, "replace")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    steps = range(0, len(data), _STEP_BYTES)
    return "".join(decoder.decode(data[at : at + _STEP_BYTES], at + _STEP_BYTES >= len(data)) for at in steps)


class _Thread:
    """A thread that takes the most urgent work first, and work of the same urgency in the order in which it came."""

    def __init__(self) -> None:
        self._work: PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = PriorityQueue()
        self._order = itertools.count()
        threading.Thread(target=self._run, name="gloveport-large-values", daemon=True).start()

    def submit(self, urgency: int, function: Callable[[], T]) -> asyncio.Future[T]:
        """Return the future result of the function; 0 is more urgent than 1."""
        result: Future[T] = Future()
        self._work.put((urgency, next(self._order), result, function))
        return asyncio.wrap_future(result)

    def _run(self) -> None:
        while True:
            *_, result, function = self._work.get()
            if result.set_running_or_notify_cancel():
                gc.disable()  # a full collection keeps the lock, and a value that grows would cause one after the other
                try:
                    result.set_result(function())
                except GloveportError as error:  # without the frames, which hold the large value
                    result.set_exception(error.with_traceback(None))
                except BaseException as error:  # noqa: BLE001 - the caller gets it
                    result.set_exception(error)
                finally:
                    gc.enable()
            del result, function  # while it waits for more, it keeps nothing alive


@cache
def _thread() -> _Thread:
    return _Thread()
