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
import hashlib
import itertools
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from queue import PriorityQueue
from typing import Annotated, Any, ParamSpec, TypeVar

import msgspec
import orjson

from gloveport.errors import GloveportError

LARGE_BYTES = 32 * 1024
"""A text of more bytes than this is decoded away from the loop."""
LARGE_VALUES = 4000
"""A value that holds more values than this is copied, encoded and validated away from the loop."""
_STEP_BYTES = 1024 * 1024
_STEP_ITEMS = 500  # of a list, which are encoded in one step
_STEP_KEYS = 50  # an object of no more is encoded value by value
_STEP_DEPTH = 3  # how deeply lists and objects are taken apart for that
_PLAIN_DEPTH = 6
_MAX_TEXT_CHARS = 256 * 1024  # of one text, which would be encoded in one step
_ESCAPED_KEY = re.compile(rb'[{,]"\$(?:[^"\\]++|\\.)*+":')
_MAX_DEPTH = 200
_LOCKED_HASH_BYTES = 2047  # hashlib gives the interpreter lock back for a piece of more bytes than this
_MAX_LOCKED_HASH_BYTES = 64 * 1024
_TURN_SECONDS = 0.002
_PAUSE_SECONDS = 0.0002  # long enough for a thread that waits to wake up and take the lock
_SCALARS = frozenset({int, float, bool, type(None)})
_LISTS = frozenset({list, tuple, set, frozenset})

_MAX_FLOAT = 1.7976931348623157e308
# What orjson takes for data as it is; it would write NaN and the infinities, which need a tag, as null.
_ONLY_JSON = (
    orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
) | orjson.OPT_PASSTHROUGH_SUBCLASS

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EncodedValue:
    """A large value that exists as its JSON only. It has no tags and no escaped keys."""

    json: bytes

    def value(self) -> Any:
        """Return the value."""
        return orjson.loads(self.json)


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
    if type(value) is EncodedValue:
        return True
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


def plain_json(value: Any, max_bytes: int) -> bytes | None:
    """Return the JSON of a value that holds no more than JSON does, and no key that begins with `$`; else None.

    None is also the answer for one that is nested more than a few levels deep, or is larger: whoever asks has a way for
    every value. Native code reads the value twice, in short steps: for its types and for its text.
    """
    parts: list[bytes] = []
    try:
        _add_json(value, parts, [max_bytes], 0)
    except Exception:  # noqa: BLE001 - the methods of an object that pretends to be a dict may raise anything
        return None
    return b"".join(parts)


def _add_json(value: Any, parts: list[bytes], left: list[int], depth: int) -> None:
    """Add the JSON of a value; raise ValueError, TypeError or what the value's own code raises where there is none."""
    kind = type(value)
    if kind is list and len(value) > _STEP_ITEMS:
        for at in range(0, len(value), _STEP_ITEMS):
            parts += (b"," if at else b"[", _one_step(value[at : at + _STEP_ITEMS], left)[1:-1])
        parts.append(b"]")
    elif depth == _STEP_DEPTH or not (kind is list or (kind is dict and len(value) <= _STEP_KEYS)) or not is_large(value):
        parts.append(_one_step(value, left))
    elif kind is list:
        for count, item in enumerate(value):
            parts.append(b"," if count else b"[")
            _add_json(item, parts, left, depth + 1)
        parts.append(b"]")
    else:
        for count, (key, item) in enumerate(value.items()):
            if type(key) is not str or key.startswith("$"):
                raise ValueError("a key that is no text, or needs to be escaped")
            parts += (b"," if count else b"{", orjson.dumps(key), b":")
            _add_json(item, parts, left, depth + 1)
        parts.append(b"}")


def _one_step(value: Any, left: list[int]) -> bytes:
    msgspec.convert({"value": value}, _plain())
    text = orjson.dumps(value, option=_ONLY_JSON)
    left[0] -= len(text)
    if left[0] < 0 or (b'"$' in text and _ESCAPED_KEY.search(text)):
        raise ValueError("too much, or a key that needs to be escaped")
    return text


@cache
def _plain() -> type[msgspec.Struct]:
    """Return the type of plain JSON of a few levels. Anything else is converted to no such value, or refused by orjson."""
    text = Annotated[str, msgspec.Meta(max_length=_MAX_TEXT_CHARS)]
    plain: Any = None | bool | int | text | Annotated[float, msgspec.Meta(ge=-_MAX_FLOAT, le=_MAX_FLOAT)]
    scalar = plain
    for _ in range(_PLAIN_DEPTH):
        plain = scalar | list[plain] | dict[text, plain]
    return looked_up(msgspec.defstruct("Plain", [("value", plain)], gc=False))


def looked_up(type_: type[T]) -> type[T]:
    """Return a type whose fields msgspec has looked up. Two threads that make it do so at once crash the process."""
    msgspec.json.Decoder(type_)
    return type_


def decode_text(data: bytes, encoding: str) -> str:
    """Return the text, with U+FFFD for bytes that are none; decoded in short steps."""
    if len(data) <= _STEP_BYTES:
        return data.decode(encoding, "replace")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    steps = range(0, len(data), _STEP_BYTES)
    return "".join(decoder.decode(data[at : at + _STEP_BYTES], at + _STEP_BYTES >= len(data)) for at in steps)


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of the bytes, without giving the interpreter lock back for less than a fraction of a millisecond.

    A thread that gives the lock back for some microseconds again and again starves the others: each time they wake up too
    late to take it, and begin anew to wait for the 5 ms after which they may demand it.
    """
    if len(data) <= _LOCKED_HASH_BYTES or len(data) > _MAX_LOCKED_HASH_BYTES:
        return hashlib.sha256(data).digest()
    hashed = hashlib.sha256()
    for at in range(0, len(data), _LOCKED_HASH_BYTES):
        hashed.update(data[at : at + _LOCKED_HASH_BYTES])
    return hashed.digest()


class LockTurns:
    """Gives the interpreter lock to threads that wait for it, every few milliseconds of a long work in a thread.

    Only for loops over C code that gives the lock back for microseconds itself, which starves them as `sha256` says.
    """

    def __init__(self) -> None:
        self._due = time.monotonic() + _TURN_SECONDS

    def give(self) -> None:
        """Pause, if it is time to."""
        if time.monotonic() > self._due:
            time.sleep(_PAUSE_SECONDS)
            self._due = time.monotonic() + _TURN_SECONDS


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
