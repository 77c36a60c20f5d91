"""`gloveport runs resume` and `replay`: they run a program of the store again, in a sandbox."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace

from gloveport.catalog import Catalog
from gloveport.errors import GloveportError, OptionError
from gloveport.host.port import Gloveport, OnEvent
from gloveport.sandbox.history import RunHistory
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.approvals.shown import SHORT_ID_CHARS
from gloveport.surfaces.cli.run.approval_prompt import ApprovalPrompt, can_ask
from gloveport.surfaces.cli.run.command import load_tools
from gloveport.surfaces.cli.run.outcome_report import exit_status, with_pending, write_ending, write_value
from gloveport.surfaces.cli.run.run_view import RunView
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import outcome_document, write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.terminal import claim_stdout, stream, visible_line
from gloveport.types import Divergence, Outcome


def resume_command(view: ViewOptions, id: str, tools: tuple[str, ...], *, no_input: bool) -> int:
    """Go on with a run, show its outcome and return the exit code."""
    with closing(StoredRuns(view.store_path)) as stored:
        run = stored.find(id)
        if run.owned and run.status == "running":
            short = run.id[:SHORT_ID_CHARS]
            hint = f"`gloveport runs logs -f {short}` follows it, `gloveport runs cancel {short}` ends it"
            raise OptionError(f"another process runs {short} now", code="run-taken-over", hint=hint)
        code = stored.code(run)
        history = None if run.is_final or run.obstacle else RunHistory.of(stored.recording(run))

    async def resume(port: Gloveport, on_event: OnEvent) -> Outcome:
        if history is not None:
            await port.connect(naming=code)
            _check_tools(port.catalog, [past.call.name for past in history.open_calls if not past.is_sync])
        return await port.resume(run.id, agent=run.agent, on_event=on_event)

    return run_stored(view, code, tools, resume, no_input=no_input)


def _check_tools(catalog: Catalog, names: list[str]) -> None:
    """Raise OptionError if a tool is missing that the run calls next: the call would fail, and the run with it."""
    missing = [name for name in names if name not in ("search", "describe") and catalog.find(name) is None]
    if missing:
        problem = catalog.source_problem(missing[0])
        why = f": {problem.message}" if problem is not None else ""
        hint = "name the file of its functions with --tools; `gloveport sources` shows what is here"
        raise OptionError(f"the run calls tools.{missing[0]}, which is not here{why}", code="unknown-tool", hint=hint)


def run_stored(
    view: ViewOptions,
    code: str,
    tools: tuple[str, ...],
    work: Callable[[Gloveport, OnEvent], Awaitable[Outcome]],
    *,
    no_input: bool,
) -> int:
    """Let a port do something with a stored run, show its outcome and return the exit code."""
    settings = view.settings()
    path = settings.governance.store_path
    out, err = stream(claim_stdout(), view.color), stream(sys.stderr, view.color)
    progress = RunView(err, quiet=view.as_json, opening=lambda: port.opening)
    prompt = ApprovalPrompt(err, progress.paused, code) if can_ask(no_input=no_input) else None
    on_approval = prompt.ask if prompt is not None else None
    port = Gloveport(sources=load_tools(tools), config=settings, spare=0, on_approval=on_approval, store=path)
    if prompt is not None:
        prompt.desk = port.approvals

    async def goes_on() -> Outcome:
        progress.begin()
        try:
            return await work(port, progress.event)
        finally:
            await port.close()
            progress.close()

    outcome = with_pending(run_interruptible(goes_on()), port, tools, view.config)
    if view.as_json:
        write_document(out, outcome_document(outcome))
    else:
        write_value(out, outcome)
        write_ending(err, outcome, quiet=False)
    return exit_status(outcome)


def replay_command(view: ViewOptions, id: str, tools: tuple[str, ...], *, live_reads: bool) -> int:
    """Repeat a run and compare; return 0 if nothing that has a meaning differs."""
    settings = view.settings()
    path = settings.governance.store_path
    if tools and not live_reads:
        raise OptionError("--tools is for --live-reads: a replay calls no tool")

    async def replay() -> Divergence | None:
        used = settings if live_reads else replace(settings, sources=())
        async with Gloveport(sources=load_tools(tools), config=used, spare=0, store=path) as port:
            return await port.replay(id, live_reads=live_reads)

    found = run_interruptible(replay())
    if found is not None and found.fatal:
        raise GloveportError(f"the run does something else than recorded: {found}", code="replay-diverged")
    if view.as_json:
        write_document(view.out, {"ok": True, "difference": None if found is None else str(found)})
    else:
        view.err.line("the same" if found is None else f"the same, but for {visible_line(str(found))}")
    return 0
