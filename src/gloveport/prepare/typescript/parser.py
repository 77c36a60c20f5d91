"""Bounded parsing: text → syntax tree with offsets in characters, however hostile the text.

The parser is C code that was not written for hostile text. Each known problem, and the defence against it:

- deep ambiguous nesting (`{a:` × 100,000) recurses until the stack overflows and the process dies → large texts are
  parsed on a thread whose stack has room for one level per byte;
- error recovery is quadratic (32 KB of `'a'b` take 3 s) → the parser gets the text in slices, and no more slices once
  its time is used up;
- `a<` × 400,000 takes 4 s and 1.2 GB, most of it after the last slice → nesting is checked before parsing (`lexer`);
- `class<T/*>[[]}A<y>c ` never ends → the parser stops itself after some seconds. This uses a deprecated option: its
  replacement in version 0.26 crashes the process.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tree_sitter import Language, LogType, Parser
from tree_sitter_typescript import language_typescript

from gloveport.prepare.typescript.lexer import too_deep

if TYPE_CHECKING:
    from tree_sitter import Node, Point, Tree

TYPESCRIPT = Language(language_typescript())
MAX_BRACKET_DEPTH = 1000
MAX_DIRECT_BYTES = 4096  # of a text that the parser gets in one piece
MAX_INLINE_BYTES = 16 * 1024  # of a text that is parsed on the caller's stack
SLICE_BYTES = 1024
STACK_BYTES_PER_BYTE = 128
MIN_STACK_BYTES = 16 << 20
MAX_STACK_BYTES = 1 << 30
BASE_SECONDS = 0.3  # until no more slices come, plus SECONDS_PER_BYTE
SECONDS_PER_BYTE = 3.0 / (1 << 20)
MAX_PARSE_SECONDS = 0.3  # until the parser stops itself
MAX_LARGE_PARSE_SECONDS = 20.0


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


class ParserTimeoutError(Exception):
    """The parser used up its time."""


class _Parsers:
    """Parsers with a time limit, each used by one thread at a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._idle: deque[Parser] = deque()

    def parse(self, source: bytes | Callable[[int, Point], bytes]) -> Tree:
        """Return the tree of a source; raise `ParserTimeoutError` after the time limit."""
        try:
            parser = self._idle.pop()
        except IndexError:
            parser = self._make()
        began = time.thread_time()
        try:
            while True:
                try:
                    return parser.parse(source)
                except ValueError:
                    parser.reset()
                # With less CPU time in all attempts together, the machine was busy: try again.
                if time.thread_time() - began > self._seconds / 2:
                    raise ParserTimeoutError
        finally:
            self._idle.append(parser)

    def _make(self) -> Parser:
        with warnings.catch_warnings():  # the replacement, a callback, crashes the process
            warnings.simplefilter("ignore", DeprecationWarning)
            return Parser(TYPESCRIPT, timeout_micros=int(self._seconds * 1e6))


_PARSERS, _PARSERS_LARGE = _Parsers(MAX_PARSE_SECONDS), _Parsers(MAX_LARGE_PARSE_SECONDS)


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
    """Return the syntax tree of a shape, in bounded time and without ever overflowing the stack."""
    data = shape.encode("ascii")
    if len(data) <= MAX_DIRECT_BYTES and len(data) <= MAX_BRACKET_DEPTH:
        return Parsed(_PARSERS.parse(data), shape, True)
    offset = too_deep(shape, data, MAX_BRACKET_DEPTH)
    if offset is not None:
        raise ScriptTooDeepError(offset)
    if len(data) <= MAX_DIRECT_BYTES:
        return Parsed(_PARSERS.parse(data), shape, True)
    if len(data) <= MAX_INLINE_BYTES:
        return _parse_slices(_PARSERS, shape, data)
    return _on_large_stack(lambda: _parse_slices(_PARSERS_LARGE, shape, data), len(data))


def _parse_slices(parsers: _Parsers, shape: str, data: bytes) -> Parsed:
    deadline = time.thread_time() + BASE_SECONDS + SECONDS_PER_BYTE * len(data)
    complete = True

    def read(offset: int, _point: Point) -> bytes:
        nonlocal complete
        if time.thread_time() > deadline and offset < len(data):
            complete = False
            return b""
        return data[offset : offset + SLICE_BYTES]

    tree = parsers.parse(read)
    return Parsed(tree, shape, complete)


_stack_size = threading.Lock()


def _on_large_stack(work: Callable[[], Parsed], size: int) -> Parsed:
    """Return the result of `work`. `threading.stack_size` is global: it changes under a lock while the thread starts."""
    results: list[Parsed | ParserTimeoutError] = []

    def run() -> None:
        try:
            results.append(work())
        except ParserTimeoutError as error:
            results.append(error)

    thread = threading.Thread(target=run, name="gloveport-parse", daemon=True)
    stack = min(max(size * STACK_BYTES_PER_BYTE, MIN_STACK_BYTES), MAX_STACK_BYTES)
    with _stack_size:
        before = threading.stack_size(stack)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if isinstance(results[0], ParserTimeoutError):
        raise results[0]
    return results[0]


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

    parser = Parser(TYPESCRIPT, logger=log)
    parser.parse(lambda offset, _point: b"" if done else data[offset : offset + SLICE_BYTES])
    if not done:
        return None
    row, column = found
    start = 0
    for _ in range(row):
        start = shape.index("\n", start) + 1
    return start + column
