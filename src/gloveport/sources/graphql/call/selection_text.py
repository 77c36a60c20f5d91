"""The text of a selection → a tree: fields, inline fragments and argument values of GraphQL, and nothing else.

Directives, variables and named fragments, which reach outside a selection, are refused here. Time is linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gloveport.sources.graphql.rows import MAX_NAME_CHARS
from gloveport.suggestions import Sieve, near

MAX_SELECT_CHARS = 20_000
MAX_SELECT_TOKENS = 3_000
MAX_SELECT_DEPTH = 12
MAX_VALUE_DEPTH = 100
MAX_COMPARED_CHARS = 40
MAX_COMPARED_NAMES = 1_000

# GraphQL ignores commas and byte order marks between tokens. No part matches in two ways, so matching is linear.
_IGNORED = re.compile(r"(?:[\ufeff \t\n\r,]|\#[^\n\r]*+)*+")
_TOKEN = re.compile(
    _IGNORED.pattern
    + r"""(?:(?P<name>[_A-Za-z][_0-9A-Za-z]*+)
    |(?P<mark>\.\.\.|[!$&()\[\]{}:=@|])
    |(?P<float>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++)(?![_0-9A-Za-z.]))
    |(?P<int>-?(?:0|[1-9][0-9]*+)(?![_0-9A-Za-z.]))
    |(?P<block>\"\"\")
    |(?P<string>"(?:[^"\\\x00-\x08\n-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+")
    |(?P<end>\Z))""",
    re.VERBOSE,
)


class SelectionError(Exception):
    """Something in a selection that is not allowed; `at` is its offset in the text."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


class Value(NamedTuple):
    """The value of an argument. A list has its items in `parts`, an object its fields by name."""

    kind: Literal["int", "float", "string", "boolean", "null", "enum", "list", "object"]
    at: int
    text: str = ""
    parts: tuple[tuple[str, Value], ...] = ()

    def printed(self) -> str:
        """Return the value as GraphQL."""
        if self.kind == "list":
            return f"[{', '.join(item.printed() for _, item in self.parts)}]"
        if self.kind == "object":
            return f"{{{', '.join(f'{name}: {item.printed()}' for name, item in self.parts)}}}"
        return self.text


@dataclass(slots=True)
class FieldNode:
    """A field. `below` is None where nothing is selected below it. A check adds its parent and its type."""

    at: int
    name: str
    alias: str | None = None
    arguments: list[tuple[str, Value]] = field(default_factory=list)
    below: list[Node] | None = None
    parent: str = ""
    in_object: bool = False
    answer: str = ""

    @property
    def key(self) -> str:
        """The name of the field in the answer."""
        return self.alias or self.name

    def call(self) -> str:
        """Return the field with its arguments, as GraphQL."""
        given = ", ".join(f"{name}: {value.printed()}" for name, value in self.arguments)
        return f"{self.name}({given})" if given else self.name


@dataclass(slots=True)
class FragmentNode:
    """An inline fragment; `on` is None where it names no type."""

    at: int
    on: str | None
    below: list[Node]


Node = FieldNode | FragmentNode


def parse_selection(text: str) -> list[Node]:
    """Return the selection that the text has, with or without braces around it; raise SelectionError."""
    if len(text) > MAX_SELECT_CHARS:
        raise SelectionError(f"it is longer than {MAX_SELECT_CHARS:,} characters")
    parser = _Parser(text)
    found = parser.selections(1, closed=parser.skip("{"))
    if parser.kind != "end":
        raise SelectionError("it may name fields only: no operations, no fragment definitions", parser.at)
    if not found:
        raise SelectionError("it names no field")
    return found


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question that offers the closest of the names, with a space before it; "" where none is close."""
    if len(name) > MAX_COMPARED_CHARS:
        return ""
    known = [one for one in names[:MAX_COMPARED_NAMES] if len(one) <= MAX_COMPARED_CHARS]
    similar = [f"'{one}'" for one in near(name, [known[index] for index in Sieve(known).like(name)])]
    return f" Did you mean {' or '.join(similar)}?" if similar else ""


def printed(nodes: list[Node]) -> str:
    """Return the selection as GraphQL, on one line."""
    return " ".join(_printed(node) for node in nodes)


def _printed(node: Node) -> str:
    if isinstance(node, FragmentNode):
        start = f"... on {node.on}" if node.on else "..."
    else:
        start = f"{node.alias}: {node.call()}" if node.alias else node.call()
    return f"{start} {{ {printed(node.below)} }}" if node.below else start


class _Parser:
    """A recursive parser; `kind`, `word` and `at` are the token that comes next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._read()
        self.kind, self.word, self.at = next(self._tokens)

    def _read(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        for _ in range(MAX_SELECT_TOKENS):
            found = _TOKEN.match(self._text, at)
            if found is None:
                at = _IGNORED.match(self._text, at).end()  # pyright: ignore[reportOptionalMemberAccess] - it always matches
                raise SelectionError(f"{self._text[at : at + 1]!a} is not expected here", at)
            kind = str(found.lastgroup)
            yield kind, found[kind], found.start(kind)
            at = found.end()
        raise SelectionError(f"it has more than {MAX_SELECT_TOKENS:,} tokens", at)

    def next(self) -> str:
        word = self.word
        if self.kind != "end":
            self.kind, self.word, self.at = next(self._tokens)
        return word

    def skip(self, mark: str) -> bool:
        """Take the mark if it comes next."""
        found = self.kind == "mark" and self.word == mark
        if found:
            self.next()
        return found

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise self.unexpected(f"`{mark}`")

    def name(self) -> str:
        if self.kind != "name":
            raise self.unexpected("a name")
        if len(self.word) > MAX_NAME_CHARS:
            raise SelectionError(f"a name is longer than {MAX_NAME_CHARS} characters", self.at)
        return self.next()

    def unexpected(self, expected: str) -> SelectionError:
        if self.kind == "mark" and self.word == "@":
            return SelectionError("directives are not allowed", self.at)
        found = "the end of the text" if self.kind == "end" else f"`{self.word[:40]}`"
        return SelectionError(f"there is {found} where {expected} should be", self.at)

    def selections(self, depth: int, *, closed: bool) -> list[Node]:
        """Return the selections up to the closing brace, or where there is none, to the end."""
        if depth > MAX_SELECT_DEPTH:
            raise SelectionError(f"it is nested deeper than {MAX_SELECT_DEPTH} levels", self.at)
        found: list[Node] = []
        while not (closed and self.skip("}")) and (closed or self.kind != "end"):
            at = self.at
            found.append(self.fragment(at, depth) if self.skip("...") else self.field(at, depth))
        return found

    def fragment(self, at: int, depth: int) -> FragmentNode:
        on = None
        if self.kind == "name":
            if self.word != "on":
                raise SelectionError("named fragments are not allowed; write `... on TYPE { … }`", at)
            self.next()
            on = self.name()
        self.expect("{")
        below = self.selections(depth + 1, closed=True)
        if not below:
            raise SelectionError("the fragment names no field", at)
        return FragmentNode(at, on, below)

    def field(self, at: int, depth: int) -> FieldNode:
        node = FieldNode(at, self.name())
        if self.skip(":"):
            node.alias, node.name = node.name, self.name()
        if self.skip("("):
            while not self.skip(")"):
                name = self.name()
                self.expect(":")
                node.arguments.append((name, self.value(1)))
        if self.skip("{"):
            node.below = self.selections(depth + 1, closed=True)
        return node

    def value(self, depth: int) -> Value:
        if depth > MAX_VALUE_DEPTH:
            raise SelectionError("a value in it is nested too deeply", self.at)
        at = self.at
        if self.skip("["):
            items = []
            while not self.skip("]"):
                items.append(("", self.value(depth + 1)))
            return Value("list", at, parts=tuple(items))
        if self.skip("{"):
            fields: dict[str, Value] = {}
            while not self.skip("}"):
                name = self.name()
                self.expect(":")
                if name in fields:
                    raise SelectionError(f"`{name}` is there twice", at)
                fields[name] = self.value(depth + 1)
            return Value("object", at, parts=tuple(fields.items()))
        return self.plain_value(at)

    def plain_value(self, at: int) -> Value:
        match self.kind:
            case "int" | "float" as kind:
                return Value(kind, at, self.next())
            case "string":
                # Written anew: what is sent does not depend on how a service reads escapes.
                return Value("string", at, json.dumps(json.loads(self.next(), strict=False), ensure_ascii=False))
            case "name":
                word = self.name()
                return Value("null" if word == "null" else "boolean" if word in ("true", "false") else "enum", at, word)
            case "block":
                raise SelectionError('block strings are not allowed; write "…"', at)
            case _ if self.skip("$"):
                raise SelectionError(f"variables are not allowed; write the value in place of ${self.word[:40]}", at)
            case _:
                raise self.unexpected("a value")
