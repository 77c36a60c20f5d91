"""The diagnostic of code that does not parse: CPython's own error, at its place in the agent's text, with a hint."""

from __future__ import annotations

import re
from collections.abc import Callable
from keyword import iskeyword
from typing import NamedTuple

from gloveport.errors import ProgramError
from gloveport.prepare.diagnostics import program_error
from gloveport.prepare.mistakes import name_character
from gloveport.prepare.positions import nearest_source_offset
from gloveport.prepare.python.layout import MANY_DIGITS, MANY_DIGITS_HINT, Layout
from gloveport.prepare.python.lexer import strings
from gloveport.prepare.python.mistakes import PYTHON_DASHES, hint_for_mistake
from gloveport.prepare.python.parser import LineIndex

TOO_DEEP = "the program is nested too deeply"
TOO_DEEP_HINT = "split it into steps; keep large data in variables, or pass it as `input`"
CLOSERS = {"(": ")", "[": "]", "{": "}"}


class MarkedCode(NamedTuple):
    """The stretch of the code that CPython marked."""

    code: str
    offset: int
    length: int


class PythonDiagnosis(NamedTuple):
    """A place in the code, its message and hint; the hint of a recognised mistake replaces `fallback`, not `hint`."""

    offset: int
    length: int
    message: str
    hint: str | None = None
    fallback: str | None = None


def explain(layout: Layout, error: SyntaxError) -> ProgramError:
    """Return the diagnostic of a text that does not parse."""
    finding = _find(layout.code, error)
    offset = nearest_source_offset(layout.spans, finding.offset)
    hint = finding.hint or hint_for_mistake(layout.source, offset) or finding.fallback
    return program_error(layout.source, offset, finding.message, hint=hint, length=finding.length)


def _find(code: str, error: SyntaxError) -> PythonDiagnosis:
    message = error.msg or "invalid syntax"
    mark = _mark(code, error, inside=message.startswith(("f-string: ", "(unicode error)", "(value error)")))
    for pattern, explained in _EXPLAINED:
        matched = pattern.match(message)
        if matched:
            return explained(mark, matched)
    return PythonDiagnosis(mark.offset, mark.length, message[:1].lower() + message[1:500])


def _mark(code: str, error: SyntaxError, *, inside: bool) -> MarkedCode:
    number, column = error.lineno or 1, error.offset or 1
    start, end = LineIndex(code).line(number)
    offset = min(max(start, start + column - 1), end)
    if inside:
        offset = _in_string(code, error, (start, end), offset)
    marked = error.end_offset if error.end_lineno == number and error.end_offset else 0
    return MarkedCode(code, offset, max(1, marked - column))


def _in_string(code: str, error: SyntaxError, line: tuple[int, int], offset: int) -> int:
    """Return where an error inside a string stands: CPython 3.11 counts from the braces, or names the end of the string."""
    shown = (error.text or "").rstrip("\r\n")
    if shown.startswith("(") and shown != code[line[0] : line[1]]:
        braces = code.find("{" + shown[1:].removesuffix(")"), line[0])
        if braces >= 0:
            return braces + max(1, (error.offset or 1) - 1)
    held = next(((start, end) for start, end in strings(code) if end >= offset), None)
    return offset if held is None or held[0] < offset < held[1] else held[0]


# --- tokens in the wrong place

_TOKEN = re.compile(r"\w+|[=!]==?|[-<>=+&|*/]{1,3}|\S")
_BEFORE = re.compile(r"([\w.\"')\]}]+)[ \t]*\Z")
_CLAUSES = frozenset({"else", "elif", "except", "finally", "case"})


def _token(code: str, offset: int) -> str:
    matched = _TOKEN.match(code, offset)
    return matched[0][:40] if matched else ""


def _unexpected(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    token = _token(mark.code, mark.offset)
    if token:
        message = "unexpected backtick" if token == "`" else f"unexpected `{token}`"
        return PythonDiagnosis(mark.offset, len(token), message, fallback=_advice(mark, token))
    what = "line" if mark.code[mark.offset :].strip() else "program"
    hint = "the code stops in the middle of a statement: add the rest"
    return PythonDiagnosis(mark.offset, 1, f"unexpected end of the {what}", fallback=hint)


def _advice(mark: MarkedCode, token: str) -> str | None:
    """Return the fix for a token that is not allowed where it stands."""
    matched = _BEFORE.search(mark.code[max(0, mark.offset - 80) : mark.offset])
    before = matched[1] if matched else ""
    if iskeyword(token) and before.endswith("."):
        return f'`{token}` is a keyword: write `["{token}"]` instead of `.{token}`'
    if token in _CLAUSES:
        return f"no statement above it at the same indentation can have an `{token}`"
    if token == "return":
        return "a `lambda` is one expression without `return`; elsewhere, start a new line before `return`"
    if token == "*" and before == "import":
        return "write `from module import *`, or import the module"
    if token == "=" and iskeyword(before):
        return f"`{before}` is a keyword and can't be a name"
    if iskeyword(token):
        return f"`{token}` is a keyword, which is not allowed here; is a line end missing before it?"
    if before and (token[0].isalnum() or token[0] in "_\"'"):
        return "is an operator, a comma or a line end missing before it?"
    return None


def _comma(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    message = "invalid syntax; is a comma missing?"
    return PythonDiagnosis(mark.offset, mark.length, message, fallback="put a comma between two values")


def _character(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    message, hint = name_character(mark.code[mark.offset : mark.offset + 1] or " ", PYTHON_DASHES)
    return PythonDiagnosis(mark.offset, 1, message, hint)


def _colon(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    return PythonDiagnosis(mark.offset, 1, "expected `:`", fallback="end the line with a colon")


def _backslash(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    at = max(0, mark.code.rfind("\\", 0, mark.offset + 1))
    hint = "a `\\` outside a string must be the last character of its line"
    if mark.code.startswith("\\n", at):
        hint = "send a real line end instead of `\\n`"
    return PythonDiagnosis(at, 1, "unexpected `\\`", hint)


# --- brackets and strings


def _never_closed(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    line = LineIndex(mark.code).number(mark.offset)
    hint = f"add the missing `{CLOSERS.get(matched[1], matched[1])}`"
    return PythonDiagnosis(mark.offset, 1, f"unclosed `{matched[1]}` opened at line {line}", fallback=hint)


def _unmatched(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    return PythonDiagnosis(
        mark.offset, 1, f"unexpected `{matched[1]}`", fallback="it closes nothing: no bracket is open here"
    )


def _mismatched(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    where = f" opened at line {matched[3]}" if matched[3] else ""
    message = f"unexpected `{matched[1]}`; the `{matched[2]}`{where} is not closed"
    return PythonDiagnosis(mark.offset, 1, message, fallback=f"close it with `{CLOSERS.get(matched[2], matched[2])}` first")


def _unterminated(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    quotes = mark.code[mark.offset : mark.offset + 6].lstrip("fFrRbBuU")
    if matched[1]:
        return PythonDiagnosis(mark.offset, 3, "unterminated triple-quoted string", f"close it with {quotes[:3]}")
    quote = quotes[:1]
    hint = f"close it with {quote} on the same line; for text of several lines use triple quotes"
    if mark.code.startswith(quote, mark.offset) and mark.code[max(0, mark.offset - 1) : mark.offset].isalpha():
        hint = f"a {quote} inside {quote}…{quote} ends the string: write \\{quote} or use other quotes"
    return PythonDiagnosis(mark.offset, 1, "unterminated string", hint)


def _escape(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    message = f"this string holds an invalid escape: {matched[1]}"
    return PythonDiagnosis(mark.offset, 1, message, "write `\\\\` for a backslash, or r before the string")


# --- indentation


def _block(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    hint = "indent the block by 4 spaces; for an empty block, write `pass`"
    return PythonDiagnosis(mark.offset, mark.length, matched[0], fallback=hint)


def _indented(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    _, first = _indentation(mark)
    hint = "start the line at the same column as the other lines of its block"
    return PythonDiagnosis(first, len(_token(mark.code, first)) or 1, matched[0], fallback=hint)


def _tabs(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    start, first = _indentation(mark)
    message = "tabs and spaces are mixed in the indentation"
    return PythonDiagnosis(start, max(1, first - start), message, "indent with spaces only")


def _indentation(mark: MarkedCode) -> tuple[int, int]:
    """Return where the line starts, and where its first character stands that is not blank."""
    start = max(mark.code.rfind("\n", 0, mark.offset), mark.code.rfind("\r", 0, mark.offset)) + 1
    first = start
    while first < len(mark.code) and mark.code[first] in " \t\f":
        first += 1
    return start, first


# --- the rest


def _deep(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    return PythonDiagnosis(mark.offset, 1, TOO_DEEP, TOO_DEEP_HINT)


def _parentheses(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    name = matched[1]
    return PythonDiagnosis(mark.offset, len(name), f"`{name}` needs parentheses", f"this is Python 3: write `{name}(…)`")


def _digits(mark: MarkedCode, _: re.Match[str]) -> PythonDiagnosis:
    matched = _INTEGER.search(mark.code)
    return PythonDiagnosis(matched.start() if matched else mark.offset, 1, MANY_DIGITS, MANY_DIGITS_HINT)


_INTEGER = re.compile(r"(?<!\w)[1-9][\d_]{4300,}")


def _exceptions(mark: MarkedCode, matched: re.Match[str]) -> PythonDiagnosis:
    hint = "write `except (A, B):` for several kinds, or `except A as e:` to name the error"
    return PythonDiagnosis(mark.offset, mark.length, matched[0], hint)


_EXPLAINED: list[tuple[re.Pattern[str], Callable[[MarkedCode, re.Match[str]], PythonDiagnosis]]] = [
    (re.compile(rf"(?:f-string: )?(?:{pattern})"), explained)
    for pattern, explained in (
        (r"invalid syntax\. Perhaps you forgot a comma\?", _comma),
        (r"invalid syntax$|unexpected EOF", _unexpected),
        (r"invalid (?:non-printable )?character", _character),
        (r"'(.)' was never closed", _never_closed),
        (r"unmatched '(.)'", _unmatched),
        (r"closing parenthesis '(.)' does not match opening parenthesis '(.)'(?: on line (\d+))?", _mismatched),
        (r"unterminated (triple-quoted )?(?:f-)?string literal", _unterminated),
        (r"expected ':'", _colon),
        (r"expected an indented block.*", _block),
        (r"unexpected indent|unindent does not match.*", _indented),
        (r"inconsistent use of tabs", _tabs),
        (r"too many (?:nested|levels)|expressions nested too deeply", _deep),
        (r"Missing parentheses in call to '(\w+)'", _parentheses),
        (r"Exceeds the limit", _digits),
        (r"\((?:unicode|value) error\) (?:.*: )?(.*)", _escape),
        (r"unexpected character after line continuation", _backslash),
        (r"multiple exception types must be parenthesized", _exceptions),
    )
]
