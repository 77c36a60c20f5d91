"""Bounded parsing: code → `ast`, however hostile the code, without compiling any of it.

CPython's parser bounds its own nesting (brackets, blocks, recursion) and raises an exception beyond. The other problems,
and the defence against each:

- `compile` and `symtable` overflow the stack (`[x for x in y for x in y …]`, 90,000 times) → only `ast.parse` is used;
- `import a.a.a…` (50,000 parts) takes 5 s and 2.5 GB, an f-string of 300,000 expressions minutes, half a million
  statements 3 s and 900 MB → large texts are measured before parsing (`lexer`);
- warnings about invalid escapes would flood the host's stderr, or be errors there → they are silenced.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from gloveport.prepare.diagnostics import LINE_END
from gloveport.prepare.python.lexer import MAX_UNMEASURED_CHARS, too_large

MAX_TREE_DEPTH = 800
"""Levels of the tree: CPython 3.11 can't compile a tree of more than 990."""


class PythonTooDeepError(Exception):
    """The code nests deeper than the engine could follow, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class TooLargeError(Exception):
    """`what`, at `offset`, would take too long to read."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(offset, what)
        self.offset, self.what = offset, what


_latest: tuple[str, ast.Module] | None = None


def parse(code: str) -> ast.Module:
    """Return the tree of some code; raise `SyntaxError`, `PythonTooDeepError` or `TooLargeError`. Nobody may change it."""
    global _latest
    _latest = None  # two large trees would not fit into the memory of a task
    tree = _parse(code)
    _latest = (code, tree)
    return tree


def parse_again(code: str) -> ast.Module:
    """Return the tree of some code like `parse`, or the tree that `parse` returned last if it is the same code."""
    latest = _latest
    return latest[1] if latest and latest[0] == code else parse(code)


def _parse(code: str) -> ast.Module:
    measured = too_large(code) if len(code) > MAX_UNMEASURED_CHARS else None
    if measured:
        raise TooLargeError(*measured)
    try:
        with _quiet(code):
            tree = ast.parse(code, "<program>")
    except (RecursionError, MemoryError):
        raise PythonTooDeepError(0) from None
    # No character opens more than one level, so a short statement can't be deep.
    widest = max(map(len, code.split("\n")))
    long = [node for node in tree.body if ((node.end_lineno or 0) - node.lineno + 1) * widest > MAX_TREE_DEPTH]
    if long:
        _check_depth(long, code)
    return tree


# Also `1iffy`, which CPython refuses only after a warning.
_WARNS = re.compile(r"\\|[\da-fA-FjJ_.](?:and|else|for|if|in|is|not|or)")
_filters = threading.Lock()


def _quiet(code: str) -> AbstractContextManager[None]:
    """Silence warnings while parsing. Filters are global to the process: they change under a lock, and only when needed."""
    return _silenced() if _WARNS.search(code) else nullcontext()


@contextmanager
def _silenced() -> Iterator[None]:
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_PLAIN = """
    arg asname attr conversion ctx id is_async kind level module n name op ops s simple type_comment type_ignores"""


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of each kind of node that can hold relevant nodes."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        names: tuple[str, ...] = getattr(kind, "_fields", ())
        if issubclass(kind, ast.Constant | ast.Global | ast.Nonlocal | ast.MatchSingleton):
            names = ()
        found = self[kind] = tuple(name for name in names if name not in _PLAIN_FIELDS)
        return found


_PLAIN_FIELDS = frozenset(_PLAIN.split())
FIELDS = _Fields()


def children(node: object) -> list[ast.AST]:
    """Return the nodes right below a node, in no particular order."""
    found: list[ast.AST] = []
    for name in FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += value
        elif value is not None:
            found.append(value)
    return found


def _check_depth(statements: list[ast.stmt], code: str) -> None:
    level: list[ast.AST] = [*statements]
    deepest: ast.AST = statements[0]
    for _ in range(MAX_TREE_DEPTH):
        level = [child for node in level for child in children(node)]
        if not level:
            return
        deepest = next((node for node in level if hasattr(node, "lineno")), deepest)
    raise PythonTooDeepError(LineIndex(code).start(deepest))


class LineIndex:
    """The mapping from the parser's lines and columns to offsets in the code."""

    __slots__ = ("_ascii", "_code", "_starts")

    def __init__(self, code: str) -> None:
        self._code = code
        self._ascii = code.isascii()
        self._starts = [0, *(end.end() for end in LINE_END.finditer(code))]

    def line(self, number: int) -> tuple[int, int]:
        """Return where a line (1-based) starts, and where its text ends."""
        number = min(max(number, 1), len(self._starts))
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self._code)
        return start, start + len(self._code[start:end].rstrip("\r\n"))

    def number(self, offset: int) -> int:
        """Return the line (1-based) that holds an offset."""
        return bisect_right(self._starts, offset)

    def start(self, node: ast.AST) -> int:
        """Return the offset at which a node starts; `ast` counts columns in bytes."""
        return self._offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def end(self, node: ast.AST) -> int:
        """Return the offset at which a node ends."""
        return self._offset(getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))

    def _offset(self, line: int, column: int) -> int:
        start, end = self.line(line)
        if self._ascii:
            return start + column
        return start + len(self._code[start:end].encode()[:column].decode(errors="ignore"))
