"""`gloveport runs list`, `show` and `cancel`: what the store has about runs."""

from __future__ import annotations

import getpass
import time
from contextlib import closing
from dataclasses import dataclass

from gloveport.errors import GloveportError
from gloveport.host.runs.past_outcome import past_outcome
from gloveport.sandbox import wire
from gloveport.store.stored_runs import ListedRun, StoredRuns
from gloveport.surfaces.cli.run.outcome_report import write_ending, write_value
from gloveport.surfaces.cli.run.plan_report import plan_lines
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import outcome_document, write_document
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.record_documents import cancel_run, run_document, since_time, state_of
from gloveport.surfaces.terminal import Colour, Stream, in_time, visible, visible_line
from gloveport.types import LogLine, RunStatus

SHORT_ID_CHARS = 8
FOLLOW_SECONDS = 0.2
COLORS: dict[str, Colour] = {"completed": "green", "failed": "red", "waiting": "yellow", "interrupted": "yellow"}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list."""

    failed: bool
    waiting: bool
    tool: str | None
    agent: str | None
    since: str | None
    limit: int


def list_command(view: ViewOptions, wanted: RunFilter) -> int:
    """List the latest runs; return the exit code."""
    failed: tuple[RunStatus, ...] = ("failed",) if wanted.failed else ()
    waiting: tuple[RunStatus, ...] = ("waiting", "running") if wanted.waiting else ()
    tool = None if wanted.tool is None else wanted.tool.removeprefix("tools.")
    since = since_time(wanted.since) / 1e6
    with closing(StoredRuns(view.store_path)) as stored:
        found = stored.latest(limit=wanted.limit, statuses=failed + waiting, tool=tool, agent=wanted.agent, since=since)
    if view.as_json:
        write_document(view.out, {"ok": True, "runs": [run_document(run) for run in found]})
        return 0
    for run in found:
        view.out.line(view.out.fold(_line(view.out, run), "    "))
    if not found:
        view.err.line("there are no such runs")
    elif resumable := next((run for run in found if not run.is_final and not run.owned), None):
        view.err.line(f"\n{view.err.paint(as_typed(f'gloveport runs resume {resumable.id[:SHORT_ID_CHARS]}'), 'dim')}")
    return 0


def show_command(view: ViewOptions, id: str) -> int:
    """Show one run; return the exit code."""
    with closing(StoredRuns(view.store_path)) as stored:
        run = stored.find(id)
        code = stored.code(run)
        outcome = past_outcome(stored, run)
    if view.as_json:
        write_document(view.out, {"ok": True, **run_document(run), "code": code, "outcome": outcome_document(outcome)})
        return 0
    view.out.line(_line(view.out, run))
    for text in visible(code.rstrip()).split("\n"):
        view.out.line(f"  {view.out.paint('│', 'dim')} {text}")
    for call in outcome.calls:
        error = f": {call.error}" if call.error else ""
        step = view.out.paint(f"[{visible_line(call.step)}] ", "dim") if call.step else ""
        view.out.line(f"  {step}{visible_line(f'tools.{call.tool}')}  {call.status}{visible_line(error)}")
    for request in outcome.waiting:
        view.out.line(f"  {as_typed(f'gloveport approvals show {request[:SHORT_ID_CHARS]}')}")
    for line in outcome.logs:
        view.out.line(f"  {view.out.paint(line.level, 'dim')} {visible_line(line.text)}")
    for line in plan_lines(view.out, outcome.plan) if outcome.plan is not None else ():
        view.out.line(line)
    if run.is_final:
        write_value(view.out, outcome)
        write_ending(view.err, outcome, quiet=False)
    return 0


def logs_command(view: ViewOptions, id: str, *, follow: bool) -> int:
    """Print what a run has logged; with `follow`, also what it logs until it ends. Return the exit code."""
    lines: list[dict[str, str]] = []
    with closing(StoredRuns(view.store_path)) as stored:
        run, last = stored.find(id), 0
        while True:
            run = stored.find(run.id)  # before the steps, so that none of a run that has ended is missed
            while steps := stored.steps_after(run, last):
                last = steps[-1][0]
                for line in filter(None, (_log_line(sender, content) for _, sender, content in steps)):
                    lines.append({"level": line.level, "text": line.text})
                    if follow and view.as_json:
                        write_document(view.out, lines[-1])
                    elif not view.as_json:
                        view.out.line(f"{view.out.paint(f'{line.level:<5}', 'dim')} {visible_line(line.text)}")
            if not follow or run.is_final:
                break
            time.sleep(FOLLOW_SECONDS)
    if view.as_json and not follow:
        write_document(view.out, {"ok": True, "run": run.id, "logs": lines})
    elif run.obstacle is not None and not last:
        view.err.line(f"the run was not recorded as a whole: {run.obstacle}")
    elif follow:
        view.err.line(f"the run has ended: {run.status}")
    return 0


def _log_line(sender: str, content: bytes) -> LogLine | None:
    if sender != "guest" or not content.startswith(b'["log"'):
        return None
    try:
        _, level, text = wire.decode(content)
    except (GloveportError, ValueError):
        return None
    return LogLine(str(level), str(text))


def cancel_command(view: ViewOptions, id: str) -> int:
    """End a run, or ask the host that runs it to end it; return the exit code."""
    with closing(StoredRuns(view.store_path)) as stored:
        run = stored.find(id)
        cancel_run(stored, run, getpass.getuser())
    if view.as_json:
        write_document(view.out, {"ok": True, "cancelled": run.id})
    else:
        view.err.line(f"{run.id[:SHORT_ID_CHARS]} is cancelled")
    return 0


def _line(out: Stream, run: ListedRun) -> str:
    state = state_of(run)
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    parts = [out.paint(run.id[:SHORT_ID_CHARS], "bold"), started, out.paint(f"{state:<11}", COLORS.get(state, "dim"))]
    parts.append(visible_line(run.agent))
    if run.is_final:
        calls = "1 call" if run.calls == 1 else f"{run.calls:,} calls"
        parts += [calls, in_time((run.ended or run.started) - run.started)]
    parts += [visible_line(run.error)] if run.error else []
    return "  ".join(parts)
