"""YAML → plain values, for hostile texts too: no tags, no dates, no surprises from YAML 1.1, and aliases count as copies.

Keys are always texts as they are written (`200:`, `on:`); of plain scalars only null, true, false and numbers mean
something else than their text.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import yaml

from gloveport.errors import SourceError

MAX_YAML_DEPTH = 250
MAX_YAML_NODES = 10_000_000

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})$")
# A number with a leading zero is an octal one to some readers and a decimal one to others; it stays a text.
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())
}
_MERGE = "<<"

# Only the parsing of a loader is used. libyaml's is ten times as fast, where PyYAML was built with it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(raw: bytes, name: str) -> Any:
    """The value of a document's one YAML document; `name` is how a message calls it."""
    try:
        return _YamlComposer(raw, name).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = str(getattr(error, "problem", None) or "it can't be read")[:200]
        raise _refusal(name, f"is neither JSON nor YAML: {problem}{where}") from error
    except (UnicodeError, ValueError) as error:
        raise _refusal(name, "is no text in UTF-8") from error


def _refusal(name: str, problem: str) -> SourceError:
    return SourceError(f"{name} {problem}", hint="correct the definition, or get it again from where it came from")


class _YamlComposer:
    """Puts values together from the parser's events.

    Invariant: `_count` is the number of nodes that the value would have if every alias were a copy. The value itself shares
    them, so a text of a few lines that stands for billions of nodes is refused before anybody walks through it.
    """

    def __init__(self, raw: bytes, name: str) -> None:
        self._next = _Loader(raw.decode()).get_event
        self._name = name
        self._count = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        """The first document; a second one is an error."""
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        value = self._value(self._next(), 0)
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise _refusal(self._name, "holds more than one YAML document")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event)
        before = self._count
        self._add(1, event)
        if depth > MAX_YAML_DEPTH:
            self._fail(event, f"is nested deeper than {MAX_YAML_DEPTH} levels")
        if kind is yaml.ScalarEvent:
            value = _scalar(event)
        elif kind is yaml.MappingStartEvent:
            value = self._mapping(event, depth)
        else:
            value = self._sequence(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _mapping(self, start: Any, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        merged: list[Any] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if type(event) is yaml.AliasEvent:
                key = self._alias(event)
            elif type(event) is yaml.ScalarEvent:
                key = _checked(event.value)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (key, 1)
            else:
                self._fail(event, "has a key that is no text")
            if not isinstance(key, str):
                self._fail(event, "has a key that is no text")
            value = self._value(self._next(), depth + 1)
            if key == _MERGE and type(event) is yaml.ScalarEvent and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
            elif key in out:
                self._fail(event, f"has the key {key[:100]!a} twice in one object")
            else:
                out[key] = value
        for other in merged:
            if not isinstance(other, dict):
                self._fail(start, "merges something that is no object")
            self._add(len(other) + len(out), start)
            out = other | out
        return out

    def _sequence(self, depth: int) -> list[Any]:
        out: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            out.append(self._value(event, depth + 1))
        return out

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            self._fail(event, f"uses the alias *{str(event.anchor)[:60]} before it is whole")
        value, size = self._anchors[event.anchor]
        self._add(size, event)
        return value

    def _add(self, size: int, event: Any) -> None:
        self._count += size
        if self._count > MAX_YAML_NODES:
            self._fail(event, f"stands for more than {MAX_YAML_NODES:,} values")

    def _fail(self, event: Any, problem: str) -> NoReturn:
        raise _refusal(self._name, f"{problem} (line {event.start_mark.line + 1})")


def _checked(text: str) -> str:
    if not text.isascii():
        text.encode()  # half a surrogate pair, written as an escape, is no text: UnicodeEncodeError
    return text


def _scalar(event: Any) -> Any:
    text = _checked(event.value)
    if not event.implicit[0]:  # quoted, or tagged: a text
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-.":
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            number = float(text)
            return number if math.isfinite(number) else text
    return text
