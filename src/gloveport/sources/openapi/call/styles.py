"""Values → text in paths, queries, headers, cookies and forms: every `style` and `explode`, as OpenAPI's table has them.

Nothing is None on the wire: a value that is null is left out, as are null items and properties. What a style has no words
for (a list in a list) is sent as JSON. Everything but unreserved characters is percent-encoded, so that a value can't end
where it stands and begin something else (N6, N7).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

Pair = tuple[str, str]
Encode = Callable[[str], str]

LIST_TYPES = (list, tuple, set, frozenset)
SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
EXACT_INTEGER_LIMIT = 2**53

# What `allowReserved` lets stand; without what would end the value: `&`, `#`, `+` (a space to many servers), `[`, `]`.
RESERVED_URI_CHARACTERS = "!$'()*,/:;=?@"


def encode(text: str) -> str:
    """The text percent-encoded, all but letters, digits and `-._~`."""
    return quote(text, safe="")


def encode_reserved(text: str) -> str:
    """The same for `allowReserved`."""
    return quote(text, safe=RESERVED_URI_CHARACTERS)


def text_of(value: Any) -> str:
    """One value as text: as JSON prints it, strings bare, bytes in base64; raises ValueError for NaN and infinities."""
    if type(value) is str:
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that can be sent")
        if value.is_integer() and abs(value) < EXACT_INTEGER_LIMIT:
            return str(int(value))  # a whole number is one, whichever way the program came by it
    printed = msgspec.json.encode(value).decode()
    return printed[1:-1] if printed.startswith('"') else printed


def segment(name: str, value: Any, style: str, explode: bool) -> str:
    """A path parameter's text for its place in the path."""
    parts = _parts(value, encode)
    equals = "=" if explode else ","
    if style == "label":
        return "." + _joined(parts, "." if explode else ",", equals)
    if style == "matrix":
        return _matrix(encode(name), parts, explode)
    return _joined(parts, ",", equals)


def header(value: Any, explode: bool) -> str:
    """A header parameter's text; headers have no percent-encoding."""
    return _joined(_parts(value, str), ",", "=" if explode else ",")


def pairs(name: str, value: Any, style: str, explode: bool, encode: Encode = encode) -> Iterator[Pair]:
    """The `name=value` pairs of a parameter or property, both encoded."""
    if style == "deepObject":
        yield from _deep(name, value, encode)
        return
    parts = _parts(value, encode)
    if isinstance(parts, str):
        yield encode(name), parts
    elif not explode:
        separator = encode(SEPARATORS[style]) if style in SEPARATORS else ","
        if parts:
            yield encode(name), _joined(parts, separator, separator)
    elif isinstance(parts, list):
        yield from ((encode(name), part) for part in parts)
    else:
        yield from parts.items()


def _parts(value: Any, encode: Encode) -> str | list[str] | dict[str, str]:
    if isinstance(value, Mapping):
        return {encode(text_of(key)): encode(text_of(item)) for key, item in value.items() if item is not None}
    if isinstance(value, LIST_TYPES):
        return [encode(text_of(item)) for item in value if item is not None]
    return encode(text_of(value))


def _joined(parts: str | list[str] | dict[str, str], separator: str, equals: str) -> str:
    if isinstance(parts, str):
        return parts
    if isinstance(parts, dict):
        parts = [f"{key}{equals}{item}" for key, item in parts.items()]
    return separator.join(parts)


def _matrix(name: str, parts: str | list[str] | dict[str, str], explode: bool) -> str:
    if explode and isinstance(parts, dict):
        named = list(parts.items())
    elif explode and isinstance(parts, list):
        named = [(name, part) for part in parts]
    else:
        named = [(name, _joined(parts, ",", ","))]
    return "".join(f";{key}={part}" if part else f";{key}" for key, part in named)


def _deep(name: str, value: Any, encode: Encode) -> Iterator[Pair]:
    """`a[b][c]=1`. Items of a list are `a[]`, and `a[0]` where an item has parts that must stay together."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _deep(f"{name}[{text_of(key)}]", item, encode)
    elif isinstance(value, LIST_TYPES):
        for index, item in enumerate(value):
            yield from _deep(f"{name}[{index if isinstance(item, (Mapping, *LIST_TYPES)) else ''}]", item, encode)
    elif value is not None:
        yield encode(name), encode(text_of(value))
