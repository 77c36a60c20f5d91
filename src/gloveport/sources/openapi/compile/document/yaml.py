"""Parse YAML into plain values, safely for hostile texts: no tags, no dates, and aliases count as copies.

Keys are always strings, exactly as they are written (`200:`, `on:`). A plain scalar is a string unless it is null, true,
false or a number; the other special words of YAML 1.1 stay strings. As in JSON here, an integer beyond 64 bits is a float.

The parser refuses two things that published definitions have. Here a line of only tabs and spaces is an empty line, and a
control character above ASCII reads as U+FFFD.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import yaml

from gloveport.errors import SourceError

MAX_YAML_DEPTH = 250
MAX_YAML_NODES = 10_000_000

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,19})$")
_INTEGERS = range(-(2**63), 2**64)
"""What the JSON libraries can write."""
# Some readers take a number with a leading zero as octal, others as decimal. It stays a string.
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())
}
_MERGE = "<<"
_BLANK_LINE_WITH_TAB = re.compile(r"^ *\t[ \t]*$", re.MULTILINE)
_NOT_ALLOWED = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")

# Only the loader's parser is used. libyaml's parser is ten times as fast, if PyYAML was built with it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(raw: bytes, name: str) -> Any:
    """Return the value of a text that holds one YAML document; messages call the text `name`."""
    try:
        return _YamlComposer(raw, name).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = str(getattr(error, "problem", None) or "it can't be parsed")[:200]
        raise _refusal(name, f"is neither JSON nor YAML: {problem}{where}") from error
    except (UnicodeError, ValueError) as error:
        raise _refusal(name, "is not text in UTF-8") from error


def _refusal(name: str, problem: str) -> SourceError:
    return SourceError(f"{name} {problem}", hint="correct the definition, or get it again from where it came from")


class _YamlComposer:
    """Builds values from the parser's events.

    Invariant: `_count` is the number of nodes that the value would have if every alias were a copy. The value itself shares
    the nodes. A few lines can stand for billions of nodes; such a text is refused before anything walks through it.
    """

    def __init__(self, raw: bytes, name: str) -> None:
        text = raw.decode()
        if "\t" in text:
            text = _BLANK_LINE_WITH_TAB.sub("", text)
        if not text.isascii():
            text = _NOT_ALLOWED.sub("\ufffd", text)
        self._next = _Loader(text).get_event
        self._name = name
        self._count = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        """Return the value of the only document; a second document is an error."""
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
                key = _valid_text(event.value)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (key, 1)
            else:
                self._fail(event, "has a key that is not a string")
            if not isinstance(key, str):
                self._fail(event, "has a key that is not a string")
            value = self._value(self._next(), depth + 1)
            if key == _MERGE and type(event) is yaml.ScalarEvent and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
            elif key in out:
                self._fail(event, f"has the key {key[:100]!a} twice in one object")
            else:
                out[key] = value
        for other in merged:
            if not isinstance(other, dict):
                self._fail(start, "merges a value that is not an object")
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
            self._fail(event, f"uses the alias *{str(event.anchor)[:60]} before it is complete")
        value, size = self._anchors[event.anchor]
        self._add(size, event)
        return value

    def _add(self, size: int, event: Any) -> None:
        self._count += size
        if self._count > MAX_YAML_NODES:
            self._fail(event, f"stands for more than {MAX_YAML_NODES:,} values")

    def _fail(self, event: Any, problem: str) -> NoReturn:
        raise _refusal(self._name, f"{problem} (line {event.start_mark.line + 1})")


def _valid_text(text: str) -> str:
    if not text.isascii():
        text.encode()  # raises UnicodeEncodeError for a lone surrogate that was written as an escape
    return text


def _scalar(event: Any) -> Any:
    text = _valid_text(event.value)
    if not event.implicit[0]:  # quoted or tagged: a string
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-.":
        if _INT.match(text) and (number := int(text)) in _INTEGERS:
            return number
        if _FLOAT.match(text):
            number = float(text)
            return number if math.isfinite(number) else text
    return text
