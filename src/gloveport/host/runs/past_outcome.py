"""Builds the outcome of a stored run from its row and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import msgspec

from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.bridge.past_calls import past_record
from gloveport.bridge.refusals import outcome_unknown
from gloveport.host.options import limits_from
from gloveport.large_values import looked_up
from gloveport.limits import Limits
from gloveport.sandbox import wire
from gloveport.sandbox.history import PastCall, RunHistory
from gloveport.store.snippets import SOURCE
from gloveport.store.stored_runs import StoredRun, StoredRuns
from gloveport.tool_names import RESERVED_ROOT_NAMES
from gloveport.types import CallApproval, CallRecord, CallStatus, Failure, Outcome, Plan, Usage

looked_up(Failure)
looked_up(Usage)


def past_outcome(stored: StoredRuns, run: StoredRun) -> Outcome:
    """Return the outcome of a stored run; its status is `waiting` while the run has not ended."""
    history = RunHistory.of(stored.recording(run))
    plan = _plan(stored, run)
    planned = {write.call for write in plan.writes} if plan is not None else ()
    told = run.outcome or {}
    error = told.get("error")
    requests = {} if run.is_final else stored.requests(run)
    queued: set[int] = set() if run.is_final else _queued(history, run, requests)
    records = (_record(past, history, run, requests) for past in history.calls if _is_shown(past, run))
    calls = tuple(replace(found, status="planned") if found.id in planned else found for found in records)
    calls = tuple(
        replace(found, status="queued") if found.status == "running" and found.id in queued else found for found in calls
    )
    if approvals := _approvals(stored, run):
        calls = tuple(replace(found, approval=approvals.get(found.id)) for found in calls)
    return Outcome(
        run.id,
        run.status if run.status != "running" else "waiting",
        value=history.value if run.status == "completed" else None,
        error=msgspec.convert(error, Failure) if error else None,
        logs=tuple(history.logs),
        emitted=tuple(history.emitted),
        calls=calls,
        usage=msgspec.convert(told["usage"], Usage) if "usage" in told else _usage_so_far(history, len(calls)),
        warnings=tuple(told.get("warnings", ())),
        waiting=tuple(requests),
        plan=plan,
        engine=run.engine or None,
    )


def past_input(stored: StoredRuns, run: StoredRun) -> tuple[Any, ...]:
    """Return the input of a stored run as the only member; nothing if it had none, or never began."""
    steps = stored.steps(run, 1)
    start = wire.decode(steps[0][1])[2] if steps else {}
    return (start["input"],) if start.get("has_input") else ()


def _is_shown(past: PastCall, run: StoredRun) -> bool:
    """Return whether a call is one of a tool, and was made: a run that has ended drops those that had not left."""
    is_tool = not past.is_sync and past.call.name.partition(".")[0] not in RESERVED_ROOT_NAMES - {SOURCE}
    return is_tool and (past.reply is not None or past.left or not run.is_final)


def _queued(history: RunHistory, run: StoredRun, requests: Mapping[str, int]) -> set[int]:
    """Return the calls that wait for their turn: a limit bounds how many run at once, and without a host none does."""
    asked = set(requests.values())
    ready = [past for past in history.open_calls if not past.is_sync and past.call.id not in asked]
    slots = limits_from(Limits(), run.request["limits"]).max_concurrent_calls if run.owned else 0
    rest = [past.call.id for past in ready if not past.left]
    return set(rest[max(0, slots - (len(ready) - len(rest))) :])


def _record(past: PastCall, history: RunHistory, run: StoredRun, requests: Mapping[str, int]) -> CallRecord:
    found = past_record(past, None, history.began)
    if past.reply is not None:
        return found
    status: CallStatus = "running" if not past.left or run.owned else "unknown"
    asks = past.call.id in requests.values() or past.call.name.startswith(f"{SOURCE}.")  # a snippet asks for its caller
    if requests and asks:
        status = "waiting"
    error = outcome_unknown(found.tool) if status == "unknown" else None
    return replace(found, status=status, error=error and f"{error.code}: {error.message}", origin=error and error.origin)


def _approvals(stored: StoredRuns, run: StoredRun) -> dict[int, CallApproval]:
    """Return what approvers have answered about the calls of a run, for as long as the store keeps their answers."""
    if not stored.has_asked(run):
        return {}
    with closing(ApprovalShelf(stored.path)) as shelf:
        given = shelf.taken(run.id)
    return {
        asked.call: CallApproval(
            answer.approver, max(0.0, at - asked.asked), answer.scope, None if answer.args is None else asked.args
        )
        for asked, answer, at in sorted(given, key=lambda one: one[2])
    }


def _usage_so_far(history: RunHistory, calls: int) -> Usage:
    log_bytes = sum(len(line.text.encode()) for line in history.logs)
    return Usage(wall_seconds=(history.now - history.began) / 1e6, calls=calls, log_bytes=log_bytes)


def _plan(stored: StoredRuns, run: StoredRun) -> Plan | None:
    if run.request.get("plan") != "draft":
        return None
    with closing(PlanShelf(stored.path)) as shelf:
        found = shelf.find(run.id)
    return None if found is None else found.plan
