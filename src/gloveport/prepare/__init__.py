"""Text → Program: find the program in what the agent wrote, check it, and turn it into a module for the engine.

    fences          which stretches of a Markdown text are code
    typescript/     TypeScript and JavaScript: bounded parse, refusals, forms → ES module, erased types
    python/         the same steps on CPython's own syntax tree
    subset          what an engine states about the part of its language that it lacks
    call_check      a program's tool calls against a catalog; `argument_check` checks their arguments
    type_findings   the findings of a type checker → one error, or advice
    data_flow       what a person should look at in a program before they approve its calls
    positions       the mapping between the engine's code and the agent's text
    diagnostics     line, column, source line and caret of an error; `mistakes` supplies hints

Pure: it executes, reads and sends nothing. Every problem is a `ProgramError` with a place in the agent's own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gloveport.advice import ProgramFinding
from gloveport.errors import OptionError, ProgramError
from gloveport.prepare.call_check import CertainCalls, ToolIndex, check_each
from gloveport.prepare.diagnostics import frame, program_error
from gloveport.prepare.mistakes import IS_PYTHON
from gloveport.prepare.positions import locate
from gloveport.prepare.subset import PythonSubset, ScriptSubset, Subset
from gloveport.prepare.type_findings import TypeAdvice, TypeReport, report_types
from gloveport.types import LANGUAGES, MIB, Importable, Language, Program, TypeFinding

__all__ = ["ToolIndex", "TypeAdvice", "TypeReport"]
__all__ += ["check", "check_text", "check_types", "find_findings", "frame", "locate", "prepare"]


def prepare(
    text: str,
    *,
    language: Language = "typescript",
    max_code_bytes: int = MIB,
    subset: Subset | None = None,
    importable: Importable | None = None,
    lighter: Subset | None = None,
) -> Program:
    """Return the program of a text, for an engine that has its whole language or a `subset` of it.

    `lighter` is another engine, which may run the program instead: whether it suits it is a fact of the program.
    Raises `ProgramError` with a diagnostic when there is none that can run.
    """
    if language not in LANGUAGES:
        raise OptionError(f"there is no language `{language}`", hint=f"the languages are {', '.join(LANGUAGES)}")
    check_text(text, max_code_bytes)
    if language == "python":
        from gloveport.prepare.python import prepare_python

        return prepare_python(text, cast("PythonSubset | None", subset), importable)
    from gloveport.prepare.typescript import prepare_typescript  # loads the parser: 25 ms, the first time only

    try:
        subsets = cast("ScriptSubset | None", subset), cast("ScriptSubset | None", lighter)
        return prepare_typescript(text, language, subsets[0], importable or Importable(), subsets[1])
    except ProgramError as error:
        if error.code != "syntax-error" or not _is_python(text):
            raise
        place = {"line": error.line, "column": error.column, "frame": error.frame}
        raise ProgramError(error.message, hint=IS_PYTHON, **place) from None


def _is_python(text: str) -> bool:
    from gloveport.prepare.python import parses

    return parses(text)


def check(program: Program, catalog: ToolIndex) -> None:
    """Raise `ProgramError` for the first tool call that can't succeed, as far as the text alone tells."""
    check_each(_certain_calls(program, catalog), program, catalog)


def check_types(program: Program, catalog: ToolIndex, findings: Sequence[TypeFinding], lines_before: int) -> TypeReport:
    """Report what a type checker found, at its places in the agent's text.

    `lines_before` is the number of lines that stood before the program's code in the checked text.
    """
    if not findings:
        return TypeReport()
    return report_types(program, _certain_calls(program, catalog).calls, findings, lines_before)


def find_findings(program: Program) -> tuple[ProgramFinding, ...]:
    """Return what a person should look at in a program before they approve a call of it."""
    if program.language == "python":
        from gloveport.prepare.python.findings import find_findings
    else:
        from gloveport.prepare.typescript.findings import find_findings

    return find_findings(program)


def _certain_calls(program: Program, catalog: ToolIndex) -> CertainCalls:
    if program.language == "python":
        from gloveport.prepare.python.calls import certain_calls
    else:
        from gloveport.prepare.typescript.calls import certain_calls

    return certain_calls(program, catalog)


def check_text(text: str, max_code_bytes: int) -> None:
    """Raise `ProgramError` for a text that is too large, or that can't be encoded. This takes linear time."""
    _check_size(text, max_code_bytes)
    _check_encodable(text)


def _check_size(text: str, max_code_bytes: int) -> None:
    size = len(text)
    if size <= max_code_bytes and not text.isascii():
        size = len(text.encode("utf-8", "surrogatepass"))
    if size > max_code_bytes:
        message = f"the program is larger than max_code_bytes ({max_code_bytes:,})"
        raise ProgramError(message, code="code-too-large", hint="pass large data as `input`, not as code")


def _check_encodable(text: str) -> None:
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        message = f"half of a surrogate pair ({half}) can't be encoded"
        raise program_error(text, error.start, message, hint=f"inside a string, write the escape `{half}`") from None
