"""Convert a tool's result to plain data, or name the place in it that is not data. Nothing else enters a run.

Data is what the wire can encode: null, booleans, numbers, strings, lists, dicts, sets, bytes, datetimes, errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from gloveport.errors import ToolError
from gloveport.large_values import EncodedValue, off_loop_soon, plain_json
from gloveport.types import ErrorValue
from gloveport.values import MAX_PLAIN_BYTES

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract

MAX_DEPTH = 110
MAX_VALUES = 1_000_000  # keys count, too
TOO_MUCH_HINT = "ask for less: filter, or take a page at a time"
MAX_PATH_CHARS = 120
MAX_ERROR_CHARS = 8192
IMMUTABLE_TYPES = frozenset({type(None), bool, int, float, str, bytes, datetime, ErrorValue})


class _NotData(Exception):
    """Carries the reason up the recursion; each level adds its step of the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    def describe(self) -> str:
        path = "result" + "".join(reversed(self.steps))
        return f"{path if len(path) <= MAX_PATH_CHARS else f'{path[:MAX_PATH_CHARS]}…'} {self.reason}"


def copy_data(value: Any) -> Any:
    """Return a deep copy of decoded data; raises TypeError when it is no data, or nested too deeply."""
    try:
        return _data(value, _Room())
    except _NotData as problem:
        raise TypeError(problem.reason) from None
    except _TooMuch:
        raise TypeError(f"holds more than {MAX_VALUES:,} values") from None


def to_data(value: Any, tool: str) -> Any:
    """Return the value as data that shares nothing mutable with it; raises a ToolError that names the path to the problem.

    Dataclasses, TypedDicts, pydantic models and structs become dicts, enums their values, tuples lists, UUIDs, Decimals
    and dates strings.
    """
    if type(value) in IMMUTABLE_TYPES:
        return value
    try:
        return _data(value, _Room())
    except _NotData as problem:
        message = f"the result of `tools.{tool}` is not plain data: {problem.describe()}"
    except _TooMuch:
        message = f"the result of `tools.{tool}` holds more than {MAX_VALUES:,} values"
        raise ToolError(message, code="bad-value", tool=tool, hint=TOO_MUCH_HINT) from None
    except Exception as error:  # noqa: BLE001 - the value's own code runs in here
        message = f"the result of `tools.{tool}` is not plain data: it can't be read ({type(error).__name__})"
    raise ToolError(message, code="bad-value", tool=tool)


class _TooMuch(Exception):
    """The value holds too many values."""


class _Room:
    """How many values may still be copied."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = MAX_VALUES

    def take(self, values: int) -> None:
        self.values -= values
        if self.values < 0:
            raise _TooMuch


async def large_to_data(value: Any, contract: Contract) -> Any:
    """Return a large value as data, or as an `EncodedValue` if it is plain JSON: then its text is its copy."""
    if type(value) in IMMUTABLE_TYPES:
        return value
    if (encoded := await off_loop_soon(_encoded, value)) is not None:
        return encoded
    # What a source has read from JSON just now needs no copy: nobody else has it.
    return value if contract.gives_json else await off_loop_soon(to_data, value, contract.path)


def is_plain(value: Any) -> bool:
    """Return whether a value that a guest has sent is plain JSON, of which `copy_data` would make an equal copy."""
    return _encoded(value) is not None


def _encoded(value: Any) -> EncodedValue | None:
    """Return a value as its JSON, if that is plain, and holds no more values than data may."""
    text = plain_json(value, MAX_PLAIN_BYTES)
    # A bound: strings hold some of these characters, too.
    if text is None or (len(text) > MAX_VALUES and sum(map(text.count, (b",", b":", b"[", b"{"))) > MAX_VALUES):
        return None
    return EncodedValue(text)


def _data(value: Any, room: _Room, depth: int = 0) -> Any:
    kind = type(value)
    if kind in IMMUTABLE_TYPES:
        return value
    if depth > MAX_DEPTH:
        raise _NotData("is nested too deeply, or contains itself")
    if kind is dict:
        return _record(value, room, depth)
    if kind is list or kind is tuple:
        return _items(value, room, depth)
    return _other(value, room, depth)


def _record(value: Mapping[Any, Any], room: _Room, depth: int) -> dict[Any, Any]:
    room.take(2 * len(value))
    out = {}
    for key, item in value.items():
        if type(item) in IMMUTABLE_TYPES and type(key) is str:
            out[key] = item
            continue
        name = key if type(key) is str else _key(key, room, depth)
        try:
            out[name] = _data(item, room, depth + 1)
        except _NotData as problem:
            problem.steps.append(f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r:.50}]")
            raise
    return out


def _key(key: Any, room: _Room, depth: int) -> Any:
    key = _data(key, room, depth + 1)
    if isinstance(key, (list, dict, set)):
        raise _NotData("has a key that is not a simple value")
    return key


def _items(value: Any, room: _Room, depth: int) -> list[Any]:
    room.take(len(value))
    out: list[Any] = []
    try:
        for item in value:
            out.append(item if type(item) in IMMUTABLE_TYPES else _data(item, room, depth + 1))
    except _NotData as problem:
        problem.steps.append(f"[{len(out)}]")
        raise
    return out


def _other(value: Any, room: _Room, depth: int) -> Any:
    """Convert a value of another type. The base class's methods read it: a subclass could override them to lie."""
    if isinstance(value, Enum):
        return _data(value.value, room, depth + 1)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (date, UUID, Decimal)):
        return str(value)
    if isinstance(value, BaseException):
        return _error(value, depth)
    return _collection(value, room, depth)


def _collection(value: Any, room: _Room, depth: int) -> Any:
    if isinstance(value, Set):
        items = _items(value, room, depth)
        return set(items) if all(item.__hash__ for item in items) else items
    if isinstance(value, Mapping):
        return _record(value, room, depth)
    if isinstance(value, (list, tuple)):
        return _items(value, room, depth)
    if hasattr(type(value), "model_dump"):
        return _data(value.model_dump(), room, depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return _record({field.name: getattr(value, field.name) for field in fields(value)}, room, depth)
    if isinstance(value, msgspec.Struct):
        return _record(msgspec.structs.asdict(value), room, depth)
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        name = type(value).__name__
        raise _NotData(f"is {'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}") from None


def _error(error: BaseException, depth: int) -> ErrorValue:
    cause = error.__cause__
    inner = _error(cause, depth + 1) if cause is not None and depth < MAX_DEPTH else None
    return ErrorValue(type(error).__name__, str.__str__(str(error))[:MAX_ERROR_CHARS], inner)
