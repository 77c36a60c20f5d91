"""A rough, linear-time reading of Python's strings, comments and brackets, for text that may not parse at all.

It reads an f-string as one string, which is a guess where quotes nest in it (Python 3.12). So it serves only to refuse
bombs early, to find fences and margins, and to word messages; the meaning of a program never depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = (
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z|\\\Z)'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:'''|\Z|\\\Z)"
    r'|"[^"\\\r\n]*+(?:\\(?:\r\n|.)[^"\\\r\n]*+)*+"?'
    r"|'[^'\\\r\n]*+(?:\\(?:\r\n|.)[^'\\\r\n]*+)*+'?"
)
_LITERAL = re.compile(rf"#[^\r\n]*+|{_STRING}", re.DOTALL)
_TOKEN = re.compile(rf"\w++|[\r\n]\s*+|#[^\r\n]*+|{_STRING}|[^\w\s]", re.DOTALL)
_PREFIX = re.compile(r"(?<!\w)[bfruBFRU]{1,2}\Z")
_DOTTED = re.compile(r"\b(?:import|from)\b[\s\\]*+(?:\w++[\s\\]*+\.[\s\\]*+){100}")
_DIGITS = re.compile(r"(?<![\w.])[1-9][\d_]{4300,}+(?![\w.])")

MAX_UNMEASURED_CHARS = 16 * 1024
"""Texts up to this size are parsed in a few milliseconds, whatever they hold."""
MAX_TOKENS = 100_000
"""More tokens take seconds to read, and 2 KB of memory each, here and in the guest."""
MAX_FSTRING_WORK = 200_000_000
"""The lengths of f-strings times their expressions: for each expression, CPython 3.11 reads the f-string from its start."""


def strings(text: str) -> Iterator[tuple[int, int]]:
    """Yield where string literals stand. An unterminated one ends with its line or with the text."""
    for literal in _LITERAL.finditer(text):
        start, end = literal.span()
        if text[start] == "#":
            continue
        prefix = _PREFIX.search(text, max(0, start - 3), start)
        yield prefix.start() if prefix else start, end


def in_string(text: str, offset: int) -> bool:
    """Return whether an offset seems to lie inside a triple-quoted string that began before it."""
    if '"""' not in text[:offset] and "'''" not in text[:offset]:
        return False
    return any(start < offset < end for start, end in strings(text))


def too_large(text: str) -> tuple[int, str] | None:
    """Return the offset and the name of what would take the parser too long; None when nothing would."""
    dotted = _DOTTED.search(text)
    if dotted:
        return dotted.start(), "this import"
    digits = _DIGITS.search(text)
    if digits:
        return digits.start(), "this number"
    formatting = 0
    for count, token in enumerate(_TOKEN.finditer(text)):
        if count >= MAX_TOKENS:
            return token.start(), "the program"
        start, end = token.span()
        if end - start > 1000 and text[start] in "\"'" and "f" in text[max(0, start - 2) : start].lower():
            formatting += (end - start) * text.count("{", start, end)
            if formatting > MAX_FSTRING_WORK:
                return start, "this f-string"
    return None
