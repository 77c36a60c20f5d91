"""Read JSON text from outside within bounds: its depth, its number of values, and the time that one step may take.

A few bytes of text can become a hundred times as much memory: each list, object and item costs Python up to a microsecond
and a hundred bytes (B13). A JSON library holds the interpreter lock while it works, so it never gets a large text at once:
the text is cut at commas into pieces, and the values of the pieces are put together again. Every step takes a few
milliseconds, and all of them together time and memory proportional to the text.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import msgspec

BOM = b"\xef\xbb\xbf"
PIECE_BYTES = 64 * 1024

_TAIL_BYTES = 4096
_MAX_UNCUT_ITEMS = 1000
_NOT_STRUCTURE = bytes(sorted(set(range(256)) - set(b'[]{},"')))
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one level down, one level up
_STRING_WITHOUT_ESCAPES = re.compile(rb'"[^"]*+"?')
# None of these backtracks: their time is linear in the text.
_UP_TO_LAST_COMMA = re.compile(rb'(?:(?:[^",]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+,)*+', re.DOTALL)
_ENDS = re.compile(rb"([\]}]*)([\[{]*)")
_BEGINS_WITHOUT_VALUE = re.compile(rb"[ \t\r\n]*+(?:[]},]|\Z)")
_CLOSERS = {ord("["): b"]", ord("{"): b"}"}
_MATCHING = bytes.maketrans(b"[{", b"]}")


class JsonLimitError(Exception):
    """JSON text exceeds a limit. The message starts with a verb: `holds more than …`, `is nested deeper than …`."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How much one JSON text may hold."""

    containers: int = 100_000
    """Lists and objects: a garbage collection goes through all of them in one step, which takes 20 ms."""
    items: int = 500_000
    keys: int = 200_000
    """Keys of one object: a dict that grows is copied in one step."""
    depth: int = 128


DEFAULT_LIMITS = JsonLimits()


def read(data: bytes, limits: JsonLimits = DEFAULT_LIMITS, decode: Callable[[bytes], Any] = msgspec.json.decode) -> Any:
    """Decode JSON; whole numbers are exact at any size. Raises ValueError for other text, JsonLimitError for too much.

    No step holds the interpreter lock for long; but all steps together may take a second for the largest texts, so an
    event loop reads a text of more than `PIECE_BYTES` in a thread.
    """
    data = data.removeprefix(BOM)
    if len(data) <= PIECE_BYTES or _holds_little(data, limits):
        check(data, limits)
        return decode(data)
    values = _Joined(decode, limits.keys)
    for start, end, _, brackets in _checked(data, limits):
        values.add(data[start:end], brackets, last=end == len(data))
    return values.root


def check(data: bytes, limits: JsonLimits = DEFAULT_LIMITS) -> None:
    """Raise JsonLimitError when the text holds too much, and ValueError when its brackets don't match."""
    if _holds_little(data, limits):
        return
    depths = [depth for _, _, depth, _ in _checked(data, limits)]
    if depths[-1]:
        raise ValueError("its brackets don't match")


def _holds_little(data: bytes, limits: JsonLimits) -> bool:
    """Whether even the brackets and commas in strings, which need not be told apart then, are within the limits."""
    return data.count(b"[") + data.count(b"{") <= limits.depth and data.count(b",") <= min(limits.items, _MAX_UNCUT_ITEMS)


def _checked(data: bytes, limits: JsonLimits) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the pieces of the text: start, end, depth at the end, and brackets. Raise when a limit is exceeded."""
    containers = items = depth = 0
    for start, end, structure in _pieces(data):
        items += structure.count(b",") + 1
        brackets = structure.translate(None, b",")
        containers += brackets.count(b"[") + brackets.count(b"{")
        if containers > limits.containers:
            raise JsonLimitError(f"holds more than {limits.containers:,} lists and objects")
        if items > limits.items:
            raise JsonLimitError(f"holds more than {limits.items:,} items")
        depths = list(accumulate(memoryview(brackets.translate(_STEPS)).cast("b"), initial=depth))
        if max(depths) > limits.depth:
            raise JsonLimitError(f"is nested deeper than {limits.depth} levels")
        if min(depths) < 0:
            raise ValueError("its brackets don't match")
        depth = depths[-1]
        yield start, end, depth, brackets


def _pieces(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield start, end and structure (brackets and commas outside strings) of pieces that end before such a comma."""
    start = at = 0
    in_string = False
    structures: list[bytes] = []
    while at < len(data):
        window = _whole_escapes(data[at : at + PIECE_BYTES])
        end = at + len(window) if window else at + 1  # a lone backslash at the very end is no JSON in any case
        comma = _last_comma(window, in_string) if end < len(data) else -1
        if comma >= 0:
            window = window[:comma]
        unescaped = _without_escapes(window)
        structures.append(_structure(unescaped, in_string))
        if comma >= 0:
            yield start, at + comma, b"".join(structures)
            start = at = at + comma + 1
            in_string, structures = False, []
        else:
            in_string ^= bool(unescaped.count(b'"') & 1)
            at = end
    yield start, len(data), b"".join(structures)


def _last_comma(window: bytes, in_string: bool) -> int:
    """Return the position of the last comma outside strings, or -1. It is usually near the end."""
    for begin in (max(0, len(window) - _TAIL_BYTES), 0):
        head = _whole_escapes(window[:begin])
        inside = in_string ^ bool(_without_escapes(head).count(b'"') & 1)
        found = _UP_TO_LAST_COMMA.match(b'"' * inside + window[len(head) :])
        assert found is not None
        if found.end():
            return len(head) + found.end() - 1 - inside
    return -1


def _whole_escapes(text: bytes) -> bytes:
    """Return the text without a backslash at its end that escapes what follows."""
    slashes = len(text) - len(text.rstrip(b"\\"))
    return text[:-1] if slashes % 2 else text


def _without_escapes(text: bytes) -> bytes:
    return text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text


def _structure(text: bytes, in_string: bool) -> bytes:
    """Return the brackets and commas outside strings."""
    structure = b'"' * in_string + text.translate(None, _NOT_STRUCTURE)
    if b'"' not in structure:
        return structure
    # Two quotes next to each other can go, whether they stand round or between strings: the rest stays in or outside.
    return _STRING_WITHOUT_ESCAPES.sub(b"", structure.replace(b'""', b""))


class _Joined:
    """Puts the values of pieces together. `root` is the value of all of them.

    A piece goes on with the lists and objects that were open before it, closes some, and opens others. It is decoded
    between the brackets that make it a whole; what belongs into an open list or object is then moved there.
    """

    def __init__(self, decode: Callable[[bytes], Any], max_keys: int) -> None:
        self.root: Any = None
        self._max_keys = max_keys
        self._decode = decode
        self._kinds = b""  # the brackets of what is open
        self._open: list[Any] = []
        # Names that the text can't contain: they stand for a member that goes on here, and for one that will go on.
        self._before, self._after = (secrets.token_hex(16) for _ in range(2))

    def add(self, piece: bytes, brackets: bytes, *, last: bool) -> None:
        """Decode the next piece of the text, between two commas."""
        closed, opened = _ends(brackets)
        if not self._kinds.endswith(closed[::-1].translate(bytes.maketrans(b"]}", b"[{"))):
            raise ValueError("its brackets don't match")
        kept = len(self._kinds) - len(closed)
        kinds = self._kinds[:kept] + opened
        if _BEGINS_WITHOUT_VALUE.match(piece) or piece.rstrip(b" \t\r\n")[-1:] in (b"[", b"{"):
            raise ValueError("a value is missing at a comma")
        if last == bool(kinds):
            raise ValueError("its brackets don't match" if last else "there is more than one value")
        base = max(kept - 1, 0)  # the outermost of the open ones that the piece goes on with
        value = self._decode(self._opening(base) + piece + self._closing(kinds, base))
        fresh = self._spine(value, opened, at_root=not self._kinds)
        if not last:
            self._remove_mark(fresh[-1] if fresh else value)
        if self._kinds:
            self._move(value, base)
        else:
            self.root = value
        self._kinds, self._open = kinds, self._open[:kept] + fresh

    def _opening(self, base: int) -> bytes:
        *outer, inner = self._kinds[base:] or b"\0"
        if not self._kinds:
            return b""
        mark = b'{"%b":' % self._before.encode()
        return b"".join(mark if kind == ord("{") else b"[" for kind in outer) + bytes([inner])

    def _closing(self, kinds: bytes, base: int) -> bytes:
        if not kinds:
            return b""
        name = b'"%b"' % self._after.encode()
        mark = b"," + (name + b":" + name if kinds[-1:] == b"{" else name)
        return mark + kinds[base:][::-1].translate(_MATCHING)

    def _spine(self, value: Any, opened: bytes, *, at_root: bool) -> list[Any]:
        """Return the lists and objects that the piece has opened and not closed, from the outermost to the innermost."""
        found: list[Any] = []
        for _ in opened:
            if not (at_root and not found):
                value = value[next(reversed(value))] if isinstance(value, dict) else value[-1]
            if not isinstance(value, dict | list):
                raise ValueError("an object names a key twice")
            found.append(value)
        return found

    def _remove_mark(self, inner: Any) -> None:
        mark = inner.pop(self._after, None) if isinstance(inner, dict) else inner.pop()
        if mark != self._after:
            raise ValueError("an object names a key twice")

    def _move(self, value: Any, base: int) -> None:
        """Move the items of the piece to the lists and objects that were open before it."""
        for level in range(base, len(self._kinds)):
            goes_on = level + 1 < len(self._kinds)
            if isinstance(value, dict):
                inner = value.pop(self._before) if goes_on else None
                self._open[level].update(value)
                if len(self._open[level]) > self._max_keys:
                    raise JsonLimitError(f"holds an object of more than {self._max_keys:,} keys")
            else:
                inner = value.pop(0) if goes_on else None
                self._open[level].extend(value)
            value = inner


def _ends(brackets: bytes) -> tuple[bytes, bytes]:
    """Return the brackets that a piece closes without having opened them, and those that it opens and leaves open."""
    while True:
        rest = brackets.replace(b"[]", b"").replace(b"{}", b"")  # each pass removes the innermost level
        if len(rest) == len(brackets):
            break
        brackets = rest
    found = _ENDS.fullmatch(rest)
    if found is None:
        raise ValueError("its brackets don't match")
    return found[1], found[2]
