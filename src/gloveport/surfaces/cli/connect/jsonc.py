"""Edits JSON with comments in place: everything else in the text stays, to the last comment, comma and space.

Editors and agents keep their settings in such files, and people edit them by hand. So a file is never serialized anew:
`put` and `remove` change the span of one member in the text, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gloveport.errors import OptionError

MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true\b|false\b|null\b')


@dataclass(frozen=True, slots=True)
class JsoncMember:
    """One `"key": value` of an object: `start` is the offset of its key, `comma` of the comma after it, if there is one."""

    start: int
    value: JsoncNode
    comma: int | None = None


@dataclass(frozen=True, slots=True)
class JsoncNode:
    """A value and its span in the text; `members` are those of an object."""

    data: Any
    start: int
    end: int
    members: dict[str, JsoncMember] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JsoncDocument:
    """A text and its value; the root of an empty text is an empty object with an empty span."""

    text: str
    root: JsoncNode
    comments: tuple[str, ...]


def parse(text: str) -> JsoncDocument:
    """Parse the text; raise OptionError with line and column where it is not JSON with comments."""
    return _JsoncReader(text).document()


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with this value at this path; missing objects on the path are created."""
    document = parse(text)
    style = _JsoncStyle.of(text)
    if not document.root.end:
        head = text.rstrip(" \t\r\n")
        gap = style.newline if document.comments else ""
        return head + gap + style.rendered(_nested(path, value), "") + style.newline
    node, depth = document.root, 0
    while depth < len(path):
        if not isinstance(node.data, dict):
            where = ".".join(path[:depth]) or "the document"
            raise OptionError(f"{where} is not an object")
        if path[depth] not in node.members:
            return _inserted(text, node, path[depth], _nested(path[depth + 1 :], value), style)
        node, depth = node.members[path[depth]].value, depth + 1
    return text[: node.start] + style.rendered(value, _indent(text, node.start)) + text[node.end :]


def remove(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at this path; comments around it stay."""
    *above, key = path
    node = parse(text).root
    for part in above:
        node = node.members[part].value
    keys = list(node.members)
    at, member = keys.index(key), node.members[key]
    end = member.comma + 1 if member.comma is not None else member.value.end
    before = node.members[keys[at - 1]].comma if at and member.comma is None else None
    line = text.rfind("\n", 0, member.start) + 1
    start = line if not text[line : member.start].strip() else member.start
    rest = re.compile(r"[ \t]*\r?\n").match(text, end) if start == line else None
    kept = text[:start] if before is None else text[:before] + text[before + 1 : start]
    return kept + text[rest.end() if rest else end :]


def _inserted(text: str, node: JsoncNode, key: str, value: Any, style: _JsoncStyle) -> str:
    outer = _indent(text, node.start)
    inner = outer + style.unit
    member = f"{inner}{json.dumps(key, ensure_ascii=False)}: {style.rendered(value, inner)}"
    close = node.end - 1
    last = len(text[:close].rstrip(" \t\r\n"))  # the end of the last member, comma or comment, whichever is last
    head = text[:last]
    if node.members:
        final = list(node.members.values())[-1]
        if final.comma is None:
            head = text[: final.value.end] + "," + text[final.value.end : last]
    return head + style.newline + member + style.newline + outer + text[close:]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _indent(text: str, at: int) -> str:
    """Return the white space at the start of the line of an offset."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : line + len(text[line:at]) - len(text[line:at].lstrip(" \t"))]


@dataclass(frozen=True, slots=True)
class _JsoncStyle:
    """The indentation and the line ending that the text uses."""

    unit: str
    newline: str

    @classmethod
    def of(cls, text: str) -> _JsoncStyle:
        found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
        return cls(found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n")

    def rendered(self, value: Any, indent: str) -> str:
        return json.dumps(value, indent=self.unit, ensure_ascii=False).replace("\n", self.newline + indent)


class _JsoncReader:
    """Parses the text in one pass: strict JSON, plus comments and trailing commas."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._comments: list[str] = []

    def document(self) -> JsoncDocument:
        mark = self._peek()
        root = JsoncNode({}, 0, 0) if mark is None else self._value(0)
        if self._peek() is not None:
            raise self._error("there is text after the end")
        return JsoncDocument(self._text, root, tuple(self._comments))

    def _peek(self) -> str | None:
        """Skip spaces and comments; return the first character of the next token, or None at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # pyright: ignore[reportOptionalMemberAccess]
            mark = self._text[self._at : self._at + 1]
            comment = _COMMENT.match(self._text, self._at) if mark == "/" else None
            if comment is None:
                return mark or None
            self._comments.append(comment[0])
            self._at = comment.end()

    def _value(self, depth: int) -> JsoncNode:
        mark, start = self._peek(), self._at
        if depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        if mark == "{":
            return self._object(start, depth)
        if mark == "[":
            return self._array(start, depth)
        token = _SCALAR.match(self._text, self._at)
        if token is None:
            raise self._error("a value is missing here")
        try:
            data = json.loads(token[0])
        except ValueError:
            raise self._error("this is not a JSON value") from None
        self._at = token.end()
        return JsoncNode(data, start, self._at)

    def _object(self, start: int, depth: int) -> JsoncNode:
        members: dict[str, JsoncMember] = {}
        self._at += 1
        while self._peek() != "}":
            key_at = self._at
            if self._peek() != '"':
                raise self._error("a key in double quotes, or `}`, is missing here")
            key = self._value(depth).data
            if key in members:
                self._at = key_at
                raise self._error(f"the key {json.dumps(key)[:60]} is there twice")
            self._expect(":")
            value = self._value(depth + 1)
            members[key] = JsoncMember(key_at, value, self._comma("}"))
        self._at += 1
        return JsoncNode({key: member.value.data for key, member in members.items()}, start, self._at, members)

    def _array(self, start: int, depth: int) -> JsoncNode:
        items: list[Any] = []
        self._at += 1
        while self._peek() != "]":
            items.append(self._value(depth + 1).data)
            self._comma("]")
        self._at += 1
        return JsoncNode(items, start, self._at)

    def _comma(self, close: str) -> int | None:
        mark, at = self._peek(), self._at
        if mark == ",":
            self._at += 1
            return at
        if mark != close:
            raise self._error(f"a `,` or `{close}` is missing here")
        return None

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._error(f"a `{mark}` is missing here")
        self._at += 1

    def _error(self, problem: str) -> OptionError:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return OptionError(f"line {line}, column {column}: {problem}")
