"""`gloveport runs apply`: a person approves a plan, and its program runs with exactly those writes approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing

from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.errors import ApprovalError, OptionError
from gloveport.host.port import Gloveport, OnEvent
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.approvals.command import approver_of
from gloveport.surfaces.cli.run.plan_report import plan_lines, plan_question
from gloveport.surfaces.cli.runs.resume import run_stored
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.file_change import ask
from gloveport.types import Outcome, Plan


def apply_command(view: ViewOptions, id: str, tools: tuple[str, ...], *, yes: bool, no_input: bool) -> int:
    """Show a plan, ask, run its program, show the outcome and return the exit code."""
    approver = approver_of(view)
    plan, code = _find(view, id)
    if not yes:
        for line in plan_lines(view.err, plan):
            view.err.line(line)
        ask(plan_question(plan), view.err, yes=False, as_json=view.as_json)
    return run_stored(view, code, tools, _applying(plan, approver), no_input=no_input)


def _applying(plan: Plan, approver: str) -> Callable[[Gloveport, OnEvent], Awaitable[Outcome]]:
    return lambda port, on_event: port.apply(plan, approver=approver, on_event=on_event)


def _find(view: ViewOptions, id: str) -> tuple[Plan, str]:
    with closing(StoredRuns(view.store_path)) as stored, closing(PlanShelf(view.store_path)) as shelf:
        run = stored.find(id)
        found = shelf.find(run.id)
        if found is None:
            raise OptionError(f"the run {run.id[:8]} has made no plan", hint="`gloveport run --plan` makes one")
        if found.applied is not None:
            hint = f"`gloveport runs show {found.applied[:8]}` shows the run that followed it"
            raise ApprovalError(f"the plan of {run.id[:8]} was used already", hint=hint)
        return found.plan, stored.code(run)
