"""Bound JSON text from outside before a JSON library builds values from it.

A few bytes of text can become a hundred times as much memory: each list, object and item costs Python up to a microsecond
and a hundred bytes (B13). The checks work on whole byte strings at C speed, in time and memory proportional to the text.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_CONTAINERS = 500_000
MAX_ITEMS = 5_000_000
BOM = b"\xef\xbb\xbf"

# Up to this many quotes, the brackets and commas in strings are counted in place, without copying the text.
_MAX_QUOTES_IN_PLACE = 1000
_NOT_STRUCTURE = bytes(sorted(set(range(256)) - set(b'[]{},"')))
_ONE_BRACKET_KIND = bytes.maketrans(b"{}", b"[]")
# Both also match a string that is never closed, and never backtrack: their time is linear in the text.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_STRING_WITHOUT_ESCAPES = re.compile(rb'"[^"]*+"?')


class JsonLimitError(Exception):
    """JSON text exceeds a limit. The message starts with a verb: `holds more than …`, `is nested deeper than …`."""


def read(data: bytes) -> Any:
    """Decode JSON; whole numbers are exact at any size. Raises ValueError for other text, JsonLimitError for too much."""
    check(data)
    try:
        return msgspec.json.decode(data.removeprefix(BOM))
    except RecursionError:
        raise JsonLimitError("is nested too deeply") from None


def check(
    data: bytes,
    max_containers: int = MAX_CONTAINERS,
    max_items: int = MAX_ITEMS,
    max_strings: int | None = None,
    max_depth: int | None = None,
) -> None:
    """Raise JsonLimitError when the text holds too much, or is nested deeper than `max_depth`.

    With `max_depth`, raises ValueError when brackets don't match: then the depth is unknown. Without it, the decoder must
    limit the depth itself.
    """
    # Counting the brackets in strings too is quick and nearly always enough.
    few = max_containers if max_depth is None else max_depth
    if data.count(b"[") + data.count(b"{") <= few and data.count(b",") <= max_items:
        return
    quotes = data.count(b'"')
    if max_strings is not None and quotes > 2 * max_strings:
        raise JsonLimitError(f"holds more than {max_strings:,} strings")
    if quotes <= _MAX_QUOTES_IN_PLACE:  # refuse a large text before it is copied
        _check_counts(data, _STRING, max_containers, max_items)
        if max_depth is None:
            return
    structure = _structure(data)
    _check_counts(structure, None, max_containers, max_items)
    if max_depth is not None:
        _check_depth(structure.replace(b",", b""), max_depth)


def _check_counts(text: bytes, strings: re.Pattern[bytes] | None, max_containers: int, max_items: int) -> None:
    """Raise JsonLimitError when there are too many brackets or commas outside the matches of `strings`."""
    containers, commas = text.count(b"[") + text.count(b"{"), text.count(b",")
    for found in strings.finditer(text) if strings else ():
        start, end = found.span()
        containers -= text.count(b"[", start, end) + text.count(b"{", start, end)
        commas -= text.count(b",", start, end)
    if containers > max_containers:
        raise JsonLimitError(f"holds more than {max_containers:,} lists and objects")
    if commas > max_items:
        raise JsonLimitError(f"holds more than {max_items:,} items")


def _structure(data: bytes) -> bytes:
    """Return the brackets (as one kind) and commas outside strings."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = data.translate(_ONE_BRACKET_KIND, _NOT_STRUCTURE)
    return _STRING_WITHOUT_ESCAPES.sub(b"", structure) if b'"' in structure else structure


def _check_depth(brackets: bytes, max_depth: int) -> None:
    for _ in range(max_depth):
        if not brackets:
            return
        rest = brackets.replace(b"[]", b"")  # each pass removes the innermost level
        if len(rest) == len(brackets):
            raise ValueError("its brackets don't match")
        brackets = rest
    if brackets:
        raise JsonLimitError(f"is nested deeper than {max_depth} levels")
