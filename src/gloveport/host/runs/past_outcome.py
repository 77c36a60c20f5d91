"""Builds the outcome of a stored run from its row and its steps."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import msgspec

from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.bridge.past_calls import past_record
from gloveport.plan import Plan
from gloveport.sandbox.history import RunHistory
from gloveport.store.snippets import SOURCE
from gloveport.store.stored_runs import StoredRun, StoredRuns
from gloveport.tool_names import RESERVED_ROOT_NAMES
from gloveport.types import Failure, Outcome, Usage


def past_outcome(stored: StoredRuns, run: StoredRun) -> Outcome:
    """Return the outcome of a stored run; its status is `waiting` while the run has not ended."""
    history = RunHistory.of(stored.recording(run))
    plan = _plan(stored, run)
    planned = {write.call for write in plan.writes} if plan is not None else ()
    told = run.outcome or {}
    error = told.get("error")
    made = (past for past in history.calls if past.reply and not past.is_sync)
    calls = tuple(
        replace(found, status="planned") if (found := past_record(past, None, history.began)).id in planned else found
        for past in made
        if past.call.name.partition(".")[0] not in RESERVED_ROOT_NAMES - {SOURCE}
    )
    return Outcome(
        run.id,
        run.status if run.status != "running" else "waiting",
        value=history.value if run.status == "completed" else None,
        error=msgspec.convert(error, Failure) if error else None,
        logs=tuple(history.logs),
        emitted=tuple(history.emitted),
        calls=calls,
        usage=msgspec.convert(told["usage"], Usage) if "usage" in told else Usage(calls=len(calls)),
        warnings=tuple(told.get("warnings", ())),
        waiting=() if run.is_final else stored.requests(run),
        plan=plan,
    )


def _plan(stored: StoredRuns, run: StoredRun) -> Plan | None:
    if run.request.get("plan") != "draft":
        return None
    with closing(PlanShelf(stored.path)) as shelf:
        found = shelf.find(run.id)
    return None if found is None else found.plan
