"""The error that ended a run → the `Failure` that its caller sees, with its place in the agent's own text."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from gloveport.bridge.received_errors import ReceivedErrors
from gloveport.catalog import Catalog
from gloveport.errors import CODES, GloveportError, OptionError, ProgramError
from gloveport.errors.codes import Code
from gloveport.packages.package import PackageRequest
from gloveport.prepare import frame, locate
from gloveport.prepare.diagnostics import line_and_column
from gloveport.sandbox.run_attempt import AttemptResult
from gloveport.types import FETCH_TOOLS, CallRecord, Failure, Program

logger = logging.getLogger("gloveport")

MAX_CAUSES = 16
EXIT_LIMIT = 6
MAX_IDLE_CPU_SHARE = 0.1  # of the time of a program that waits
_OUT_OF_MEMORY = frozenset({"MemoryError", "SystemError", "RangeError", "DataCloneError"})
_LOOP = re.compile(
    r"(?:^|[;{])[ \t]*(?:\w+:\s*)?(?P<loop>(?:while|for(?:\s+await)?)\s*\(|do\s*\{)"  # JavaScript
    r"|^[ \t]*(?P<python>(?:async[ \t]+for|for|while)\b[^\n]*:)",
    re.MULTILINE,
)
MAX_NAMED_LOOPS = 5
_TIMER = re.compile(r"\b(?:setTimeout|setInterval|sleep)\s*\(")
_FETCH = re.compile(r"\b(?:fetch|urlopen|urlretrieve)\s*\(")
_NAMES_BEFORE = re.compile(r"(?:\s*\.\??\s*\w+)*")  # read backwards: `.shop.tools` of `tools.shop.orders`
MAX_CALL_SITES = 50  # that are looked at
MAX_NAMES_CHARS = 200
# The codes of the error table that a guest may report for itself, beside those of its failed calls.
GUEST_CODES = frozenset(
    {"program-failed", "never-settles", "bad-value", "result-too-large", "syntax-error", "egress-denied", "engine-lacks"}
)


def run_failure(program: Program, result: AttemptResult, received: ReceivedErrors) -> Failure:
    """Return the failure of a run. What the guest reports is checked against the errors that it has received."""
    error = result.error or {}
    return failure(program, error, received) if result.reported_by_guest else failure(program, error)


def failure(program: Program, error: Mapping[str, Any], received: ReceivedErrors | None = None, depth: int = 0) -> Failure:
    """Return an error as a failure, at its place in the agent's text.

    A guest reported the error if `received` is given. It may throw anything, so only the host says whose error that is: a
    call's, if the run has received one of this code and tool, and otherwise the program's own.
    """
    code, type_, tool = _code(error), _text(error, "type"), _text(error, "tool")
    known = received.find(code, tool) if received else None
    if received and known is None and code in CODES and not _may_report(code, type_):
        code = "program-failed"
    place = _place(program, error)
    cause = error.get("cause")
    row = CODES.get(code) if code != "program-failed" and (known is None or known.origin == "gloveport") else None
    hint = known.hint if known else _short(error, "hint")
    return Failure(
        code=code,
        type=type_ or "Error",
        message=_message(error, type_),
        line=place[0] if place else None,
        column=place[1] if place else None,
        frame=frame(program.source, *place) if place else None,
        tool=tool,
        hint=hint or (row.fix if row else None),
        cause=failure(program, cause, received, depth + 1) if isinstance(cause, dict) and depth < MAX_CAUSES else None,
        data=error.get("data"),
        status=status if type(status := error.get("status")) is int and 100 <= status <= 599 else None,
        origin=known.origin if known else "gloveport",
        setting=known.setting if known else _setting(row, received) or None,
    )


def _setting(row: Code | None, received: ReceivedErrors | None) -> str:
    """Return the setting for a code: of limits alone, where a guest reports the code."""
    return row.setting if row and (received is None or row.exit == EXIT_LIMIT) else ""


def with_waiting_place(failure: Failure, program: Program, calls: Sequence[CallRecord], *, is_idle: bool) -> Failure:
    """Return a limit of time with the call or timer that the program waited for, and its line if only one can be meant.

    A program that has hardly computed (`is_idle`), and waits for no call, waits for a timer. Not every engine tells the
    line of one that computes: then the last call that the host has seen and the program's loops narrow it down.
    """
    if failure.code not in {"time-limit", "cpu-limit"}:
        return failure
    waiting = {call.tool for call in calls if call.status == "running" or (call.error or "").startswith("cancelled: ")}
    computed = failure.code == "cpu-limit" or not (waiting or is_idle)
    if computed and failure.line is None:
        return _with_loops(_with_last_call(failure, program, calls), program)
    if len(waiting) == 1 and not computed:
        tool = waiting.pop()
        awaited, place = f"tools.{tool}", call_place(program.source, tool)
    elif not waiting and failure.line is None and not computed:
        awaited, place = "a timer", _only_place(program.source, _TIMER)
    else:
        return failure
    message = f"{failure.message}; it was waiting for {awaited}"
    if place is None:
        return replace(failure, message=message)
    return replace(failure, message=message, line=place[0], column=place[1], frame=frame(program.source, *place))


def _with_last_call(failure: Failure, program: Program, calls: Sequence[CallRecord]) -> Failure:
    if not calls:
        return failure
    tool = calls[-1].tool
    line = call_line(program.source, tool)
    place = f" in line {line}" if line else ""
    return replace(failure, message=f"{failure.message}; it was computing after the call of tools.{tool}{place}")


def _with_loops(failure: Failure, program: Program) -> Failure:
    """Return the failure of a program that computes with the lines of its loops; with the place of the only one."""
    starts = [found.start(found.lastgroup or 0) for found in islice(_LOOP.finditer(program.source), MAX_NAMED_LOOPS + 1)]
    places = [line_and_column(program.source, start) for start in starts]
    if len(places) == 1:
        line, column = places[0]
        message = f"{failure.message}; its only loop begins in line {line}"
        return replace(failure, message=message, line=line, column=column, frame=frame(program.source, line, column))
    if not places or len(places) > MAX_NAMED_LOOPS:
        return failure
    *first, last = dict.fromkeys(str(line) for line, _ in places)
    lines = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
    return replace(failure, message=f"{failure.message}; its loops begin in {lines}")


def call_place(source: str, tool: str) -> tuple[int, int] | None:
    """Return the line and column at which a program calls a tool; None unless only one place can be meant."""
    if tool in FETCH_TOOLS:
        return _only_place(source, _FETCH)
    path, _, name = tool.rpartition(".")
    sites = [*islice(re.finditer(rf"\b{re.escape(name)}\s*\(", source), MAX_CALL_SITES + 1)]
    starts = [
        site.start()
        for site in sites
        if _may_name(source[max(site.start() - MAX_NAMES_CHARS, 0) : site.start()], path.split("."))
    ]
    return line_and_column(source, starts[0]) if len(starts) == 1 and len(sites) <= MAX_CALL_SITES else None


def _may_name(before: str, path: Sequence[str]) -> bool:
    """Return whether the names before a call may lead to a tool at a path. The first of them may be a variable."""
    found = _NAMES_BEFORE.match(before[::-1])
    names = [name[::-1] for name in re.findall(r"\w+", found.group() if found else "")]
    return all(name == part for name, part in zip(names[:-1], reversed(path), strict=False))


def _only_place(source: str, pattern: re.Pattern[str]) -> tuple[int, int] | None:
    sites = [*islice(pattern.finditer(source), 2)]
    return line_and_column(source, sites[0].start()) if len(sites) == 1 else None


def call_line(source: str, tool: str) -> int | None:
    """Return the line at which a program calls a tool; None unless only one can be meant."""
    place = call_place(source, tool)
    return place[0] if place else None


def _code(error: Mapping[str, Any]) -> str:
    return "syntax-error" if error.get("load") is True else _text(error, "code") or "program-failed"


def _may_report(code: str, type_: str | None) -> bool:
    """Return whether a guest may report this code of the error table for itself."""
    # Other engines raise an error where Deno dies of its memory limit.
    return code in GUEST_CODES or (code == "memory-limit" and type_ in _OUT_OF_MEMORY)


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
    if type(line) is not int:
        return None
    if column is None:  # where the line begins
        text = next(islice(program.code.split("\n"), max(line - 1, 0), None), "")
        column = len(text) - len(text.lstrip()) + 1
    return locate(program, line, column) if type(column) is int else None


def program_failure(error: ProgramError, catalog: Catalog, is_approved: Callable[[str], bool]) -> Failure:
    """Return the failure of a program that can't run as written, also because the source that it calls has a problem.

    `is_approved` says whether a package that it can't import was approved: then a list leaves it out.
    """
    calls_source = error.code in ("source-failed", "auth-required")
    problem = catalog.source_problem(error.tool) if error.tool and calls_source else None
    type_ = "SyntaxError" if error.code == "syntax-error" else "ProgramError"
    row = CODES[error.code]
    return Failure(
        error.code,
        type_,
        error.message,
        error.line,
        error.column,
        error.frame,
        error.tool,
        error.hint or row.fix,
        setting=(problem and problem.hint) or _approval_of(error.package, is_approved) or row.setting or None,
    )


def _approval_of(package: str | None, is_approved: Callable[[str], bool]) -> str | None:
    """Return how a person lets programs import a package. Its name comes from a jailed process."""
    try:
        wanted = PackageRequest.parse(package) if package else None
    except OptionError:
        return None
    if wanted is None:
        return None
    if is_approved(f"{wanted.ecosystem}:{wanted.name}"):
        return f"{wanted} is approved, but not listed: see [packages] allow, and packages of [agents.NAME] and of the run"
    return f"gloveport packages add {wanted}"


def unprepared_failure(error: GloveportError) -> Failure:
    """Return the failure of a program that could not be read, through no fault of its own."""
    row = CODES[error.code]
    hint, setting = error.hint or row.fix, row.setting or None
    return Failure(error.code, type(error).__name__, error.message, hint=hint, setting=setting)


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
