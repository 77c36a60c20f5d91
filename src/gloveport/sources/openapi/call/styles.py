"""Write values as text in paths, queries, headers, cookies and forms: every `style` and `explode` of OpenAPI's table.

A null value is left out, and so are null items and properties. A value of which nothing could be sent, such as an empty
list, is refused: a service would take it for one that was left out. A value that a style can't express, such as a list in
a list, is sent as JSON. All but unreserved characters are percent-encoded, so that no value can end early and begin
something else (N6, N7).
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
NOTHING_TO_SEND = "an empty list or object can't be sent here; leave it out if that is what you mean"
EXACT_INTEGER_LIMIT = 2**53

# What `allowReserved` leaves unencoded, except for the characters that would end the value: `&`, `#`, `[`, `]`, and `+`
# (many servers read it as a space).
RESERVED_URI_CHARACTERS = "!$'()*,/:;=?@"


def encode(text: str) -> str:
    """Percent-encode everything but letters, digits and `-._~`."""
    return quote(text, safe="")


def encode_reserved(text: str) -> str:
    """Percent-encode a value with `allowReserved`: reserved characters stay where they are harmless."""
    return quote(text, safe=RESERVED_URI_CHARACTERS)


def text_of(value: Any) -> str:
    """Return one value as text: as JSON but without quotes, bytes in base64; raises ValueError for NaN and infinities."""
    if type(value) is str:
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} can't be sent as a number")
        if value.is_integer() and abs(value) < EXACT_INTEGER_LIMIT:
            return str(int(value))  # 2.0 and 2 are the same number to a program
    printed = msgspec.json.encode(value).decode()
    return printed[1:-1] if printed.startswith('"') else printed


def path_text(name: str, value: Any, style: str, explode: bool) -> str:
    """Return the text of a path parameter."""
    parts = _parts(value, encode)
    equals = "=" if explode else ","
    if style == "label":
        return "." + _joined(parts, "." if explode else ",", equals)
    if style == "matrix":
        return _matrix(encode(name), parts, explode)
    return _joined(parts, ",", equals)


def header_text(value: Any, explode: bool) -> str:
    """Return the text of a header parameter. Headers are not percent-encoded."""
    return _joined(_parts(value, str), ",", "=" if explode else ",")


def name_value_pairs(name: str, value: Any, style: str, explode: bool, encode: Encode = encode) -> list[Pair]:
    """Return the `name=value` pairs of a parameter or a form property, both encoded; raises ValueError for no pairs."""
    pairs = list(_deep(name, value, encode) if style == "deepObject" else _pairs(name, value, style, explode, encode))
    if not pairs:
        raise ValueError(NOTHING_TO_SEND)
    return pairs


def _pairs(name: str, value: Any, style: str, explode: bool, encode: Encode) -> Iterator[Pair]:
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
    """Yield pairs such as `a[b][c]=1`. List items are `a[]`, or `a[0]` when an item has parts that belong together."""
    if isinstance(value, (Mapping, *LIST_TYPES)) and not value:
        raise ValueError(NOTHING_TO_SEND)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _deep(f"{name}[{text_of(key)}]", item, encode)
    elif isinstance(value, LIST_TYPES):
        for index, item in enumerate(value):
            yield from _deep(f"{name}[{index if isinstance(item, (Mapping, *LIST_TYPES)) else ''}]", item, encode)
    elif value is not None:
        yield encode(name), encode(text_of(value))
