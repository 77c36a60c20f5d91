"""One attempt at a run, in one worker: a new run, or the rest of one that is resumed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from gloveport.bridge import Bridge, RunContext
from gloveport.bridge.plans import PlanDraft
from gloveport.errors import GloveportError
from gloveport.host.failures import call_line, error_data, internal_error
from gloveport.host.program_reader import MAX_INLINE_TOOLS, ProgramReader
from gloveport.host.runs.held_runs import HeldRun
from gloveport.host.runs.run_request import NO_INPUT, ResumedRun, RunPort, RunRequest, outcome_of
from gloveport.host.runs.snippet_calls import SnippetCalls, SnippetRunner
from gloveport.large_values import off_loop_if
from gloveport.sandbox.run_attempt import AttemptResult, RunAttempt
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.start_event import Preparation, RunModules, RunSetup
from gloveport.types import Outcome, Program, Usage

MAX_INLINE_CALLS = 500  # whose records are restored on the event loop


async def attempt(
    request: RunRequest,
    program: Program,
    worker: RunWorker,
    bridge: Bridge,
    held: HeldRun | None,
    *,
    reader: ProgramReader,
    snippets: SnippetRunner | None,
    modules: RunModules | None = None,
) -> Outcome:
    """Run a program in a worker and return the outcome."""
    began = time.monotonic()
    on_call = request.call_happened if request.on_event is not None else None
    line_of = partial(call_line, program.source)
    resumed = request.resumed
    caller = request.caller
    context = RunContext(
        request.run, began, on_call, line_of, request.audit, resumed is not None, request.plan, session=request.session
    )
    called: SnippetCalls | None = None
    if snippets is not None and request.plan is None:
        passed_on = {"caller": caller, "held": held, "packages": request.packages}
        called = SnippetCalls(snippets, bridge, request.run, request.limits, **passed_on)
        context = replace(context, run_snippet=called.call)
    if request.tools is not None:
        context = replace(context, call_caller=request.tools.call)
    if caller is not None:
        # Whoever is asked has the text of the caller's program, so a line of the snippet would mislead.
        context = replace(context, run=caller.run, call_base=caller.call_base, line_of=lambda tool: None)
    port = RunPort(request, bridge.for_run(request.limits, context))
    port.bridge.approvals.on_waiting = partial(_waits, request, worker)
    port.usage = lambda: Usage(time.monotonic() - began, worker.run_cpu_seconds(), worker.peak_mb())
    if caller is not None:
        port.bridge.budgets_used, port.bridge.flow = caller.bridge.budgets_used, caller.bridge.flow
    else:
        port.bridge.approvals.find_findings = partial(reader.find_findings, program, agent=request.agent)
        if held is not None:
            held.follow(port)
    work = RunAttempt(worker, port, request.limits, request.recorder)
    try:
        session = request.used_session or _NoSession()
        await session.enter(worker)
        if resumed is None:
            result = await work.run(program, _setup(request, bridge, modules, worker.prepared))
        else:
            await _restore(resumed, port, called)
            result = await work.resume(resumed.history)
        result = await session.leave(worker, result, keep=not isinstance(request.plan, PlanDraft))
    except GloveportError as error:
        result = AttemptResult(error=error_data(error))
    except Exception as error:  # noqa: BLE001 - the outer edge: a defect of the host must not look like the guest's
        result = AttemptResult(error=internal_error(request.run, error))
    finally:
        port.usage = Usage  # whoever holds the run must not hold its worker
        port.bridge.close()
    # The hint of an error may be a suggestion, and the first one of a catalog builds an index.
    slow = result.error is not None and len(bridge.catalog.tools) > MAX_INLINE_TOOLS
    return await off_loop_if(slow, outcome_of, request, program, port, result, time.monotonic() - began)


class _NoSession:
    """Stands in for the session of a run that has none."""

    async def enter(self, worker: RunWorker) -> None: ...

    async def leave(self, worker: RunWorker, result: AttemptResult, *, keep: bool) -> AttemptResult:
        return result


async def _restore(resumed: ResumedRun, port: RunPort, called: SnippetCalls | None) -> None:
    """Bring the bridge of a run to where its recorded part ends."""
    many = len(resumed.history.calls) > MAX_INLINE_CALLS
    await off_loop_if(many, port.bridge.restore, resumed.history)
    if called is not None:
        await called.count_past(port.bridge, resumed.history, resumed.stored.id)


def _waits(request: RunRequest, worker: RunWorker, waits: bool) -> None:
    if waits:
        worker.pause_clock()
    else:
        worker.resume_clock()
    if request.recorder is not None:
        request.recorder.status("waiting" if waits else "running")
    if request.caller is not None:
        request.caller.waits(waits)


def preparable(request: RunRequest, modules: RunModules | None) -> RunModules | None:
    """Return the modules that a process may have imported before it gets this run; None for none.

    Modules of a run that has files or an environment may look at these when they are imported, and a run that has a seed
    already is to begin as another one did.
    """
    if modules is None or request.resumed or request.seed or request.env or request.options.workspace:
        return None
    return modules if modules.script or modules.imports else None


def _sent(modules: RunModules | None, request: RunRequest, prepared: Preparation | None) -> RunModules | None:
    """Return the modules that the first event of a run has. The process of a Python run has its packages as files."""
    is_needed = modules is not None and (request.language != "python" or modules.script or prepared is not None)
    return modules if is_needed else None


def _setup(request: RunRequest, bridge: Bridge, modules: RunModules | None, prepared: Preparation | None) -> RunSetup:
    has_input = request.input is not NO_INPUT
    return RunSetup(
        sources=tuple(sorted(bridge.catalog.roots)),
        env=request.env,
        input=request.input if has_input else None,
        has_input=has_input,
        seed=request.seed if prepared is None else prepared.seed,
        state=None if request.used_session is None else request.used_session.state,
        modules=_sent(modules, request, prepared),
        prepared=prepared,
        packages=request.supplied,
    )
