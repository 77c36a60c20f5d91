"""Parsing: text → syntax tree with offsets in characters.

The parser is C code that was not written for hostile text. It runs in a process that is killed when a text keeps it busy
for too long or overflows its stack. Two problems that honest mistakes cause too get a better answer here:

- error recovery is quadratic (32 KB of `'a'b` take 3 s) → the parser gets the text in slices, and no more slices once
  its CPU time is used up: the first error is in what it has read;
- deep nesting overflows the stack of the parser or of an engine → brackets are counted before parsing (`lexer`).
"""

from __future__ import annotations

import re
import time
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, NamedTuple

from tree_sitter import Language, LogType, Parser

from gloveport.prepare.typescript.lexer import too_deep

if TYPE_CHECKING:
    from tree_sitter import Node, Point, Tree


def _load_grammar() -> Language:
    """Return the grammar from the library in its package. The package would load 25 modules for its queries."""
    package = find_spec("tree_sitter_typescript")
    library = PathFinder.find_spec("tree_sitter_typescript._binding", package and package.submodule_search_locations)
    assert library is not None
    return Language(module_from_spec(library).language_typescript())


TYPESCRIPT = _load_grammar()
_PARSER = Parser(TYPESCRIPT)
MAX_BRACKET_DEPTH = 1000
MAX_DIRECT_BYTES = 4096  # of a text that the parser gets in one piece
SLICE_BYTES = 1024
BASE_SECONDS = 0.3  # until no more slices come, plus SECONDS_PER_BYTE
SECONDS_PER_BYTE = 3.0 / (1 << 20)


class Parsed(NamedTuple):
    """A syntax tree; offsets are characters of `shape`. `complete` is False when the time ran out before the end."""

    tree: Tree
    shape: str
    complete: bool

    @property
    def root(self) -> Node:
        """The root of the tree."""
        return self.tree.root_node


class ScriptTooDeepError(Exception):
    """Brackets nest deeper than any engine could follow, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Shapes(dict[int, str]):
    """Map every character to an ASCII character of the same class, so that bytes and characters count alike."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if code in {0x2028, 0x2029}:
            shape = "\n"
        elif character.isspace() or code == 0xFEFF:
            shape = " "
        elif ("a" + character).isidentifier() or code in {0x200C, 0x200D}:
            shape = "a"
        else:
            shape = "\x01"
        if len(self) < 5000:
            self[code] = shape
        return shape


_ASCII = {code: chr(code) if code >= 32 or chr(code) in "\t\n\v\f\r" else "\x01" for code in range(127)} | {127: "\x01"}
_SHAPES = _Shapes(_ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_LONE_CR = re.compile(r"\r(?!\n)")


def shape_of(source: str) -> str:
    r"""Return the source in ASCII: each other character becomes a letter, a space, or \x01 if it can be neither."""
    shape = source if source.isascii() and not _CONTROL.search(source) else source.translate(_SHAPES)
    return _LONE_CR.sub("\n", shape) if "\r" in shape else shape


def parse(shape: str) -> Parsed:
    """Return the syntax tree of a shape."""
    data = shape.encode("ascii")
    if len(data) > MAX_BRACKET_DEPTH:
        offset = too_deep(shape, data, MAX_BRACKET_DEPTH)
        if offset is not None:
            raise ScriptTooDeepError(offset)
    if len(data) <= MAX_DIRECT_BYTES:
        return Parsed(_PARSER.parse(data), shape, True)
    deadline = time.thread_time() + BASE_SECONDS + SECONDS_PER_BYTE * len(data)
    complete = True

    def read(offset: int, _point: Point) -> bytes:
        nonlocal complete
        if time.thread_time() > deadline and offset < len(data):
            complete = False
            return b""
        return data[offset : offset + SLICE_BYTES]

    return Parsed(_PARSER.parse(read), shape, complete)


_PROCESS = re.compile(r"process version:\d+, version_count:\d+, state:\d+, row:(\d+), col:(\d+)")


def stuck_at(shape: str) -> int | None:
    """Return the offset after the last token that could still begin a valid program; None if the parser never got stuck."""
    data = shape.encode("ascii")
    here = found = (0, 0)
    done = False

    def log(_kind: LogType, message: str) -> None:
        nonlocal here, found, done
        if done:
            return
        if message.startswith("process"):
            matched = _PROCESS.match(message)
            if matched:
                here = (int(matched[1]), int(matched[2]))
        elif message.startswith("detect_error"):
            found = here
        elif message.startswith("resume"):
            done = True

    deadline = time.thread_time() + BASE_SECONDS

    def read(offset: int, _point: Point) -> bytes:
        return b"" if done or time.thread_time() > deadline else data[offset : offset + SLICE_BYTES]

    Parser(TYPESCRIPT, logger=log).parse(read)
    if not done or time.thread_time() > deadline:
        return None
    row, column = found
    start = 0
    for _ in range(row):
        start = shape.index("\n", start) + 1
    return start + column
