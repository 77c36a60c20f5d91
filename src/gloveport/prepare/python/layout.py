"""Find a Python program in the agent's text: bare or fenced, indented or not, typed at a prompt or not.

Text that does not belong to it becomes empty lines, so lines keep their numbers. Margins and prompts are cut, so columns
may change; spans lead back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gloveport.errors import ProgramError
from gloveport.prepare import fences
from gloveport.prepare.diagnostics import program_error
from gloveport.prepare.positions import Edit, rewrite
from gloveport.prepare.python.lexer import MAX_UNMEASURED_CHARS, in_string, strings, too_large
from gloveport.types import Span

MANY_DIGITS = "this integer has more than 4300 digits"
MANY_DIGITS_HINT = "write it in hexadecimal (0x…), or pass it as `input`"

MARGINAL = frozenset(["", " ", "\t", "\f", "\n", "\r", "#", ">", "\ufeff"])
"""First characters of a text that may have a margin or prompts."""

_LONE_CR = re.compile(r"\r(?!\n)")
_FIRST_LINE = re.compile(r"(?:[ \t\f]*+(?:#[^\n]*+)?\r?\n)*+([ \t]*+)(>>>(?=[ \r\n]|\Z))?")
_LINE = re.compile(r"^([ \t]*)(\S)?[^\n]*", re.MULTILINE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |(?=\r?\Z))")


class Layout(NamedTuple):
    """The agent's text, the code in it, and the spans of the code that stand unchanged in the text."""

    source: str
    code: str
    spans: tuple[Span, ...]


def layouts(source: str) -> Iterator[Layout]:
    """Yield the ways to find a program in a text, the likeliest first; the others serve when that one does not parse."""
    text = _LONE_CR.sub("\n", source) if "\r" in source else source
    blocks = fences.blocks(text, fences.PYTHON) if fences.has_fence(text) else []
    if not blocks and text[:1] not in MARGINAL:
        yield Layout(source, source, (Span(0, 0, len(source)),))
        return
    if not blocks or in_string(text, blocks[0].fence):
        yield _lay_out(source, text, [(0, len(text))])
        return
    chosen = fences.programs(blocks, fences.PYTHON)
    if not chosen:
        raise _no_program(source, blocks[0])
    yield _lay_out(source, text, [(block.start, block.end) for block in chosen])
    wide = fences.widest(text, chosen[0])
    if wide:
        yield _lay_out(source, text, [(wide.start, wide.end)])


def _no_program(source: str, block: fences.Block) -> Exception:
    message = f"the only code block is labelled `{block.label}`, not Python"
    hint = "label the program's fence `python`, or send the program without a fence"
    if block.label in fences.LABELS:
        hint = 'write the program in Python, or run it with language="typescript"'
    return program_error(source, block.fence, message, hint=hint, length=3 + len(block.label))


def too_long(source: str, offset: int, what: str) -> ProgramError:
    """Return the diagnostic of something that would take too long to read."""
    if what == "this number":
        return program_error(source, offset, MANY_DIGITS, hint=MANY_DIGITS_HINT)
    return program_error(source, offset, f"{what} is too long to read", hint="pass large data as `input`, not as code")


def _lay_out(source: str, text: str, stretches: list[tuple[int, int]]) -> Layout:
    edits: list[Edit] = []
    end = 0
    for start, stop in stretches:
        edits.append(_blank(text, end, start))
        mark = text.startswith("\ufeff", start)
        edits += [Edit(start, start + mark, ""), *_trim(source, text, start + mark, stop)]
        end = stop
    edits.append(_blank(text, end, len(text)))
    edits = [edit for edit in edits if edit.end > edit.start]
    if not edits:
        return Layout(source, source, (Span(0, 0, len(source)),) if source else ())
    return Layout(source, *rewrite(text, edits))  # not of `source`: its lone CR would join the LF of an empty line


def _blank(text: str, start: int, end: int) -> Edit:
    return Edit(start, end, "\n" * text.count("\n", start, end))


def _trim(source: str, text: str, start: int, end: int) -> Iterable[Edit]:
    """Return the edits that remove the prompts or the margin from a stretch of code."""
    first = _FIRST_LINE.match(text, start, end)
    if not first or not (first[1] or first[2]):
        return ()
    measured = too_large(text[start:end]) if end - start > MAX_UNMEASURED_CHARS else None
    if measured:
        raise too_long(source, start + measured[0], measured[1])
    return _without_prompts(text, start, end) if first[2] else _without_margin(text, start, end)


def _without_prompts(text: str, start: int, end: int) -> Iterator[Edit]:
    for line in _LINE.finditer(text[start:end]):
        prompt = _PROMPT.match(line[0])
        offset = start + line.start()
        yield Edit(offset, offset + (prompt.end() if prompt else len(line[0].rstrip("\r"))), "")


def _without_margin(text: str, start: int, end: int) -> Iterator[Edit]:
    """Cut the indentation that all lines of code share; lines inside strings only if all of them have it too."""
    body = text[start:end]
    held = [span for span in strings(body) if "\n" in body[span[0] : span[1]]]
    code: list[re.Match[str]] = []
    comments: list[re.Match[str]] = []
    quoted: list[re.Match[str]] = []
    index = 0
    for line in _LINE.finditer(body):
        if line[2] is None:
            continue
        while index < len(held) and held[index][1] <= line.start():
            index += 1
        inside = index < len(held) and held[index][0] < line.start()
        (quoted if inside else comments if line[2] == "#" else code).append(line)
    margin = min((line[1] for line in code), key=len, default="")
    if not margin or not all(line[1].startswith(margin) for line in code):
        return
    if not all(line[1].startswith(margin) for line in quoted):
        quoted = []
    for line in (*code, *comments, *quoted):
        if line[1].startswith(margin):
            yield Edit(start + line.start(), start + line.start() + len(margin), "")
