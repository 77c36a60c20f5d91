"""The value codec in the guest: only data crosses, by copy, bounded in depth. gloveport/values.py lists the tags.

Outgoing values also include dataclasses and namespaces (as objects), enums (as their value), named tuples (as arrays),
Decimal, Fraction, UUID and paths (as text), dates and times (as ISO text), and durations (as seconds).
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import base64
import dataclasses
import enum
import json.encoder
import math
import types
from asyncio import isfuture
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, KeysView, Mapping, Set, ValuesView
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from .errors import CrossingError, RemoteError, ToolError, cause_of, message_of, name_of

SAFE_INTEGER = 2**53 - 1
MAX_VALUE_DEPTH = 112
MAX_INTEGER_DIGITS = 4000
MAX_CAUSES = 16
MAX_PATH_CHARS = 120
PLAIN = frozenset({str, bool, float, type(None)})
STRINGS = {str}
KEY_TAGS = ("number", "bigint", "date", "bytes")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - the same object, and one look-up less
MIN_DATE_MILLIS, MAX_DATE_MILLIS = -62135596800000, 253402300799999  # the dates that the host can hold
MILLISECOND = timedelta(milliseconds=1)

quote: Callable[[str], str] = json.encoder.encode_basestring

_dumps = json.encoder.c_make_encoder(None, None, quote, None, ":", ",", False, False, False)


class _Crossing(Exception):
    """Carries the reason up the recursion; each level adds its step of the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    def path(self) -> str:
        text = "".join(reversed(self.steps))
        return text if len(text) <= MAX_PATH_CHARS else f"{text[:MAX_PATH_CHARS]}…"


def encode(value: Any, name: str) -> str:
    """Return the JSON text of a value. Raise CrossingError, with the path from `name`, for one that can't cross."""
    if type(value) is str:
        return quote(value)
    try:
        if _is_plain(value, 0):
            try:
                return "".join(_dumps(value, 0))
            except ValueError:  # NaN or an infinity, which needs a tag
                pass
        return "".join(_dumps(to_wire(value, 0), 0))
    except _Crossing as problem:
        raise CrossingError(f"{name}{problem.path()} {problem.reason}") from None
    except RecursionError:
        raise CrossingError(f"{name} is nested too deeply, or contains itself") from None


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether the JSON form of a value is the value itself, but for floats that JSON lacks: then it needs no copy."""
    kind = type(value)
    if kind in PLAIN or (kind is int and -SAFE_INTEGER <= value <= SAFE_INTEGER):
        return True
    if depth > MAX_VALUE_DEPTH:
        return False
    if kind is dict:
        if value and (set(map(type, value)) != STRINGS or "$" in "".join(value)):
            return False
        value = value.values()
    elif kind is not list:
        return False
    for item in value:
        kind = type(item)
        if kind in PLAIN or (kind is int and -SAFE_INTEGER <= item <= SAFE_INTEGER):
            continue
        if not _is_plain(item, depth + 1):
            return False
    return True


def to_wire(value: Any, depth: int) -> Any:
    """Return the JSON form of a value, tags included."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else _wide_integer(value)
    if kind is float:
        return _float(value)
    if depth > MAX_VALUE_DEPTH:
        raise _Crossing("is nested too deeply, or contains itself")
    if kind is dict:
        return _record(value, depth)
    if kind is list or kind is tuple:
        return _items(value, depth)
    return _other(value, depth)


def _float(value: float) -> Any:
    if math.isfinite(value):
        return value if value or math.copysign(1, value) > 0 else {"$": "number", "v": "-0"}
    return {"$": "number", "v": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _wide_integer(value: int) -> dict[str, str]:
    if value.bit_length() > MAX_INTEGER_DIGITS * 3:
        raise _Crossing(f"is an integer of more than {MAX_INTEGER_DIGITS:,} digits")
    return {"$": "bigint", "v": str(value)}


def _record(value: Mapping[Any, Any], depth: int) -> Any:
    out: dict[str, Any] = {}
    for name, item in value.items():
        if type(name) is not str:
            if not isinstance(name, str) or isinstance(name, enum.Enum):
                return _map(value, depth)
            name = str.__str__(name)
        try:
            out[f"${name}" if name.startswith("$") else name] = to_wire(item, depth + 1)
        except _Crossing as problem:
            problem.steps.append(f".{name}" if name.isidentifier() else f"[{name!r}]")
            raise
    return out


def _map(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    pairs = []
    for key, item in value.items():
        wire = _key(key, depth)
        try:
            pairs.append([wire, to_wire(item, depth + 1)])
        except _Crossing as problem:
            problem.steps.append(f"[{message_of(key, repr)[:MAX_PATH_CHARS]}]")
            raise
    return {"$": "map", "v": pairs}


def _key(key: Any, depth: int) -> Any:
    wire = to_wire(key, depth + 1)
    if type(wire) is list or (type(wire) is dict and wire.get("$") not in KEY_TAGS):
        raise _Crossing(f"has a key of class {type(key).__name__}: only text, numbers, dates and bytes can be keys")
    return wire


def _items(value: Any, depth: int) -> list[Any]:
    out: list[Any] = []
    try:
        for item in value:
            out.append(to_wire(item, depth + 1))
    except _Crossing as problem:
        problem.steps.append(f"[{len(out)}]")
        raise
    return out


def _set(value: Any, depth: int) -> dict[str, Any]:
    return {"$": "set", "v": _items(sorted(value, key=repr), depth)}


def _date(value: datetime, depth: int) -> dict[str, Any]:
    aware = value if value.tzinfo else value.replace(tzinfo=EPOCH.tzinfo)
    millis = (aware - EPOCH) // MILLISECOND
    if not MIN_DATE_MILLIS <= millis <= MAX_DATE_MILLIS:
        raise _Crossing("is a date outside the years 1 to 9999, in UTC")
    return {"$": "date", "v": millis}


def _bytes(value: Any, depth: int) -> dict[str, Any]:
    return {"$": "bytes", "v": base64.b64encode(value).decode("ascii")}


def _error(value: BaseException, depth: int, causes: int = 0) -> dict[str, Any]:
    remote = value if isinstance(value, RemoteError) else None
    name = remote.name if remote else name_of(type(value))
    parts: dict[str, Any] = {"name": name, "message": remote.message if remote else message_of(value)}
    cause = cause_of(value)
    if cause is not None and causes < MAX_CAUSES and depth + 2 <= MAX_VALUE_DEPTH:
        parts["cause"] = _error(cause, depth + 2, causes + 1)
    data = remote.data if remote else value.fields() if isinstance(value, ToolError) else vars(value)
    extra = _what_can_cross(data, depth + 2)
    return {"$": "error", "v": parts | {"data": extra} if extra else parts}


def _what_can_cross(data: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the fields of an error that are data. The others are left out, so that the error still crosses."""
    out = {}
    for name, item in data.items():
        try:
            out |= _record({name: item}, depth) if isinstance(name, str) and not name.startswith("_") else {}
        except _Crossing:
            continue
    return out


# The first kind that matches decides.
_KINDS: tuple[tuple[Any, Callable[[Any, int], Any]], ...] = (
    (enum.Enum, lambda value, depth: to_wire(value.value, depth + 1)),
    (datetime, _date),
    ((date, time), lambda value, depth: value.isoformat()),
    (timedelta, lambda value, depth: value.total_seconds()),
    ((bytes, bytearray, memoryview), _bytes),
    ((set, frozenset), _set),
    (BaseException, _error),
    (str, lambda value, depth: str.__str__(value)),
    (int, lambda value, depth: to_wire(int(value), depth)),
    (float, lambda value, depth: _float(float(value))),
    (Mapping, _record),
    ((list, tuple, deque, range, KeysView, ValuesView), _items),
    (Set, _items),
    ((UUID, Decimal, Fraction, PurePath), lambda value, depth: str(value)),
    (types.SimpleNamespace, lambda value, depth: _record(vars(value), depth)),
)


def _other(value: Any, depth: int) -> Any:
    if isinstance(value, type):
        raise _Crossing("is a class: only data can cross")
    for kind, write in _KINDS:
        if isinstance(value, kind):
            return write(value, depth)
    if dataclasses.is_dataclass(value):
        present = {item.name: getattr(value, item.name) for item in dataclasses.fields(value) if hasattr(value, item.name)}
        return _record(present, depth)
    raise _Crossing(_reason(value))


def _reason(value: Any) -> str:
    """Return why a value that is not data can't cross, and what to do instead."""
    if isfuture(value):
        return "is a call or task that was not awaited: await it"
    if isinstance(value, types.CoroutineType):
        return "is a coroutine: await it"
    if isinstance(value, Awaitable):
        return "is awaitable: await it"
    if isinstance(value, types.GeneratorType):
        return "is a generator: use list(…) to make it a list"
    if isinstance(value, AsyncIterator):
        return "is an async iterator: use [item async for item in …] to make it a list"
    if isinstance(value, Iterator):
        return "is an iterator: use list(…) to make it a list"
    if isinstance(value, types.ModuleType):
        return "is a module: only data can cross"
    if callable(value):
        return "is a function: only data can cross; call it, or return what it gives"
    return f"is an object of class {type(value).__name__}: only data can cross; make it a dict or a dataclass"


def decode(value: Any) -> Any:
    """Return the value for parsed JSON, with its tags decoded."""
    kind = type(value)
    if kind is dict:
        if "$" in value:
            return _untag(value["$"], value.get("v"))
        return {(key[1:] if key.startswith("$") else key): decode(item) for key, item in value.items()}
    if kind is list:
        return [decode(item) for item in value]
    return value


def _untag(tag: str, content: Any) -> Any:
    match tag:
        case "undefined":
            return None
        case "number":
            return float(content)
        case "bigint":
            return int(content)
        case "date":
            return _undate(content)
        case "bytes":
            return base64.b64decode(content)
        case "map":
            return _unmap(content)
        case "set":
            return _unset(content)
        case "error":
            return _unerror(content)
    raise ValueError(f"unknown tag {tag}")


def _undate(millis: float) -> Any:
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError:  # JavaScript's dates reach to the year 275760
        return millis


def _unmap(content: list[Any]) -> Any:
    """Return a dict, or a list of pairs when a key (an object, an array) can't be the key of a dict."""
    pairs = [(decode(key), decode(item)) for key, item in content]
    try:
        return dict(pairs)
    except TypeError:
        return pairs


def _unset(content: list[Any]) -> Any:
    """Return a set, or a list when its members (objects, arrays) can't be members of a Python set."""
    items = [decode(item) for item in content]
    try:
        return set(items)
    except TypeError:
        return items


def _unerror(content: dict[str, Any]) -> RemoteError:
    cause = decode(content.get("cause"))
    error = RemoteError(content["name"], content["message"], decode(content.get("data") or {}))
    error.__cause__ = cause if isinstance(cause, BaseException) else None
    return error
