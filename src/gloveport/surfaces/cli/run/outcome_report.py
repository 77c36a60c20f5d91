"""Print the outcome of a run for people: the result on standard output, warnings and the error on standard error."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gloveport.errors import CODES, GloveportError, ToolError, exit_code, label
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Colour, Stream, cells, in_time, visible, visible_line
from gloveport.types import MAX_SHOWN_CAUSES, CallRequest, Failure, Outcome
from gloveport.values import to_json

if TYPE_CHECKING:
    from gloveport.host.port import Gloveport

EXIT_NOT_APPROVED = 5
EXIT_CANCELLED = 130
MAX_SHOWN_COMMANDS = 5
# Settings of the library that `gloveport run` has an option for.
OPTIONS = {
    "wall_seconds": "--timeout",
    "cpu_seconds": "--cpu",
    "memory_mb": "--memory",
    "allow_eval": "--allow-eval",
    "allow_wasm": "--allow-wasm",
    "engine=": "--engine",
    "input=": "--input",
}


def exit_status(outcome: Outcome) -> int:
    """Return the process exit code for an outcome; `gloveport help exit-codes` lists them."""
    if outcome.ok:
        return 0
    if outcome.status != "failed" or outcome.error is None:
        return {"waiting": EXIT_NOT_APPROVED, "cancelled": EXIT_CANCELLED}.get(outcome.status, 1)
    if outcome.error.code == "denied" and outcome.error.origin == "gloveport" and _was_asked(outcome, outcome.error.tool):
        return EXIT_NOT_APPROVED
    return exit_code(outcome.error.code, outcome.error.origin)


def _was_asked(outcome: Outcome, tool: str | None) -> bool:
    """Return whether a person was asked about a call of this tool that then failed."""
    return any(call.tool == tool and call.approval is not None and call.status == "failed" for call in outcome.calls)


def with_pending(outcome: Outcome, port: Gloveport, tools: Sequence[str], config: str | None) -> Outcome:
    """Return the outcome of a run that waited where nobody can answer, with the error that says what to do."""
    if outcome.status != "waiting":
        return outcome
    waiting = [(call.tool, call.args) for call in outcome.calls if call.status == "waiting"]
    options = [*(("--tools", one) for one in tools), *([("--config", config)] if config else [])]
    resume = shlex.join(["gloveport", "runs", "resume", outcome.run[:8], *(word for option in options for word in option)])
    error = pending_error(waiting, port, outcome.run, resume)
    failure = Failure(error.code, "ToolError", error.message, hint=error.hint, setting=error.setting)
    return replace(outcome, error=failure)


def pending_error(calls: Sequence[tuple[str, Any]], port: Gloveport, run: str | None = None, resume: str = "") -> ToolError:
    """Return the error of calls that need approval where nobody can answer, by tool and arguments.

    `resume` is the command that goes on with their run.
    """
    tools = Counter(tool for tool, _ in calls)
    named = ", ".join(f"{tool} (× {number})" if number > 1 else tool for tool, number in tools.items())
    need = "1 call needs" if len(calls) == 1 else f"{len(calls):,} calls need"
    made = "it was not made" if len(calls) == 1 else "they were not made"
    state = f"the run {run[:8]} waits" if run is not None else made  # a run may wait for a call that was interrupted
    message = f"{need} a person's approval; {state}: {named}"
    answer = f"answer in a terminal: `{resume}`" if resume else "make it in a terminal to answer"
    allowing, settings = _changes(calls, port)
    hint = f"{answer}; or allow such calls: {'; '.join(allowing)}" if allowing else answer
    return ToolError(message, code="approval-pending", hint=hint, setting="; ".join(settings) or None)


def _changes(calls: Sequence[tuple[str, Any]], port: Gloveport) -> tuple[list[str], list[str]]:
    """Return the commands that allow calls for which no rule asks; and what to change, or to look at, for the others."""
    allowing: dict[str, None] = {}
    settings: dict[str, None] = {}
    for tool, args in calls:
        entry = port.catalog.entry(tool)
        if entry is None:
            continue
        decision = port.rules.decide(CallRequest(entry.tool, args))
        if decision.verdict == "allow":  # then labels ask, or a person has to say what became of a call
            settings[f"`gloveport policy explain {shlex.quote(tool)}` shows what was read before"] = None
        is_preset = decision.rule.startswith("preset ")
        if is_preset:
            allowing[f"`gloveport policy set allow {shlex.quote(tool)}`"] = None
        if decision.setting and (not is_preset or entry.tool.kind == "mcp"):
            settings[decision.setting] = None  # of an MCP server: to trust what it says about its tools
    return list(allowing)[:MAX_SHOWN_COMMANDS], list(settings)[:MAX_SHOWN_COMMANDS]


def write_value(out: Stream, outcome: Outcome) -> None:
    """Write the result: a string as it is, None not at all, everything else as indented JSON."""
    value = outcome.value
    if value is None:
        return
    if isinstance(value, str):
        text = visible(value) if out.terminal else value
        out.write(text if text.endswith("\n") else text + "\n")
    else:
        out.line(to_text(to_json(value), indented=True))


def write_ending(err: Stream, outcome: Outcome, *, quiet: bool) -> None:
    """Write the warnings, the error, and on a terminal the time, calls, memory and engine of the run."""
    if not quiet:
        for warning in outcome.warnings:
            err.line(f"{err.paint('!', 'yellow')} warning: {visible_line(warning)}")
    for call in outcome.calls if outcome.status == "waiting" else ():
        if call.status == "waiting":
            args = visible_line(to_text(to_json(call.args), indented=False))
            err.line(f"{err.paint('?', 'yellow')} {err.paint('call ', 'dim')} {visible_line(call.tool)}({args})")
    if outcome.error is not None:
        write_failure(err, outcome.error)
    if err.terminal and not quiet and outcome.usage.wall_seconds:  # zero when nothing ran
        err.line(err.paint(_usage_line(outcome), "dim"))


def _usage_line(outcome: Outcome) -> str:
    usage = outcome.usage
    calls = "1 call" if usage.calls == 1 else f"{usage.calls:,} calls"
    engine = f" · {visible_line(outcome.engine)}" if outcome.engine else ""
    return f"{outcome.status} in {in_time(usage.wall_seconds)} · {calls} · {usage.memory_peak_mb:.0f} MB{engine}"


def write_failure(err: Stream, failure: Failure) -> None:
    """Write the error: what happened, where, what to do next, and its causes."""
    shown = visible_line(label(failure.code, failure.origin))
    _write_labelled(err, f"✗ {shown}", failure.summary, "red", "bold")
    if failure.line is not None:
        err.line(f"  line {failure.line}, column {failure.column}")
    if failure.frame:
        shown = visible(failure.frame)
        for line in fit_frame(shown, err.columns - 4) if err.terminal else shown.split("\n"):
            err.line(f"    {line}")
    _write_advice(err, failure.hint, failure.setting)
    _write_causes(err, failure)
    if err.terminal and failure.code in CODES and failure.origin == "gloveport":
        err.line(err.paint(f"  more: {as_typed(f'gloveport help {failure.code}')}", "dim"))


def fit_frame(frame: str, columns: int) -> list[str]:
    """Return a frame's source line, cut around the marked place so that it fits, and the line with the carets below it."""
    source, _, below = frame.partition("\n")
    head, bar, text = source.partition(" | ")
    gutter = len(head) + len(bar)
    room = max(columns - gutter, 4)
    if cells(text) <= room:
        return [source, below]
    at = len(below) - len(below.lstrip(" |")) - gutter  # the column of the first caret in the text
    end = max(cells(text), at + 1)
    left = max(0, min(at - room // 2, end - room))
    right = left + room
    first, last = left + (left > 0), right - (right < end)  # an ellipsis takes a column at each end that is cut
    kept, column, start = "", 0, first
    for character in text:
        width = cells(character)
        if first <= column and column + width <= last:
            start = start if kept else column
            kept += character
        column += width
    shown = f"{head}{bar}{'…' if left else ''}{kept}{'…' if right < end else ''}"
    place = at - start + (left > 0)
    carets = min(below.count("^"), max(1, last - at))
    return [shown, f"{below[:gutter]}{' ' * place}{'^' * carets}"]


def _write_causes(err: Stream, failure: Failure) -> None:
    cause, depth = failure.cause, 0
    while cause is not None and depth < MAX_SHOWN_CAUSES:
        where = f" (line {cause.line}, column {cause.column})" if cause.line is not None else ""
        _write_labelled(err, "  caused by", f"{cause.summary}{where}")
        cause, depth = cause.cause, depth + 1
    if cause is not None:
        err.line("  caused by: … more causes; --json lists all")


def _write_labelled(err: Stream, label: str, text: str, *colours: Colour) -> None:
    """Write a text after its label, in lines that fit the terminal."""
    first, *others = visible(text).split("\n")
    whole = f"{label}: {first}"
    folded = err.fold(whole, "    ")
    if not folded.startswith(label):  # the label itself is wider than the terminal
        folded = whole
    err.line(err.paint(label, *colours) + folded.removeprefix(label))
    for line in others:
        err.line(err.fold(f"    {line}", "    "))


def write_problem(err: Stream, error: GloveportError) -> None:
    """Write an error of the command itself, with its hint."""
    shown = visible_line(label(error.code, error.origin) if isinstance(error, ToolError) else error.code)
    _write_labelled(err, f"✗ {shown}", error.message, "red", "bold")
    _write_advice(err, error.hint, error.setting if isinstance(error, ToolError) else None)


def _write_advice(err: Stream, hint: str | None, setting: str | None) -> None:
    if hint:
        _write_labelled(err, "  hint", f"{as_typed(hint)}{' (--language)' if 'set the language to' in hint else ''}")
    if setting:
        _write_labelled(err, "  setting", f"{as_typed(setting)}{_option(setting)}")


def _option(setting: str) -> str:
    """Return the option of `gloveport run` for a setting of the library, in brackets."""
    option = next((option for name, option in OPTIONS.items() if name in setting), None)
    return f" ({option})" if option else ""
