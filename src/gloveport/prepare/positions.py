"""Map between the engine's code and the agent's text: edits produce spans, and spans lead back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gloveport.prepare.diagnostics import line_and_column, line_bounds
from gloveport.types import Program, Span

ENGINE_LINE_END = re.compile("\r\n?|[\n\u2028\u2029]")
"""What ends a line for V8."""
ENGINE_SEPARATORS = "\u2028\u2029"
"""What ends a line for V8 and not for an editor."""


class Edit(NamedTuple):
    """Replace source[start:end] with `text`."""

    start: int
    end: int
    text: str


def rewrite(source: str, edits: Iterable[Edit]) -> tuple[str, tuple[Span, ...]]:
    """Return the edited text, and the spans of it that stand unchanged in the source. Edits must not overlap."""
    pieces: list[str] = []
    spans: list[Span] = []
    written = read = 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if edit.start > read:
            spans.append(Span(written, read, edit.start - read))
            pieces.append(source[read : edit.start])
            written += edit.start - read
        pieces.append(edit.text)
        written += len(edit.text)
        read = max(read, edit.end)
    if read < len(source):
        spans.append(Span(written, read, len(source) - read))
        pieces.append(source[read:])
    return "".join(pieces), tuple(spans)


def compose_spans(spans: Iterable[Span], inner: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans into the source for spans into a text that was itself rewritten (`inner`: its own spans)."""
    inner = tuple(inner)
    composed: list[Span] = []
    for span in spans:
        for part in inner:
            start = max(span.source, part.code)
            end = min(span.source + span.length, part.code + part.length)
            if start < end:
                composed.append(Span(span.code + start - span.source, part.source + start - part.code, end - start))
    return tuple(composed)


def locate(program: Program, line: int, column: int) -> tuple[int, int] | None:
    """Return where the agent wrote what the engine reports at `line`, `column`; None for generated text.

    Both are 1-based. V8 counts columns in UTF-16 units, the Python guest in characters.
    """
    place_in_code = _python_offset if program.language == "python" else _engine_offset
    offset = place_in_code(program.code, line, column)
    if offset is None:
        return None
    source_offset = source_offset_of(program, offset)
    if source_offset is None:
        source_offset = _following(program, offset)
    return None if source_offset is None else line_and_column(program.source, source_offset)


def _following(program: Program, offset: int) -> int | None:
    """Return where the expression starts that follows generated text (`return (`), if it is on the same line."""
    index = bisect_right(program.spans, offset, key=lambda span: span.code)
    if index >= len(program.spans):
        return None
    span = program.spans[index]
    return None if ENGINE_LINE_END.search(program.code, offset, span.code) else span.source


def source_offset_of(program: Program, offset: int) -> int | None:
    """Return the offset in `program.source` of an offset in `program.code`; None for generated text."""
    span = _span_before(program.spans, offset)
    if span is None:
        return None
    return span.source + offset - span.code if offset < span.code + span.length else None


def nearest_source_offset(spans: Sequence[Span], offset: int) -> int:
    """Return the offset in the source of an offset in the code; for generated text, the end of the text before it."""
    span = _span_before(spans, offset)
    if span is None:
        return spans[0].source if spans else 0
    return span.source + min(offset - span.code, span.length)


def _span_before(spans: Sequence[Span], offset: int) -> Span | None:
    index = bisect_right(spans, offset, key=lambda span: span.code) - 1
    return spans[index] if index >= 0 else None


def _python_offset(code: str, line: int, column: int) -> int | None:
    bounds = line_bounds(code, line)
    if bounds is None or column < 1:
        return None
    start, end = bounds
    return start + column - 1 if column - 1 <= end - start else None


def _engine_offset(code: str, line: int, column: int) -> int | None:
    bounds = line_bounds(code, line, ENGINE_SEPARATORS)
    if bounds is None or column < 1:
        return None
    start, end = bounds
    text = code[start : min(end, start + column)]
    if text.isascii():
        return start + column - 1 if column - 1 <= end - start else None
    units = 0
    for index, character in enumerate(text):
        if units >= column - 1:
            return start + index
        units += 2 if ord(character) > 0xFFFF else 1
    return start + len(text) if units == column - 1 else None
