"""A rough, linear-time reading of JavaScript's brackets and quotes, for text that may not parse at all.

It tells a regular expression from a division by the text before it, which is a guess in places. So it serves only to
refuse bombs early and to word messages; the meaning of a program never depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

PAIRS = {")": "(", "]": "[", "}": "{"}
CLOSERS = {"(": ")", "[": "]", "{": "}", "${": "}", "`": "`"}

_PLAIN = re.compile(r"[^\"'`/()\[\]{}]+")
_COMMENT = re.compile(r"//[^\n]*|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(\*/)?")
_STRING = re.compile(r"\"[^\"\\\n]*+(?:\\[\s\S][^\"\\\n]*+)*+(\")?|'[^'\\\n]*+(?:\\[\s\S][^'\\\n]*+)*+(')?")
_TEMPLATE = re.compile(r"[^`\\$]*+(?:(?:\\[\s\S]|\$(?!\{))[^`\\$]*+)*+(`|\$\{)?")
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*+\])++/\w*")
_BEFORE_REGEX = re.compile(
    r"(?:^|[^\w$)\]\s]|\b(?:return|typeof|case|in|of|do|else|void|delete|await|yield|new|throw))\s*\Z"
)


class Token(NamedTuple):
    """A bracket, or something left open: `kind` is the bracket, or `string`, `template`, `comment`."""

    kind: str
    offset: int


class BracketFault(NamedTuple):
    """The first error in brackets and quotes; `opener` is the bracket that it should have matched."""

    kind: str
    offset: int
    opener: Token | None = None


def tokens(text: str) -> Iterator[Token]:  # noqa: PLR0912 - one loop that reads one language
    """Yield the brackets outside strings, comments and regular expressions, and everything left unterminated."""
    position, length, barren = 0, len(text), 0
    nest: list[str] = []
    while position < length:
        plain = _PLAIN.match(text, position)
        if plain:
            position = plain.end()
            if position >= length:
                return
        start, character = position, text[position]
        position += 1
        if character in "\"'":
            matched = _STRING.match(text, start)
            assert matched
            position = matched.end()
            if not (matched[1] or matched[2]):
                yield Token("string", start)
        elif character == "/":
            position, kind, barren = _slash(text, start, barren)
            if kind:
                yield Token(kind, start)
        elif character == "`" or (character == "}" and nest and nest[-1] == "${"):
            if character == "}":
                nest.pop()
                yield Token("}", start)
            else:
                yield Token("`", start)
            matched = _TEMPLATE.match(text, position)
            assert matched
            position = matched.end()
            if matched[1] == "${":
                nest.append("${")
                yield Token("${", position - 2)
            elif matched[1]:
                yield Token("end`", position - 1)
            else:
                yield Token("template", start)
        else:
            if character in "([{":
                nest.append(character)
            elif nest and nest[-1] == PAIRS[character]:
                nest.pop()
            yield Token(character, start)


def _slash(text: str, start: int, barren: int) -> tuple[int, str, int]:
    """Return where reading continues after a slash, what is left open, and up to where no regular expression can start.

    Without `barren`, a line of slashes that close nothing would be read to its end once for each of them.
    """
    comment = _COMMENT.match(text, start)
    if comment:
        left_open = text.startswith("/*", start) and not comment[1]
        return comment.end(), "comment" if left_open else "", barren
    if start >= barren and _BEFORE_REGEX.search(text[max(0, start - 40) : start]):
        regex = _REGEX.match(text, start)
        if regex:
            return regex.end(), "", barren
        end = text.find("\n", start)
        barren = len(text) if end < 0 else end
    return start + 1, "", barren


def first_fault(text: str) -> BracketFault | None:
    """Return the first unterminated string, template or comment, or the first bracket without a partner."""
    nest: list[Token] = []
    for token in tokens(text):
        kind = token.kind
        if kind in {"string", "template", "comment"}:
            return BracketFault(kind, token.offset)
        if kind in CLOSERS:
            nest.append(token)
        elif kind == "end`":
            nest.pop()
        elif not nest:
            return BracketFault("close", token.offset)
        elif CLOSERS[nest[-1].kind] != kind:
            return BracketFault("close", token.offset, nest[-1])
        else:
            nest.pop()
    return BracketFault("open", nest[-1].offset, nest[-1]) if nest else None


def in_literal(text: str, offset: int) -> bool:
    """Return whether an offset seems to lie inside a template string or a comment that began before it."""
    last = ""
    for token in tokens(text[:offset]):
        last = token.kind
    return last in {"template", "comment"}


_TAIL = re.compile(r"(?:[\s;]++|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+\Z")
_LINE_HEAD = re.compile(r"(?:\A|[\n;])[ \t]*\Z")


def last_braces(text: str) -> tuple[int, int] | None:
    """Return where the `{…}` stands that ends a text and begins a line, outside all other brackets."""
    depth = start = end = 0
    for token in tokens(text):
        if token.kind in CLOSERS:
            start = token.offset if not depth else start
            depth += 1
        elif token.kind in PAIRS or token.kind == "end`":
            depth -= 1
            end = token.offset + 1 if not depth else end
    if depth or not end or text[start] != "{" or not _TAIL.match(text, end):
        return None
    return (start, end) if _LINE_HEAD.search(text, max(0, start - 80), start) else None


_DELTAS = [0] * 256
for _character in b"([{":
    _DELTAS[_character] = 1
for _character in b")]}":
    _DELTAS[_character] = -1
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"()[]{}")
_NOT_ANGLES = bytes(code for code in range(256) if code not in b"<>;(){}")


def too_deep(text: str, data: bytes, limit: int) -> int | None:
    """Return the offset at which brackets (or `<` after `<`) exceed the depth limit; None when they don't."""
    if b"<" * limit in data.translate(None, _NOT_ANGLES):
        return data.find(b"<")
    brackets = data.translate(None, _NOT_BRACKETS)
    if len(brackets) <= limit or max(accumulate(map(_DELTAS.__getitem__, brackets))) <= limit:
        return None
    depth = 0
    for token in tokens(text):
        if token.kind in CLOSERS:
            depth += 1
            if depth > limit:
                return token.offset
        elif token.kind in PAIRS or token.kind == "end`":
            depth = max(0, depth - 1)
    return None
