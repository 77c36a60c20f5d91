"""Versions and ranges of npm packages, as npm reads them: `^1.2`, `~1.2.3`, `1.x`, `>=1 <3`, `1.2 - 1.4`, `1 || 2`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import total_ordering
from typing import NamedTuple

MAX_RANGE_CHARS = 400

_NUMBER = r"(?:0|[1-9][0-9]{0,15})"
_TAIL = r"(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
_VERSION = re.compile(rf"[v=\s]*(?P<a>{_NUMBER})\.(?P<b>{_NUMBER})\.(?P<c>{_NUMBER}){_TAIL}")
_PART = rf"{_NUMBER}|[xX*]"
_SIMPLE = re.compile(
    rf"(?P<op>\^|~>?|>=|<=|>|<|=)?\s*[v=]*\s*(?P<a>{_PART})(?:\.(?P<b>{_PART})(?:\.(?P<c>{_PART}){_TAIL})?)?"
)
_OPERATOR_SPACE = re.compile(r"(\^|~>?|>=|<=|>|<|=)\s+")


@total_ordering
class Version(NamedTuple):
    """One version. A pre-release comes before its release."""

    numbers: tuple[int, int, int]
    pre: tuple[tuple[int, int, str], ...] = ()

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, Version)
        return (self.numbers, not self.pre, self.pre) < (other.numbers, not other.pre, other.pre)

    def __gt__(self, other: object) -> bool:
        return not (self < other or self == other)

    def __le__(self, other: object) -> bool:
        return self < other or self == other

    def __ge__(self, other: object) -> bool:
        return not self < other


class Comparator(NamedTuple):
    """One bound of a range: `>=1.2.3`."""

    operator: str
    version: Version

    def admits(self, version: Version) -> bool:
        """Return whether the version is on the right side of the bound."""
        match self.operator:
            case ">=":
                return version >= self.version
            case "<":
                return version < self.version
            case ">":
                return version > self.version
            case "<=":
                return version <= self.version
            case _:
                return version == self.version


Range = tuple[tuple[Comparator, ...], ...]
"""Alternatives, each of bounds that all hold."""


def parse_version(text: str) -> Version | None:
    """Return a version, or None for a text that is none."""
    matched = _VERSION.fullmatch(text.strip())
    return _version(matched) if matched else None


def parse_range(text: str) -> Range | None:
    """Return a range, or None for a text that is none, such as a tag or a URL."""
    if len(text) > MAX_RANGE_CHARS:
        return None
    alternatives = [_alternative(part.strip()) for part in text.split("||")]
    return None if None in alternatives else tuple(each for each in alternatives if each is not None)


def matches(version: Version, range: Range) -> bool:
    """Return whether a range has the version. A pre-release only where a bound names one of the same numbers."""
    for bounds in range:
        if all(bound.admits(version) for bound in bounds) and (
            not version.pre or any(bound.version.pre and bound.version.numbers == version.numbers for bound in bounds)
        ):
            return True
    return False


def newest(versions: Iterable[str], range: Range) -> str | None:
    """Return the newest of the versions that are in the range."""
    found = [(parsed, text) for text in versions if (parsed := parse_version(text)) and matches(parsed, range)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _alternative(text: str) -> tuple[Comparator, ...] | None:
    if " - " in text:
        first, _, last = text.partition(" - ")
        low, high = _bounds(f">={first.strip()}"), _bounds(f"<={last.strip()}")
        return None if low is None or high is None else (*low, *high)
    bounds: list[Comparator] = []
    for part in _OPERATOR_SPACE.sub(r"\1", text).split():
        found = _bounds(part)
        if found is None:
            return None
        bounds += found
    return tuple(bounds)


def _bounds(text: str) -> tuple[Comparator, ...] | None:
    matched = _SIMPLE.fullmatch(text)
    if matched is None:
        return None
    operator = matched["op"] or ""
    numbers = [int(matched[name]) for name in "abc" if matched[name] and matched[name].isdigit()]
    missing = next((place for place, name in enumerate("abc") if not (matched[name] or "x").isdigit()), 3)
    numbers = numbers[:missing]
    low = Version((*numbers, *(0,) * (3 - len(numbers))), _pre(matched["pre"]))  # pyright: ignore
    if operator in (">=", "<") and (numbers or operator == ">="):
        return (Comparator(operator, low),)
    if not numbers:
        return () if operator not in ("<", ">") else (Comparator("<", Version((0, 0, 0))),)
    if operator in (">", "<="):
        if len(numbers) == 3:
            return (Comparator(operator, low),)
        return (Comparator(">=" if operator == ">" else "<", _after(numbers, len(numbers))),)
    if operator == "^":
        significant = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        return Comparator(">=", low), Comparator("<", _after(numbers, significant + 1))
    if operator.startswith("~"):
        return Comparator(">=", low), Comparator("<", _after(numbers, min(len(numbers), 2)))
    if len(numbers) == 3:
        return (Comparator("=", low),)
    return Comparator(">=", low), Comparator("<", _after(numbers, len(numbers)))


def _after(numbers: list[int], count: int) -> Version:
    """Return the version after all those that begin with the first `count` numbers."""
    kept = [*numbers[: count - 1], numbers[count - 1] + 1]
    return Version((*kept, *(0,) * (3 - count)))  # pyright: ignore


def _version(matched: re.Match[str]) -> Version:
    return Version((int(matched["a"]), int(matched["b"]), int(matched["c"])), _pre(matched["pre"]))


def _pre(text: str | None) -> tuple[tuple[int, int, str], ...]:
    """Return the parts of a pre-release so that they compare: numbers first, then texts."""
    parts = text.split(".") if text else []
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
