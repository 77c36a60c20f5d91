"""The findings of a type checker → a report: an error where a call can't succeed, advice everywhere else.

A type is a claim about a value, and a program that breaks one may still work (a cast, a union, a wrong definition). So a
finding stops a program only if it lies in the arguments of a call whose failure the program does not handle, and reports
a value of one plain type where the tool takes another: the host would refuse that call anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gloveport.errors import ProgramError
from gloveport.prepare.call_check import CallSite
from gloveport.prepare.diagnostics import LINE_END, program_error
from gloveport.prepare.positions import ENGINE_LINE_END, source_offset_of
from gloveport.types import Program, TypeFinding

MAX_ADVICE_LINES = 10
MAX_MESSAGE_CHARS = 400
# "Type 'number' is not assignable to type 'string'", "Expected `str`, found `Literal[5]`".
IMPORT_DECLARATIONS = """declare function $$module(name: string, ...exports: string[]): any;
declare function $$import(name: string): Promise<any>;
declare function $$require(name: string): any;
"""
"""What the type checker needs to know about the look-ups that replace the imports of a program."""
_TYPESCRIPT = re.compile(r"(?:Type|Argument of type) '([^']*)' is not assignable to (?:type|parameter of type) '([^']*)'")
_PYTHON = re.compile(r"Expected `([^`]*)`, found `([^`]*)`")
_PLAIN_TYPESCRIPT = re.compile(r"""(?:string|number|boolean|"[^"|]*"|-?[\d.]+|true|false)(?:\[\])?\Z""")
_PLAIN_PYTHON = re.compile(r"(?:str|int|float|bool|bytes|list\[(?:str|int|float|bool)\]|Literal\[[^,|]*\])\Z")
_TYPE_ERRORS = frozenset({"2322", "2345", "invalid-argument-type"})
# Findings that help no agent: syntax and imports, which prepare checks itself, and style. A value that may be null or that
# was caught is mostly right in a program that works: 'x' is possibly null (or undefined), 'e' is of type 'unknown'.
_IRRELEVANT = frozenset(
    {"invalid-syntax", "unresolved-import", "empty-body", "possibly-unresolved-reference"}
    | {"2531", "2532", "2533", "2571", "18046", "18047", "18048", "18049"}
)
# The same in words: what nothing narrows any more, what may be None, and the fields of a ToolError that was caught as an
# Exception, alone or among the results of `asyncio.gather(…, return_exceptions=True)`.
_IRRELEVANT_MESSAGE = re.compile(
    r"on type 'never'|`None`|\| None\b|\bNone \||BaseException"
    r"|type `Exception` has no attribute `(?:code|origin|tool|message|status|data|retryable|hint)`"
)


class TypeAdvice(NamedTuple):
    """A note of one line about a place in the agent's text."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True, slots=True)
class TypeReport:
    """`error` is what stops the program, if anything does; `advice` is what does not."""

    error: ProgramError | None = None
    advice: tuple[TypeAdvice, ...] = ()


# "Cannot find name 'A'", "Cannot find namespace 'z'", "'A' refers to a value, but is being used as a type here".
_UNKNOWN_TYPE = re.compile(r"(?:Cannot find (?:name|namespace) )?'([\w$]+)'")


def report_types(
    program: Program, calls: Sequence[CallSite], findings: Iterable[TypeFinding], lines_before: int
) -> TypeReport:
    """Return the report of the findings that lie in the agent's own text; the others are dropped."""
    error: ProgramError | None = None
    advice: list[TypeAdvice] = []
    places = [call.extent() for call in calls]
    lines = _starts(program)
    for finding in findings:
        start = _offset(program, lines, finding.line - lines_before, finding.column)
        offset = None if start is None else source_offset_of(program, start)
        if start is None or offset is None or _is_irrelevant(finding) or _is_imported(program, finding):
            continue
        stop = _offset(program, lines, finding.end_line - lines_before, finding.end_column) or start + 1
        message = _shortened(finding.message)
        hint = "`await tools.describe(path)` shows the types that the tool takes"
        found = program_error(program.source, offset, message, code="type-error", hint=hint, length=max(1, stop - start))
        if error is None and _is_certain(finding) and any(begin < start < end for begin, end in places):
            error = found
        elif len(advice) < MAX_ADVICE_LINES:
            advice.append(TypeAdvice(found.line or 1, found.column or 1, message))
    return TypeReport(error, tuple(advice))


def _is_certain(finding: TypeFinding) -> bool:
    if finding.code not in _TYPE_ERRORS:
        return False
    if found := _TYPESCRIPT.search(finding.message):
        return bool(_PLAIN_TYPESCRIPT.match(found[1])) and "unknown" not in found[2]
    found = _PYTHON.search(finding.message)
    return bool(found and _PLAIN_PYTHON.match(found[2]))


def _is_imported(program: Program, finding: TypeFinding) -> bool:
    """Return whether a finding is about an imported name that is used as a type: to the checker, it is any value."""
    found = _UNKNOWN_TYPE.match(finding.message) if program.imported_names else None
    return found is not None and found[1] in program.imported_names


def _is_irrelevant(finding: TypeFinding) -> bool:
    return has_irrelevant_code(finding.code) or bool(_IRRELEVANT_MESSAGE.search(finding.message.partition("\n")[0]))


def has_irrelevant_code(code: str) -> bool:
    """Return whether no report has a finding of this code."""
    if code.isdigit():
        # 1xxx: syntax, which prepare has checked; 6xxx and 7xxx: unused names and missing annotations.
        if (code[0] == "1" and len(code) == 4) or code[0] in "67":
            return True
    elif not code[:1].isalpha() or code.startswith("no-"):
        return True
    return code in _IRRELEVANT


def _starts(program: Program) -> list[int]:
    ending = LINE_END if program.language == "python" else ENGINE_LINE_END
    return [0, *(found.end() for found in ending.finditer(program.code))]


def _offset(program: Program, starts: list[int], line: int, column: int) -> int | None:
    """Return the offset in the code of a line and a column in UTF-16 units; None outside the code."""
    if not 1 <= line <= len(starts):
        return None
    start, units = starts[line - 1], column - 1
    if program.code.isascii():
        return min(start + units, len(program.code))
    for offset in range(start, len(program.code)):
        if units <= 0:
            return offset
        units -= 2 if ord(program.code[offset]) > 0xFFFF else 1
    return len(program.code)


def _shortened(message: str) -> str:
    first = message.partition("\n")[0].strip()
    return first if len(first) <= MAX_MESSAGE_CHARS else first[: MAX_MESSAGE_CHARS - 1] + "…"
