"""Where in a program a cursor is, as far as completion needs it: in a chain of names, or in the arguments of a call.

It reads words and brackets up to the cursor, in linear time, and parses nothing: the text is hostile, and what it means
decides only what an editor offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from gloveport.types import Language

MAX_SCANNED_CHARS = 20_000  # before the cursor
MAX_BRACKETS = 200
_NAME = r"(?P<name>[\w$]+)|(?P<mark>\?\.|[^\s])"
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*(?:\"|\n|\Z)|'(?:[^'\\\n]|\\.)*(?:'|\n|\Z)"
_SCRIPT = re.compile(
    rf"(?P<note>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>`(?:[^`\\]|\\.)*(?:`|\Z)|{_QUOTED})|{_NAME}", re.DOTALL
)
_PYTHON = re.compile(
    rf"""(?P<note>\#[^\n]*)|(?P<text>\"{{3}}.*?(?:\"{{3}}|\Z)|'{{3}}.*?(?:'{{3}}|\Z)|{_QUOTED})|{_NAME}""", re.DOTALL
)
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(slots=True)
class Bracket:
    """An open bracket: the chain of names before it, the keys that were given in it, and the one whose value follows."""

    mark: str
    chain: tuple[str, ...] = ()
    keys: list[str] = field(default_factory=list)
    key: str | None = None
    items: int = 0  # that a comma has ended


@dataclass(frozen=True, slots=True)
class CallPosition:
    """Where a cursor is. `chain` are the names before the dot that it follows, if it follows one.

    `word` is what stands from `start` to the cursor: a part of a name, or of a text if `quoted`. `brackets` are those that
    are open, the outermost first.
    """

    kind: Literal["name", "member"]
    start: int
    word: str
    quoted: bool
    chain: tuple[str, ...]
    brackets: tuple[Bracket, ...]


def position_at(code: str, offset: int, language: Language) -> CallPosition | None:
    """Return where the cursor is at an offset; None in a comment, or in too many brackets."""
    first = max(0, offset - MAX_SCANNED_CHARS)
    scan = _Scan(code[first:offset], language)
    if not scan.reads():
        return None
    kind, chain = ("member", scan.chain) if scan.after_dot and scan.chain else ("name", ())
    return CallPosition(kind, first + scan.start, scan.word, scan.quoted, chain, tuple(scan.open))


class _Scan:
    """The words and brackets of a text, read one after the other."""

    def __init__(self, text: str, language: Language) -> None:
        self._text, self._python = text, language == "python"
        self.open: list[Bracket] = []
        self.chain: tuple[str, ...] = ()
        self.after_dot = False
        self.start, self.word, self.quoted = len(text), "", False
        self._given: str | None = None  # a name or text that may be a key

    def reads(self) -> bool:
        """Read the text; return whether the cursor is where something can be completed."""
        for found in self._tokens():
            at_end = found.end() == len(self._text)
            if found["note"] is not None:
                if at_end:
                    return False
            elif found["text"] is not None:
                text = found["text"]
                if at_end and not (len(text) > 1 and text.endswith(text[0])):
                    self.start, self.word, self.quoted = found.start() + 1, text[1:], True
                    return text[0] != "`" and not text.startswith(('"""', "'''"))
                self._given, self.chain, self.after_dot = text[1:-1], (), False
            elif found["name"] is not None:
                if at_end:
                    self.start, self.word = found.start(), found["name"]
                    return True
                self._read_name(found["name"])
            else:
                self._read_mark(found["mark"])
            if len(self.open) > MAX_BRACKETS:
                return False
        return True

    def _tokens(self) -> Iterator[re.Match[str]]:
        return (_PYTHON if self._python else _SCRIPT).finditer(self._text)

    def _read_name(self, name: str) -> None:
        self.chain = (*self.chain, name) if self.after_dot and self.chain else () if self.after_dot else (name,)
        self._given, self.after_dot = (name if len(self.chain) == 1 else None), False

    def _read_mark(self, mark: str) -> None:
        if mark in (".", "?."):
            self.after_dot = bool(self.chain)
            return
        if mark in "([{":
            self.open.append(Bracket(mark, self.chain if mark == "(" else ()))
        elif mark in _PAIRS:
            if self.open and self.open[-1].mark == _PAIRS[mark]:
                self.open.pop()
        elif self.open:
            self._read_separator(self.open[-1], mark)
        self.chain, self.after_dot, self._given = (), False, None

    def _read_separator(self, inside: Bracket, mark: str) -> None:
        if mark == ",":
            if inside.key is None and self._given is not None and inside.mark == "{":
                inside.keys.append(self._given)  # {city, …}
            inside.key, inside.items = None, inside.items + 1
        elif self._given is not None and inside.key is None and mark == ("=" if inside.mark == "(" else ":"):
            inside.key = self._given
            inside.keys.append(self._given)
