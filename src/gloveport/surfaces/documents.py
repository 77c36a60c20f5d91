"""The JSON documents that `--json` prints: outcomes, failures, calls and errors, in one shape for every command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from gloveport.errors import GloveportError, OptionError, ToolError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.terminal import Stream, visible_json
from gloveport.types import CallRecord, Failure, Outcome, Plan
from gloveport.values import to_json

FIELDS = (
    "ok",
    "run",
    "status",
    "value",
    "error",
    "logs",
    "emitted",
    "calls",
    "usage",
    "warnings",
    "waiting",
    "plan",
    "engine",
)


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as plain JSON data."""
    usage = outcome.usage
    return {
        "ok": outcome.ok,
        "run": outcome.run,
        "status": outcome.status,
        "value": to_json(outcome.value),
        "error": failure_document(outcome.error) if outcome.error else None,
        "logs": [{"level": line.level, "text": line.text} for line in outcome.logs],
        "emitted": [to_json(value) for value in outcome.emitted],
        "calls": [call_document(call) for call in outcome.calls],
        "usage": {
            "wall_seconds": usage.wall_seconds,
            "cpu_seconds": usage.cpu_seconds,
            "memory_peak_mb": usage.memory_peak_mb,
            "calls": usage.calls,
            "log_bytes": usage.log_bytes,
        },
        "warnings": list(outcome.warnings),
        "waiting": list(outcome.waiting),
        "plan": plan_document(outcome.plan) if outcome.plan else None,
        "engine": outcome.engine,
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain JSON data."""
    writes = [
        asdict(write) | {"args": to_json(dict(write.args)), "unknown": list(write.unknown), "after": list(write.after)}
        for write in plan.writes
    ]
    return {"run": plan.run, "agent": plan.agent, "writes": writes, "expires": plan.expires, "notes": list(plan.notes)}


def failure_document(failure: Failure) -> dict[str, Any]:
    """Return the error that ended a run, with its causes."""
    return {
        "code": failure.code,
        "type": failure.type,
        "message": failure.message,
        "line": failure.line,
        "column": failure.column,
        "frame": failure.frame,
        "tool": failure.tool,
        "hint": failure.hint,
        "cause": failure_document(failure.cause) if failure.cause else None,
        "data": to_json(failure.data),
        "status": failure.status,
        "origin": failure.origin,
        "setting": failure.setting,
    }


def call_document(call: CallRecord) -> dict[str, Any]:
    """Return one call of a run."""
    return {
        "id": call.id,
        "tool": call.tool,
        "args": to_json(call.args),
        "status": call.status,
        "started": call.started,
        "seconds": call.seconds,
        "error": call.error,
        "origin": call.origin,
        "approval": None if call.approval is None else to_json(asdict(call.approval)),
        "setting": call.setting,
        "step": call.step,
    }


def problem_document(error: GloveportError) -> dict[str, object]:
    """Return the document of a command that failed: `ok` is false, and `error` says why."""
    return {"ok": False, "error": error_document(error)}


def error_document(error: GloveportError) -> dict[str, Any]:
    """Return an error in the shape of every surface. `data` is null without data; an error of a call has more fields."""
    shown = {"code": error.code, "message": error.message, "hint": error.hint, "data": to_json(error.data)}
    if isinstance(error, ToolError):
        about = {"tool": error.tool, "status": error.status, "retryable": error.retryable}
        return {**shown, **about, "origin": error.origin, "setting": error.setting}
    return shown


def answer_document(found: Mapping[str, object], wrong: GloveportError | None) -> dict[str, object]:
    """Return the document of a command that shows what it found, with the error if there is one."""
    return {**(problem_document(wrong) if wrong else {"ok": True}), **found}


def parse_fields(text: str) -> tuple[str, ...]:
    """Return the names in `--fields a,b`; an unknown name is an error that suggests a known one."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"the fields are {', '.join(FIELDS)}"
            raise OptionError(f"there is no field `{name}`", hint=hint)
    if not names:
        raise OptionError("--fields names no field", hint=f"the fields are {', '.join(FIELDS)}")
    return names


def select(document: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return the document with only these fields, in this order; the whole document when none are given."""
    return {name: document[name] for name in fields} if fields else dict(document)


def to_text(value: Any, *, indented: bool) -> str:
    """Return JSON text, indented or on one line, with invisible characters escaped."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else 0).decode()
    except TypeError:  # a lone surrogate: JavaScript strings may contain it, UTF-8 may not
        text = json.dumps(value, indent=2 if indented else None)
    return visible_json(text)


def write_document(out: Stream, document: Mapping[str, Any]) -> None:
    """Write the document: indented on a terminal, on one line in a pipe."""
    out.line(to_text(document, indented=out.terminal))
