"""The diagnostic of a text that does not parse, at its first and most useful place."""

from __future__ import annotations

import re
from typing import NamedTuple

from gloveport.errors import ProgramError
from gloveport.prepare.diagnostics import line_and_column, program_error
from gloveport.prepare.mistakes import hint_for_mistake, name_character
from gloveport.prepare.typescript.lexer import CLOSERS, BracketFault, first_fault
from gloveport.prepare.typescript.parser import Parsed, stuck_at

MAX_EXACT_BYTES = 64 * 1024
"""Texts up to this size are parsed a second time for the exact place; larger ones use the tree's first error."""

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*")
_TOKEN = re.compile(r"[\w$]+|=>|\.\.\.|[=!]==?|[<>]=?|&&|\|\||\?\?|\+\+|--|.")


class ScriptDiagnosis(NamedTuple):
    """A place, and the message and hint for it."""

    offset: int
    length: int
    message: str
    hint: str | None = None


def explain(source: str, parsed: Parsed) -> ProgramError:
    """Return the diagnostic of a text that does not parse."""
    finding = _find(source, parsed)
    return program_error(source, finding.offset, finding.message, hint=finding.hint, length=finding.length)


def unterminated_string(source: str, offset: int) -> ProgramError:
    """Return the diagnostic of a string that its line does not close."""
    finding = _unterminated(source, offset)
    return program_error(source, offset, finding.message, hint=finding.hint)


def _unterminated(source: str, offset: int) -> ScriptDiagnosis:
    hint = f"close it with {source[offset]} on the same line; for text of several lines use backticks"
    return ScriptDiagnosis(offset, 1, "unterminated string", hint)


def _find(source: str, parsed: Parsed) -> ScriptDiagnosis:
    if not parsed.root.has_error:
        return ScriptDiagnosis(0, 1, "the program takes too long to parse", "split it, or pass large data as `input`")
    shape = parsed.shape
    exact = stuck_at(shape) if len(shape) <= MAX_EXACT_BYTES else None
    offset = _token_after(shape, _first_error(parsed) if exact is None else exact)
    end = len(shape.rstrip())
    if offset < end and shape[offset] == "\x01":
        message, hint = name_character(source[offset])
        return ScriptDiagnosis(offset, 1, message, hint)
    fault = first_fault(shape) if len(shape) <= MAX_EXACT_BYTES * 4 else None
    mistake = hint_for_mistake(source, shape, offset)
    finding = _lexical(source, fault, offset, end) or _unexpected(source, shape, offset, end, fault)
    return finding._replace(hint=mistake) if mistake else finding


def _first_error(parsed: Parsed) -> int:
    """Return the offset of the first error node, without recursion."""
    cursor = parsed.tree.walk()
    while True:
        node = cursor.node
        assert node
        if node.is_error or node.is_missing or not cursor.goto_first_child():
            return node.start_byte
        while (child := cursor.node) and not (child.has_error or child.is_missing):
            if not cursor.goto_next_sibling():
                return node.start_byte


def _token_after(shape: str, offset: int) -> int:
    matched = _BLANK.match(shape, offset)
    return matched.end() if matched else offset


def _lexical(source: str, fault: BracketFault | None, offset: int, end: int) -> ScriptDiagnosis | None:
    if fault is None:
        return None
    if fault.kind == "string" and fault.offset <= offset:
        return _unterminated(source, fault.offset)
    if fault.kind == "template" and (offset >= end or fault.offset <= offset):
        return ScriptDiagnosis(fault.offset, 1, "unterminated template string", "close it with a backtick")
    if fault.kind == "comment" and fault.offset <= offset:
        return ScriptDiagnosis(fault.offset, 2, "unterminated comment", "close it with `*/`")
    if fault.kind == "open" and offset >= end and fault.opener:
        line, _ = line_and_column(source, fault.offset)
        kind = fault.opener.kind
        message = f"unclosed `{kind}` opened at line {line}"
        return ScriptDiagnosis(fault.offset, len(kind), message, f"add the missing `{CLOSERS[kind]}`")
    return None


def _unexpected(source: str, shape: str, offset: int, end: int, fault: BracketFault | None) -> ScriptDiagnosis:
    if offset >= end:
        hint = "the program stops in the middle of a statement: add the rest"
        return ScriptDiagnosis(end, 1, "unexpected end of the program", hint)
    matched = _TOKEN.match(shape, offset)
    token = source[offset : matched.end() if matched else offset + 1]
    shown = token if len(token) <= 40 else token[:40] + "…"
    message, hint = f"unexpected `{shown}`", None
    if fault and fault.opener:
        line, column = line_and_column(source, fault.opener.offset)
        opener = fault.opener.kind
        if fault.kind == "close" and fault.offset == offset:
            message += f"; the `{opener}` opened at line {line}, column {column} is not closed"
            hint = f"close it with `{CLOSERS[opener]}` first"
        elif fault.opener.offset < offset:
            hint = f"the `{opener}` opened at line {line}, column {column} is not closed"
    elif fault and fault.kind == "close" and fault.offset == offset:
        hint = "it closes nothing: no bracket is open here"
    return ScriptDiagnosis(offset, len(token), message, hint or _missing_comma(shape, offset))


_VALUE_END = re.compile(r"[\w$\"'`)\]}][ \t]*\n?[ \t]*\Z")
_VALUE_START = re.compile(r"[\w$\"'`{\[]")


def _missing_comma(shape: str, offset: int) -> str | None:
    if _VALUE_START.match(shape, offset) and _VALUE_END.search(shape[max(0, offset - 80) : offset]):
        return "is a comma, a semicolon or an operator missing before it?"
    return None
