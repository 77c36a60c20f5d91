"""Diagnostics: the line, column, source line, caret and hint of an error in the agent's text."""

from __future__ import annotations

import re
import unicodedata

from gloveport.errors import ProgramError

MAX_FRAME_CHARS = 100
"""How many characters of a long source line a frame shows."""

LINE_END = re.compile(r"\r\n?|\n")


def line_and_column(source: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column (in characters) of an offset. Lines end as in editors: LF, CRLF or CR."""
    offset = min(max(offset, 0), len(source))
    if offset and source[offset - 1 : offset + 1] == "\r\n":
        offset -= 1
    line = source.count("\n", 0, offset) + 1
    start = source.rfind("\n", 0, offset) + 1
    if "\r" in source:
        line += source.count("\r", 0, offset) - source.count("\r\n", 0, offset)
        start = max(start, source.rfind("\r", 0, offset) + 1)
    return line, offset - start + 1


def program_error(
    source: str,
    offset: int,
    message: str,
    *,
    code: str = "syntax-error",
    hint: str | None = None,
    length: int = 1,
    tool: str | None = None,
) -> ProgramError:
    """Return a `ProgramError` at an offset of the agent's text, with its frame."""
    line, column = line_and_column(source, offset)
    shown = frame(source, line, column, length)
    return ProgramError(message, code=code, hint=hint, line=line, column=column, frame=shown, tool=tool)


def frame(source: str, line: int, column: int, length: int = 1) -> str:
    """Return the source line with its number and a caret below the column. Long lines are cut around the caret."""
    text = _line(source, line)
    start = min(max(column - 1, 0), len(text))
    stop = min(start + max(length, 1), len(text)) if start < len(text) else start + 1
    left = max(0, min(start - MAX_FRAME_CHARS // 2, len(text) - MAX_FRAME_CHARS))
    right = min(len(text), left + MAX_FRAME_CHARS)
    before = ("…" if left else "") + _visible(text[left:start])
    marked = _visible(text[start : min(stop, right)])
    after = _visible(text[min(stop, right) : right]) + ("…" if right < len(text) else "")
    number = str(line)
    gutter = " " * len(number)
    carets = "^" * max(1, _cells(marked))
    shown = f"{number} | {before}{marked}{after}".rstrip()
    return f"{shown}\n{gutter} | {' ' * _cells(before)}{carets}"


def _line(source: str, line: int) -> str:
    bounds = line_bounds(source, line)
    return source[slice(*bounds)] if bounds else ""


def line_bounds(text: str, line: int, separators: str = "") -> tuple[int, int] | None:
    """Return where a line (1-based) starts and ends; None if there is no such line. `separators` end a line too.

    A text of a megabyte can have a million lines, so they are counted in C, by halves, and not visited one by one.
    """
    plain = text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text
    for separator in separators:
        plain = plain.replace(separator, "\n")
    start = _after_newline(plain, line - 1)
    if start is None:
        return None
    end = plain.find("\n", start)
    if end < 0:
        return start, len(text)
    return start, end - 1 if text.startswith("\r\n", end - 1) else end


def _after_newline(text: str, count: int) -> int | None:
    """Return the offset behind this many newlines."""
    if count < 0 or text.count("\n") < count:
        return None
    low, high, before = 0, len(text), 0  # `before` newlines stand before `low`
    while low < high and before < count:
        middle = (low + high) // 2
        inside = text.count("\n", low, middle)
        if before + inside < count:
            low, before = middle, before + inside
        elif high - low > 1:
            high = middle
        if high - low == 1:
            return high
    return low


HIDDEN = frozenset("\u00a0\u00ad\u180e\u2028\u2029\u3164\ufeff")


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    if character in HIDDEN or unicodedata.category(character)[0] == "C":
        return f"\\x{ord(character):02x}" if ord(character) < 0x80 else f"\\u{{{ord(character):x}}}"
    return character


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
