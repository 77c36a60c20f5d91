"""The error that ended a run → the `Failure` that its caller sees, with its place in the agent's own text."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from gloveport.errors import CODES, GloveportError, ProgramError
from gloveport.prepare import frame, locate
from gloveport.sandbox.run_attempt import AttemptResult
from gloveport.types import Failure, Program

logger = logging.getLogger("gloveport")

MAX_CAUSES = 16
# The codes of the error table that a guest may report for itself, beside those of its failed calls.
GUEST_CODES = frozenset(
    {"program-failed", "never-settles", "bad-value", "result-too-large", "syntax-error", "egress-denied", "engine-lacks"}
)


def trusted_error(result: AttemptResult, call_codes: Collection[str]) -> Mapping[str, Any]:
    """Return the error without a code that only the host may give: a program can throw anything.

    `call_codes` are the codes of the run's failed calls, which the program may throw again.
    """
    error, code = result.error or {}, (result.error or {}).get("code")
    if not result.reported_by_guest or not isinstance(code, str) or code in GUEST_CODES or code not in CODES:
        return error
    if code in call_codes:
        return error
    if code == "memory-limit" and error.get("type") in {"MemoryError", "RangeError"}:
        return error  # other engines raise it where Deno dies
    return {**error, "code": "program-failed"}


def failure(program: Program, error: Mapping[str, Any], depth: int = 0) -> Failure:
    """Return the failure of a run, at its place in the agent's text."""
    code, type_ = _text(error, "code"), _text(error, "type")
    if error.get("load") is True:
        code = "syntax-error"
    code = code or "program-failed"
    place = _place(program, error)
    cause = error.get("cause")
    return Failure(
        code=code,
        type=type_ or "Error",
        message=_message(error, type_),
        line=place[0] if place else None,
        column=place[1] if place else None,
        frame=frame(program.source, *place) if place else None,
        tool=_text(error, "tool"),
        hint=_short(error, "hint") or (CODES[code].fix if code in CODES and code != "program-failed" else None),
        cause=failure(program, cause, depth + 1) if isinstance(cause, dict) and depth < MAX_CAUSES else None,
        data=error.get("data"),
        status=status if type(status := error.get("status")) is int and 100 <= status <= 599 else None,
    )


def _message(error: Mapping[str, Any], type_: str | None) -> str:
    message = _text(error, "message") or ""
    if message or type_ in (None, "string"):
        return message or ("the program threw an empty string" if type_ == "string" else "no message")
    return f"the program threw {type_} without a message"


def _short(error: Mapping[str, Any], name: str) -> str | None:
    text = _text(error, name)
    return text[:1000] if text else None


def _text(error: Mapping[str, Any], name: str) -> str | None:
    value = error.get(name)
    return value if isinstance(value, str) and value else None


def _place(program: Program, error: Mapping[str, Any]) -> tuple[int, int] | None:
    line, column = error.get("line"), error.get("column")
    if type(line) is not int or type(column) is not int:
        return None
    return locate(program, line, column)


def program_failure(error: ProgramError) -> Failure:
    """Return the failure of a program that can't run as written."""
    type_ = "SyntaxError" if error.code == "syntax-error" else "ProgramError"
    hint = error.hint or CODES[error.code].fix
    return Failure(error.code, type_, error.message, error.line, error.column, error.frame, error.tool, hint)


def unprepared_failure(error: GloveportError) -> Failure:
    """Return the failure of a program that could not be read, through no fault of its own."""
    return Failure(error.code, type(error).__name__, error.message, hint=error.hint or CODES[error.code].fix)


def error_data(error: GloveportError) -> dict[str, Any]:
    """Return an error of the host in the form in which a guest sends its own."""
    return {"code": error.code, "type": type(error).__name__, "message": error.message, "hint": error.hint}


def internal_error(run: str, error: Exception) -> dict[str, Any]:
    """Log a defect of the host in full and return an error that shows only its reference."""
    reference = secrets.token_hex(4)
    logger.error("run %s: internal error %s", run, reference, exc_info=error)
    return {
        "code": "internal-error",
        "type": "InternalError",
        "message": f"internal error in Gloveport (reference {reference})",
    }
