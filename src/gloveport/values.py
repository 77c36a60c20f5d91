"""The value codec of the sandbox border: only data crosses, by copy, bounded in depth.

Plain JSON stays as it is. Everything else is tagged, `{"$": kind, "v": …}`, and keys that start with `$` get one more:

    undefined → None · number (NaN, ±Infinity, -0, whole numbers a double can't hold exactly) ↔ float · bigint ↔ int
    date ↔ datetime · bytes ↔ bytes · map ↔ dict whose keys are not all strings · set ↔ set · error ↔ ErrorValue
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson

from gloveport.errors import ValueCrossingError, WireError
from gloveport.large_values import EncodedValue, plain_json
from gloveport.types import ErrorValue

SAFE_INTEGER = 2**53 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_DATE_MILLIS, MAX_DATE_MILLIS = -62135596800000, 253402300799999  # the dates that every language can hold
MAX_DEPTH = 128
"""How deeply a frame may be nested; a value in it has less, by what stands round it."""
MAX_VALUE_DEPTH = MAX_DEPTH - 16
MAX_INTEGER_DIGITS = 4000
HASH_MODULUS = 2**61 - 1  # CPython hashes integers modulo this prime
# Python does not salt the hashes of numbers: a guest can choose numbers that collide, and a dict or set of n of them takes
# n² steps. The worst 3,000 take 10 ms, and the worst 500 that all have the same hash 2 ms.
MAX_NUMBER_KEYS = 3000
MAX_WIDE_KEYS = 500
LONG_TEXT_CHARS = 256 * 1024  # a longer text is encoded and decoded in steps
MAX_PLAIN_BYTES = 64 * 1024 * 1024  # of the JSON of one value that native code encodes
KEY_TAGS = ("number", "bigint", "date", "bytes")
PLAIN = frozenset({str, int, float, bool, type(None)})


def encode(value: Any, name: str = "value") -> bytes:
    """Return the JSON bytes for a Python value. Raise ValueCrossingError, with the path below `name`, if it can't cross."""
    if type(value) is EncodedValue:
        return value.json
    try:
        wire = to_wire(value)
    except _Crossing as problem:
        raise ValueCrossingError(f"{name}{problem.path()} {problem.reason}") from None
    try:
        return orjson.dumps(wire)
    except orjson.JSONEncodeError:  # a lone surrogate, which UTF-8 can't encode
        return orjson.dumps(_without_surrogates(wire))


def encode_large(value: Any, name: str = "value", max_bytes: int = MAX_PLAIN_BYTES) -> bytes:
    """Return what `encode` returns, sooner for a large value that holds no more than JSON does."""
    found = None if type(value) is EncodedValue else plain_json(value, max_bytes)
    return encode(value, name) if found is None else found


def _without_surrogates(wire: Any) -> Any:
    kind = type(wire)
    if kind is str:
        return wire if wire.isascii() else wire.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if kind is dict:
        return {_without_surrogates(key): _without_surrogates(item) for key, item in wire.items()}
    return [_without_surrogates(item) for item in wire] if kind is list else wire


def _long_text_to_wire(text: str) -> orjson.Fragment:
    """Return the JSON of a long text, encoded in steps."""
    parts = [b'"']
    for at in range(0, len(text), LONG_TEXT_CHARS):
        part = text[at : at + LONG_TEXT_CHARS]
        try:
            parts.append(orjson.dumps(part)[1:-1])
        except orjson.JSONEncodeError:
            parts.append(orjson.dumps(_without_surrogates(part))[1:-1])
    return orjson.Fragment(b"".join([*parts, b'"']))


class Foreign:
    """A guest's value that is not data. `reason` says why it can't cross and what to do instead."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _Crossing(Exception):
    """Carries the reason up the recursion; each level adds its step of the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    def path(self) -> str:
        return "".join(reversed(self.steps))


def to_wire(value: Any, depth: int = 0) -> Any:
    """Return the JSON form of a value, tags included."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= LONG_TEXT_CHARS else _long_text_to_wire(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else _wide_integer(value)
    if kind is float:
        return _float_to_wire(value)
    if depth > MAX_VALUE_DEPTH:
        raise _Crossing("is nested too deeply, or contains itself")
    if kind is dict:
        return _dict_to_wire(value, depth)
    if kind is list or kind is tuple:
        return _items_to_wire(value, depth)
    return _other_to_wire(value, depth)


def _float_to_wire(value: float) -> Any:
    if math.isfinite(value):
        if value == 0 and math.copysign(1, value) < 0:
            return {"$": "number", "v": "-0"}
        return value
    return {"$": "number", "v": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _wide_integer(value: int) -> dict[str, str]:
    if value.bit_length() > MAX_INTEGER_DIGITS * 3:
        raise _Crossing(f"is an integer of more than {MAX_INTEGER_DIGITS:,} digits")
    return {"$": "bigint", "v": str(value)}


def _dict_to_wire(value: Mapping[Any, Any], depth: int) -> Any:
    out: dict[str, Any] = {}
    for name, item in value.items():
        if type(name) is str:
            key = name
        elif isinstance(name, str):
            key = str.__str__(name)
        else:
            return _map_to_wire(value, depth)
        if key[:1] == "$":
            key = "$" + key
        kind = type(item)
        if kind is bool or item is None or (kind is str and len(item) <= LONG_TEXT_CHARS):
            out[key] = item
            continue
        try:
            out[key] = to_wire(item, depth + 1)
        except _Crossing as problem:
            problem.steps.append(f".{name}" if name.isidentifier() else f"[{name!r}]")
            raise
    return out


def _items_to_wire(value: Any, depth: int) -> list[Any]:
    out: list[Any] = []
    try:
        for item in value:
            kind = type(item)
            if kind is bool or item is None or (kind is str and len(item) <= LONG_TEXT_CHARS):
                out.append(item)
            else:
                out.append(to_wire(item, depth + 1))
    except _Crossing as problem:
        problem.steps.append(f"[{len(out)}]")
        raise
    return out


def _map_to_wire(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    pairs = []
    for key, item in value.items():
        wire = _key_to_wire(key, depth)
        try:
            pairs.append([wire, to_wire(item, depth + 1)])
        except _Crossing as problem:
            problem.steps.append(f"[{key!r:.60}]")
            raise
    return {"$": "map", "v": pairs}


def _key_to_wire(key: Any, depth: int) -> Any:
    wire = to_wire(key, depth + 1)
    if type(wire) is list or (type(wire) is dict and wire.get("$") not in KEY_TAGS):
        raise _Crossing(f"has a key of class {type(key).__name__}: only text, numbers, dates and bytes can be keys")
    return wire


def _other_to_wire(value: Any, depth: int) -> Any:
    if isinstance(value, datetime):
        return {"$": "date", "v": _millis(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$": "bytes", "v": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (set, frozenset)):
        return {"$": "set", "v": _items_to_wire(sorted(value, key=repr), depth)}
    if isinstance(value, ErrorValue):
        return _error_to_wire(value, depth)
    if isinstance(value, BaseException):
        return _error_to_wire(error_value(value), depth)
    if isinstance(value, str):
        return to_wire(str.__str__(value))
    if isinstance(value, (int, float)):
        return to_wire(int(value) if isinstance(value, int) else float(value), depth)
    if isinstance(value, Mapping):
        return _dict_to_wire(value, depth)
    if isinstance(value, (list, tuple, range)):
        return _items_to_wire(value, depth)
    if isinstance(value, Foreign):
        raise _Crossing(value.reason)
    raise _Crossing(f"is a {type(value).__name__}, which can't cross: only plain data can")


def _millis(value: datetime) -> int:
    """Return milliseconds since the epoch. A local date in year 1 or 9999 may be out of range in UTC."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    millis = (aware - EPOCH) // timedelta(milliseconds=1)
    if not MIN_DATE_MILLIS <= millis <= MAX_DATE_MILLIS:
        raise _Crossing("is a date outside the years 1 to 9999, in UTC")
    return millis


def error_value(error: BaseException, depth: int = 0) -> ErrorValue:
    """Return an exception as data: its class name, message and cause chain."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything; the message is then empty
        message = ""
    cause = error.__cause__
    return ErrorValue(type(error).__name__, message, error_value(cause, depth + 1) if cause and depth < 16 else None)


def _error_to_wire(error: ErrorValue, depth: int) -> dict[str, Any]:
    if depth > MAX_VALUE_DEPTH:
        raise _Crossing("is nested too deeply, or contains itself")
    parts: dict[str, Any] = {"name": error.name, "message": error.message}
    if error.cause is not None:
        parts["cause"] = to_wire(error.cause, depth + 2)
    if error.data:
        parts["data"] = to_wire(dict(error.data), depth + 2)
    return {"$": "error", "v": parts}


def from_wire(value: Any) -> Any:
    """Return the Python value for decoded JSON. Raise WireError for a malformed tag, or for too many numbers as keys."""
    return _from_wire(value, _KeyBudget())


class _KeyBudget:
    """Counts the numbers among the keys of maps and the members of sets, in the whole of one value."""

    __slots__ = ("numbers", "wide")

    def __init__(self) -> None:
        self.numbers = self.wide = 0

    def spend(self, keys: list[Any]) -> None:
        """Count the keys of one map, or the members of one set; raise WireError when there are too many."""
        numbers = [key for key in keys if type(key) is int or type(key) is float]
        self.numbers += len(numbers)
        self.wide += sum(1 for number in numbers if abs(number) >= HASH_MODULUS)
        if self.numbers > MAX_NUMBER_KEYS or self.wide > MAX_WIDE_KEYS:
            wide = "" if self.numbers > MAX_NUMBER_KEYS else " beyond 2^61"
            most = MAX_WIDE_KEYS if wide else MAX_NUMBER_KEYS
            message = f"a value has more than {most:,} numbers{wide} as keys of maps or members of sets"
            raise WireError(message, code="bad-value", hint="use strings as keys, or a list instead of a map or set")


def _from_wire(value: Any, budget: _KeyBudget) -> Any:
    kind = type(value)
    if kind is dict:
        if "$" in value:
            return _untag(value, budget)
        return {
            (key[1:] if key.startswith("$") else key): item if type(item) in PLAIN else _from_wire(item, budget)
            for key, item in value.items()
        }
    if kind is list:
        return [item if type(item) in PLAIN else _from_wire(item, budget) for item in value]
    return value


def _untag(value: dict[str, Any], budget: _KeyBudget) -> Any:
    content = value.get("v")
    try:
        match value["$"]:
            case "undefined":
                return None
            case "number" if isinstance(content, str) and len(content) < 32:
                return float(content)
            case "bigint" if isinstance(content, str) and len(content) <= MAX_INTEGER_DIGITS + 1:
                return int(content)
            case "date" if type(content) is int:  # whole milliseconds are all that an honest prelude sends
                return EPOCH + timedelta(milliseconds=content)
            case "bytes" if isinstance(content, str):
                return _bytes_from_base64(content)
            case "map" if isinstance(content, list):
                items = [_from_wire(item, budget) for _, item in content]
                return dict(zip(_keys([key for key, _ in content], budget), items, strict=True))
            case "set" if isinstance(content, list):
                return _unset(content, budget)
            case "error" if isinstance(content, dict):
                return _unerror(content, budget)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    raise WireError(f"a value carries a malformed tag {str(value['$'])[:40]!r}")


def _bytes_from_base64(text: str) -> bytes:
    if len(text) <= LONG_TEXT_CHARS:
        return binascii.a2b_base64(text, strict_mode=True)
    steps = (text[at : at + LONG_TEXT_CHARS] for at in range(0, len(text), LONG_TEXT_CHARS))
    parts = [binascii.a2b_base64(step, strict_mode=True) for step in steps]
    if any(len(part) * 4 != LONG_TEXT_CHARS * 3 for part in parts[:-1]):
        raise ValueError("padding before the end")
    return b"".join(parts)


def _keys(content: list[Any], budget: _KeyBudget) -> list[Any]:
    keys = [_from_wire(key, budget) for key in content]
    budget.spend(keys)
    return keys


def _unset(content: list[Any], budget: _KeyBudget) -> Any:
    """Return a set, or a list when its members (objects, arrays) can't be members of a Python set."""
    items = _keys(content, budget)
    try:
        return set(items)
    except TypeError:
        return items


def _unerror(content: dict[str, Any], budget: _KeyBudget) -> ErrorValue:
    name, message, cause = content.get("name"), content.get("message"), content.get("cause")
    data = _from_wire(content.get("data") or {}, budget)
    if not (isinstance(name, str) and isinstance(message, str) and isinstance(data, dict)):
        raise ValueError("malformed error")
    below = _from_wire(cause, budget)
    if below is not None and not isinstance(below, ErrorValue):
        below = ErrorValue(type(below).__name__, str(below)[:1000])
    return ErrorValue(name, message, below, data)


def to_json(value: Any) -> Any:
    """Return the plain JSON form of a value, without tags, for surfaces that speak JSON."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else str(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        return {key if type(key) is str else str(key): to_json(item) for key, item in value.items()}
    if kind is list:
        return [to_json(item) for item in value]
    return _other_to_json(value)


def _other_to_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case set() | frozenset():
            return [to_json(item) for item in sorted(value, key=repr)]
        case tuple():
            return [to_json(item) for item in value]
        case ErrorValue():
            plain: dict[str, Any] = {"name": value.name, "message": value.message, **to_json(dict(value.data))}
            return plain | ({"cause": to_json(value.cause)} if value.cause else {})
        case float() if not math.isfinite(value):
            return None
        case int() if not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
            return str(value)
        case list():
            return [to_json(item) for item in value]
    return value
