r"""Find a text in bytes although any of its characters may be escaped: as URLs, forms, JSON or HTML do it, also mixed.

Escaped text may have been escaped again: JSON in JSON, JSON in a URL. So `-` may be `%2D`, `%252d`, `\\u002d`, `&amp;#45;`.

The search is for an anchor, the longest part that no escaping changes. Round each anchor the rest of the text is compared
character by character, forwards and backwards. What is left open (`%25` may stand for `%25`, or for `%` once escaped) is
kept open: the comparison goes on from all positions where the next character may begin. There are few of them, and each is
visited once, so near misses take no longer than the text itself. After as many steps as only a hostile text needs, the
rest of it is removed: better too much than a secret.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

MIN_STEPS = 5_000
BYTES_PER_STEP = 16
_MAX_POSITIONS = 64
_MAX_BACKSLASHES = 64  # in front of one character
_NESTED = b"{0,8}"  # how often `%` may have become `%25`, and `&` become `&amp;`
_STEP_BYTES = 1024 * 1024
_REST_OF_RUN = re.compile(rb"[0-9A-Za-z]*")
_TOKENS = re.compile(r"([0-9A-Za-z]+)|(\\+)|([^\\])", re.DOTALL)


class EscapedText:
    """A text to find in bytes, however it is escaped."""

    def __init__(self, text: str) -> None:
        self._tokens = [found[0] for found in _TOKENS.finditer(text)]
        runs = [token for token in self._tokens if _is_run(token)]
        self._anchor = max(runs, key=len).encode() if runs else b""
        self._place = self._tokens.index(self._anchor.decode()) if runs else 0
        self._before = _Comparison(self._tokens[: self._place][::-1], backwards=True)
        self._after = _Comparison(self._tokens[self._place + bool(runs) :], backwards=False)

    def replace_in(self, data: bytes, shown: bytes) -> bytes:
        """Return the data with `shown` in place of the text; the same object when it does not occur."""
        if self._anchor and find(data, self._anchor) < 0:
            return data
        parts, done = [], 0
        for start, end in self._find(data):
            parts += [data[done:start], shown]
            done = end
        return b"".join([*parts, data[done:]]) if parts else data

    def _find(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where the text begins and ends."""
        steps = MIN_STEPS + len(data) // BYTES_PER_STEP
        backwards = _reversed(data) if self._place else b""
        done = 0
        for start, end in self._anchors(data):
            if start < done:
                continue
            if steps < 0:
                yield start, len(data)
                return
            last, spent = self._after.longest(data, end)
            steps -= spent
            if last is None:
                continue
            first, spent = self._before.longest(backwards, len(data) - start)
            steps -= spent
            if first is not None:
                yield max(len(data) - first, done), last
                done = last

    def _anchors(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where the anchor occurs; for a text without letters and digits, where its first character may begin."""
        if not self._anchor:
            yield from ((found.start(), found.start()) for found in _beginning(self._tokens[0]).finditer(data))
            return
        size, at = len(self._anchor), find(data, self._anchor)
        while at >= 0:
            end = at + size
            if self._after:  # then no letter or digit follows: only the last one of a run of overlapping anchors counts
                end = _REST_OF_RUN.match(data, end).end()  # type: ignore[union-attr]  # it matches nothing, too
                at = end - size
            if data.startswith(self._anchor, at):
                yield at, end
            at = find(data, self._anchor, at + 1)


class _Comparison:
    """Compares tokens with data, in one direction, from one position on."""

    def __init__(self, tokens: Sequence[str], *, backwards: bool) -> None:
        self._steps: list[Callable[[bytes, set[int]], set[int]]] = []
        for index, token in enumerate(tokens):
            neighbour = (
                tokens[index + 1 : index + 2] if backwards else tokens[max(index - 1, 0) : index]
            )  # before it in the text
            self._steps.append(_step(token, backwards, bool(neighbour) and neighbour[0][0] == "\\"))

    def __bool__(self) -> bool:
        return bool(self._steps)

    def longest(self, data: bytes, at: int) -> tuple[int | None, int]:
        """Return where the tokens end at the latest, or None if they don't follow; and the number of steps taken."""
        positions, spent = {at}, 1
        for step in self._steps:
            positions = step(data, positions)
            spent += 1 + len(positions)
            if not positions:
                return None, spent
            if len(positions) > _MAX_POSITIONS:
                positions = set(sorted(positions)[-_MAX_POSITIONS:])
        return max(positions), spent


def _step(token: str, backwards: bool, beside_backslash: bool) -> Callable[[bytes, set[int]], set[int]]:
    if _is_run(token):
        run = token.encode()[::-1] if backwards else token.encode()
        return lambda data, positions: {at + len(run) for at in positions if data.startswith(run, at)}
    slash = _backslash(backwards)
    if token[0] == "\\":
        return lambda data, positions: _over_backslashes(slash, data, _matched([slash], data, positions))
    plain, escaped = _spellings(token, backwards)

    def forwards_step(data: bytes, positions: set[int]) -> set[int]:
        behind = positions if beside_backslash else _matched([slash], data, positions)
        return _matched(plain, data, _over_backslashes(slash, data, positions)) | _matched(
            escaped, data, _over_backslashes(slash, data, behind)
        )

    def backwards_step(data: bytes, positions: set[int]) -> set[int]:
        ends = _matched(escaped, data, positions)
        ends = ends if beside_backslash else _matched([slash], data, ends)
        return _over_backslashes(slash, data, ends | _matched(plain, data, positions))

    return backwards_step if backwards else forwards_step


def _matched(patterns: Sequence[re.Pattern[bytes]], data: bytes, positions: set[int]) -> set[int]:
    return {found.end() for at in positions for pattern in patterns if (found := pattern.match(data, at))}


def _over_backslashes(slash: re.Pattern[bytes], data: bytes, positions: set[int]) -> set[int]:
    """Return the positions, and all that can be reached from them over backslashes."""
    reached = set(positions)
    waiting = list(positions)
    while waiting and len(reached) <= _MAX_BACKSLASHES:
        found = slash.match(data, waiting.pop())
        if found and found.end() not in reached:
            reached.add(found.end())
            waiting.append(found.end())
    return reached


def find(data: bytes, part: bytes, start: int = 0) -> int:
    """Return where the part begins first, or -1. Each step of the search is short."""
    for at in range(start, len(data), _STEP_BYTES):
        found = data.find(part, at, at + _STEP_BYTES + len(part) - 1)
        if found >= 0:
            return found
    return -1


def _is_run(token: str) -> bool:
    return token.isascii() and token.isalnum()


def _reversed(data: bytes) -> bytes:
    steps = range(0, len(data), _STEP_BYTES)
    return b"".join(data[at : at + _STEP_BYTES][::-1] for at in reversed(steps))


# ── spellings of one character, as patterns that match forwards or backwards ──


class _Way:
    """Builds patterns for one direction: backwards, the parts and the bytes of each stand in reverse order."""

    def __init__(self, backwards: bool) -> None:
        self._order = -1 if backwards else 1

    def text(self, data: bytes) -> bytes:
        return re.escape(data[:: self._order])

    def caseless(self, data: bytes) -> bytes:
        return b"(?i:%b)" % self.text(data)

    def sequence(self, *parts: bytes) -> bytes:
        return b"".join(parts[:: self._order])

    def percent(self, byte: int, nested: bytes = _NESTED) -> bytes:
        return self.sequence(self.text(b"%"), b"(?:%b)%b" % (self.text(b"25"), nested), self.caseless(b"%02x" % byte))

    def ampersand(self, nested: bytes = _NESTED) -> bytes:
        again = self.sequence(self.caseless(b"amp"), self._semicolon())
        sign = _either(self.text(b"&"), self.percent(ord("&")), self.caseless(b"u0026"))
        return self.sequence(sign, b"(?:%b)%b" % (again, nested))

    def entity(self, name: bytes) -> bytes:
        return self.sequence(self.ampersand(), name, self._semicolon())

    def number(self, char: str) -> bytes:
        decimal = self.sequence(b"0{0,8}", self.text(b"%d" % ord(char)))
        hexadecimal = self.sequence(self.caseless(b"x"), b"0{0,8}", self.caseless(b"%x" % ord(char)))
        sign = _either(self.text(b"#"), self.percent(ord("#")))
        return self.entity(self.sequence(sign, _either(decimal, hexadecimal)))

    def backslash(self) -> bytes:
        return _either(self.text(b"\\"), self.percent(ord("\\")), self.caseless(b"u005c"), self.number("\\"))

    def _semicolon(self) -> bytes:
        return _either(self.text(b";"), self.percent(ord(";")))


def _either(*patterns: bytes) -> bytes:
    return b"(?:%b)" % b"|".join(patterns)


@lru_cache(maxsize=1024)
def _spellings(char: str, backwards: bool) -> tuple[list[re.Pattern[bytes]], list[re.Pattern[bytes]]]:
    """Return patterns for the spellings of a character, and for those that stand behind a backslash."""
    data, way = char.encode("utf-8", "surrogateescape"), _Way(backwards)
    # A pattern finds one end: where a spelling can have several, there is a pattern for each.
    nested = [b"{%d}" % times for times in range(8)] if char in "%&" else [_NESTED]
    plain = [way.text(data), way.number(char)]
    plain += [way.sequence(*(way.percent(byte, times) for byte in data)) for times in nested]
    if char == "&":
        plain += [way.ampersand(times) for times in nested]
    elif (named := html.escape(char)) != char:
        plain.append(way.entity(way.text(named[1:-1].encode())))
    if char == " ":
        plain += [way.text(b"+"), way.percent(ord("+"))]
    units = [way.caseless(b"u%04x" % unit) for unit in _units(char)]
    in_json = [way.text(json.dumps(char)[1:-1].lstrip("\\").encode())]
    in_json.append(way.sequence(units[0], *(part for unit in units[1:] for part in (way.backslash() + b"{1,64}", unit))))
    return [re.compile(pattern) for pattern in plain], [re.compile(pattern) for pattern in in_json]


def _units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[index : index + 2], "big") for index in range(0, len(data), 2)]


@lru_cache(maxsize=2)
def _backslash(backwards: bool) -> re.Pattern[bytes]:
    return re.compile(_Way(backwards).backslash())


@lru_cache(maxsize=256)
def _beginning(token: str) -> re.Pattern[bytes]:
    """Return a pattern that matches where a spelling of the token may begin."""
    slash = _backslash(backwards=False).pattern
    if token[0] == "\\":
        return re.compile(slash)
    return re.compile(b"|".join([slash, *(pattern.pattern for pattern in _spellings(token, backwards=False)[0])]))
