"""Values in the protocol of Monty's worker: a table of nodes, each made of nodes before it.

A node that several others contain is sent once, so a short table can expand to a huge value (`a = [a, a]`, forty times
over). So every node has a weight, the bytes of its expanded value, which `Table.take` compares to a budget (B13).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

from gloveport.errors import WireError
from gloveport.sandbox.engines.monty import protobuf
from gloveport.sandbox.engines.monty.protobuf import as_bytes, as_number, as_text
from gloveport.types import ErrorValue
from gloveport.values import HASH_MODULUS, MAX_WIDE_KEYS, Foreign

NONE, NOT_IMPLEMENTED, BOOLEAN, INTEGER, WIDE, FLOAT, TEXT, BYTES = 2, 3, 4, 5, 6, 7, 8, 9
LIST, TUPLE, NAMED_TUPLE, DICT, SET, FROZEN_SET = 11, 12, 13, 14, 15, 16
DATE, TIME, DATETIME, TIMEDELTA = 17, 18, 19, 20
EXCEPTION, TYPE, INSTANCE, FUNCTION, BUILTIN, PATH, REPR, CYCLE, DECIMAL = 22, 23, 24, 25, 26, 27, 29, 30, 33
HOST_CLASS = 3
KEY, VALUE = 1 << 3, 2 << 3
CONTAINERS = frozenset({LIST, TUPLE, NAMED_TUPLE, DICT, SET, FROZEN_SET, INSTANCE})

MAX_NODES = 1_000_000
INT64_RANGE = 1 << 63
NODE_WEIGHT = 8
"""The bytes that a value counts for in addition to its content."""

_EXCEPTIONS = """
    ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError RuntimeError TimeoutError TypeError ValueError ZeroDivisionError
"""
EXCEPTIONS = frozenset(_EXCEPTIONS.split())
"""The exceptions of Monty that an error may be given as. Any other becomes an `Exception`."""

KEYS = (str, int, float, bytes, datetime, type(None))


class TooHeavyError(Exception):
    """An expanded value is larger than its budget."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Table:
    """A decoded table of nodes from the worker: values by index."""

    def __init__(self, data: bytes = b"") -> None:
        self._values: list[Any] = []
        self._weights: list[int] = []
        for field, content in protobuf.read(data):
            if field == 2:
                self._add(as_bytes(content))

    def take(self, index: int, budget: int) -> Any:
        """Return the value at an index. Raise TooHeavyError when it expands to more bytes than the budget."""
        value = self._at(index)
        if self._weights[index] > budget:
            raise TooHeavyError(self._weights[index])
        return value

    def _add(self, data: bytes) -> None:
        if len(self._values) >= MAX_NODES:
            raise WireError(f"a message holds more than {MAX_NODES:,} values", code="bad-value")
        kind, content = protobuf.read_first(data)
        self._weight = NODE_WEIGHT + (len(content) if isinstance(content, bytes) and kind not in CONTAINERS else 0)
        decode = _DECODERS.get(kind)
        value = decode(self, content) if decode else Foreign("is an internal value of Monty: only data can cross")
        if type(value) is range:
            self._weight += NODE_WEIGHT * len(value)
        self._values.append(value)
        self._weights.append(self._weight)

    def _at(self, index: int) -> Any:
        if index >= len(self._values):
            raise WireError("a value refers to one that does not exist")
        return self._values[index]

    def _held(self, index: int) -> Any:
        """Return a value that the current node contains."""
        value = self._at(index)
        self._weight += self._weights[index]
        return value

    # Containers.

    def _items(self, content: int | bytes) -> list[Any]:
        return [self._held(index) for field, value in _fields(content) for index in _row(field, value)]

    def _pairs(self, content: int | bytes) -> list[tuple[Any, Any]]:
        pairs: list[tuple[Any, Any]] = []
        for _, pair in _fields(content):
            key, value = _places(as_bytes(pair))
            pairs.append((self._held(key), self._held(value)))
        return pairs

    def _dict(self, content: int | bytes) -> Any:
        pairs = self._pairs(content)
        other = next((key for key, _ in pairs if not isinstance(key, KEYS)), None)
        if other is not None:
            name = type(other).__name__
            return Foreign(f"has a key of class {name}: only text, numbers, dates and bytes can be keys")
        _check_keys([key for key, _ in pairs])
        return dict(pairs)

    def _set(self, content: int | bytes) -> Any:
        items = self._items(content)
        _check_keys(items)
        try:
            return set(items)
        except TypeError:
            return items

    def _named_tuple(self, content: int | bytes) -> list[Any]:
        return [self._held(index) for field, value in _fields(content) if field == 3 for index in _row(1, value)]

    def _instance(self, content: int | bytes) -> Any:
        """Return a dataclass as its fields. Any other object is not data."""
        parts = dict(_fields(content))
        kind = self._at(as_number(parts.get(1, 0)))
        attributes = self._pairs(parts.get(3, b""))
        if isinstance(kind, _Class) and kind.is_dataclass:
            return {str(name): value for name, value in attributes}
        if isinstance(kind, _Class) and kind.of_host:
            return Foreign("is a tool, or a group of tools: call it, as in `await tools.source.name(…)`")
        name = kind.name if isinstance(kind, _Class) else "object"
        return Foreign(f"is an object of class {name}: only data can cross; make it a dict or a dataclass")


def _fields(content: int | bytes) -> protobuf.Fields:
    return protobuf.read(as_bytes(content))


def _places(pair: bytes) -> tuple[int, int]:
    """Return the indices of a key and its value. Most have one byte each."""
    if len(pair) == 4 and pair[0] == KEY and pair[2] == VALUE and pair[1] < 0x80 and pair[3] < 0x80:
        return pair[1], pair[3]
    found = dict(protobuf.read(pair))
    return as_number(found.get(1, 0)), as_number(found.get(2, 0))


def _row(field: int, value: int | bytes) -> list[int]:
    """Return the indices in a field, packed or one by one."""
    if field != 1:
        return []
    return [value] if isinstance(value, int) else protobuf.read_packed(value)


def _check_keys(keys: list[Any]) -> None:
    """Limit wide integer keys: they can be chosen to collide, which takes quadratic time."""
    wide = sum(1 for key in keys if type(key) is int and abs(key) >= HASH_MODULUS)
    if wide > MAX_WIDE_KEYS:
        raise WireError(f"a dict or set holds more than {MAX_WIDE_KEYS:,} integers beyond 2^61", code="bad-value")


class _Class(Foreign):
    """A class. It is not data, but it describes its instances."""

    def __init__(self, name: str, *, is_dataclass: bool, of_host: bool) -> None:
        super().__init__("is a class: only data can cross")
        self.name = name
        self.is_dataclass = is_dataclass
        self.of_host = of_host


def _wide(content: int | bytes) -> int:
    parts = dict(_fields(content))
    magnitude = int.from_bytes(as_bytes(parts.get(2, b"")), "big")
    return -magnitude if parts.get(1) else magnitude


def _float(content: int | bytes) -> float:
    raw = as_bytes(content)
    if len(raw) != 8:
        raise WireError("a float does not have eight bytes")
    return struct.unpack("<d", raw)[0]


def _numbers(content: int | bytes, count: int) -> list[int]:
    parts = dict(_fields(content))
    return [protobuf.signed(as_number(parts.get(field, 0))) for field in range(1, count + 1)]


def _moment(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (ValueError, OverflowError):
        raise WireError("a date does not exist") from None


def _datetime(content: int | bytes) -> datetime:
    parts = dict(_fields(content))
    zone = None
    if 8 in parts:
        zone = _moment(lambda: timezone(timedelta(seconds=protobuf.signed(as_number(parts[8])))))
    year, month, day, hour, minute, second, micros = _numbers(content, 7)
    return _moment(lambda: datetime(year, month, day, hour, minute, second, micros, zone))


def _time(content: int | bytes) -> str:
    hour, minute, second, micros = _numbers(content, 4)
    return _moment(lambda: time(hour, minute, second, micros).isoformat())


def _timedelta(content: int | bytes) -> float:
    return _moment(lambda: timedelta(*_numbers(content, 3)).total_seconds())


def _exception(content: int | bytes) -> ErrorValue:
    parts = dict(_fields(content))
    return ErrorValue(as_text(parts.get(1, b"")).rpartition(".")[2], as_text(parts.get(2, b"")))


def _class(content: int | bytes) -> _Class:
    parts = dict(_fields(content))
    return _Class(as_text(parts.get(1, b"")), is_dataclass=bool(parts.get(4)), of_host=parts.get(3) == HOST_CLASS)


def _repr(content: int | bytes) -> Foreign | range:
    """Return what stands for a value that Monty sends only as its `repr`, which shows its kind."""
    shown = as_text(content)
    if found := _RANGE.fullmatch(shown):
        first, end, step = (int(number) for number in found.groups("1"))
        if not step:
            raise WireError("a range has no step")
        return range(first, end, step)
    for sign, reason in _REASONS:
        if sign in shown[:40]:
            return Foreign(reason)
    return Foreign(f"is {shown[:60]}: only data can cross; make it a list or a dict")


_RANGE = re.compile(r"range\((-?\d{1,18}), (-?\d{1,18})(?:, (-?\d{1,18}))?\)")
_REASONS = (
    ("external_future", "is a call or task that was not awaited: await it"),
    ("coroutine", "is a coroutine: await it"),
    ("function", "is a function: only data can cross; call it, or return what it gives"),
    ("<class", "is a class: only data can cross"),
    ("<module", "is a module: only data can cross"),
    ("iterator", "is an iterator: use list(…) to make it a list"),
)
_NO_FUNCTION = _REASONS[2][1]

_DECODERS: dict[int, Callable[[Table, int | bytes], Any]] = {
    NONE: lambda table, content: None,
    BOOLEAN: lambda table, content: bool(content),
    INTEGER: lambda table, content: protobuf.unzigzag(as_number(content)),
    WIDE: lambda table, content: _wide(content),
    FLOAT: lambda table, content: _float(content),
    TEXT: lambda table, content: as_text(content),
    BYTES: lambda table, content: as_bytes(content),
    LIST: Table._items,
    TUPLE: lambda table, content: tuple(table._items(content)),
    NAMED_TUPLE: Table._named_tuple,
    DICT: Table._dict,
    SET: Table._set,
    FROZEN_SET: Table._set,
    DATE: lambda table, content: _moment(lambda: date(*_numbers(content, 3))),
    TIME: lambda table, content: _time(content),
    DATETIME: lambda table, content: _datetime(content),
    TIMEDELTA: lambda table, content: _timedelta(content),
    EXCEPTION: lambda table, content: _exception(content),
    TYPE: lambda table, content: _class(content),
    INSTANCE: Table._instance,
    FUNCTION: lambda table, content: Foreign(_NO_FUNCTION),
    BUILTIN: lambda table, content: Foreign(_NO_FUNCTION),
    PATH: lambda table, content: as_text(content),
    REPR: lambda table, content: _repr(content),
    CYCLE: lambda table, content: Foreign("is nested too deeply, or contains itself"),
    DECIMAL: lambda table, content: as_text(content),
}


class Writer:
    """A table of nodes for the worker. `add` returns the index of a value."""

    def __init__(self, nodes: list[bytes] | None = None) -> None:
        self.nodes = [*nodes] if nodes else []

    def table(self) -> bytes:
        """Return the encoded table."""
        if not self.nodes:
            return b""
        return protobuf.number(1, len(self.nodes)) + b"".join(protobuf.block(2, node) for node in self.nodes)

    def add(self, value: Any) -> int:
        """Add a value that came over the wire (plain data, dates, bytes, errors) and return its index."""
        return self._append(_ENCODERS[type(value)](self, value))

    def add_object(self, identity: int, attributes: Mapping[str, int]) -> int:
        """Add an object of the host and return its index. Calling it, or reading another attribute, asks the host."""
        pairs = [(self.add(name), index) for name, index in attributes.items()]
        kind = protobuf.text(1, "tools") + protobuf.block(2, _uuid(0)) + protobuf.number(3, HOST_CLASS)
        index = self._append(protobuf.block(TYPE, kind))
        content = protobuf.number(1, index) + protobuf.block(2, _uuid(identity)) + protobuf.block(3, _pairs(pairs))
        return self._append(protobuf.block(INSTANCE, content))

    def add_function(self, name: str) -> int:
        """Add a function of the host and return its index."""
        return self._append(protobuf.block(FUNCTION, protobuf.text(1, name)))

    def _append(self, node: bytes) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _row(self, kind: int, items: Any) -> bytes:
        return protobuf.block(kind, protobuf.packed(1, [self.add(item) for item in items]))

    def _dict(self, value: dict[Any, Any]) -> bytes:
        return protobuf.block(DICT, _pairs([(self.add(key), self.add(item)) for key, item in value.items()]))


def _pairs(pairs: list[tuple[int, int]]) -> bytes:
    return b"".join(protobuf.block(1, protobuf.number(1, key) + protobuf.number(2, value)) for key, value in pairs)


def _integer(value: int) -> bytes:
    if -INT64_RANGE <= value < INT64_RANGE:
        return protobuf.number(INTEGER, protobuf.zigzag(value))
    magnitude = abs(value).to_bytes((value.bit_length() + 7) // 8, "big")
    return protobuf.block(WIDE, protobuf.number(1, value < 0) + protobuf.block(2, magnitude))


def _write_numbers(kind: int, *values: int) -> bytes:
    return protobuf.block(kind, b"".join(protobuf.number(field, value) for field, value in enumerate(values, 1)))


def _write_datetime(value: datetime) -> bytes:
    parts = [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond]
    if value.tzinfo is not None:
        offset = value.utcoffset() or timedelta()
        parts.append(int(offset.total_seconds()))
    return _write_numbers(DATETIME, *parts)


def _write_error(error: ErrorValue) -> bytes:
    kind = error.name if error.name in EXCEPTIONS else "Exception"
    return protobuf.block(EXCEPTION, protobuf.text(1, kind) + protobuf.text(2, error.message))


_ENCODERS: dict[type, Callable[[Writer, Any], bytes]] = {
    type(None): lambda writer, value: protobuf.block(NONE),
    bool: lambda writer, value: protobuf.number(BOOLEAN, value),
    int: lambda writer, value: _integer(value),
    float: lambda writer, value: protobuf.double(FLOAT, struct.pack("<d", value)),
    str: lambda writer, value: protobuf.text(TEXT, value),
    bytes: lambda writer, value: protobuf.block(BYTES, value),
    list: lambda writer, value: writer._row(LIST, value),
    set: lambda writer, value: writer._row(SET, sorted(value, key=repr)),
    dict: Writer._dict,
    datetime: lambda writer, value: _write_datetime(value),
    date: lambda writer, value: _write_numbers(DATE, value.year, value.month, value.day),
    ErrorValue: lambda writer, value: _write_error(value),
}


def _uuid(identity: int) -> bytes:
    """Return one of our identities in the form of a random UUID, as the worker requires."""
    raw = identity.to_bytes(16, "big")
    return protobuf.block(1, raw[:6] + b"\x40" + raw[7:8] + b"\x80" + raw[9:])


def identity_of(uuid: int | bytes) -> int:
    """Return the identity that one of our UUIDs stands for."""
    raw = as_bytes(dict(_fields(uuid)).get(1, b""))
    return int.from_bytes(raw[9:], "big")
