"""One run as the host sees it: what was asked for, what the sandbox may use of it, and its outcome."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gloveport.bridge import RunBridge
from gloveport.bridge.plans import ApprovedPlan, PlanDraft
from gloveport.errors import ToolError
from gloveport.host.failures import MAX_IDLE_CPU_SHARE, internal_error, run_failure, with_waiting_place
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import every_engine
from gloveport.sandbox.history import RunHistory
from gloveport.sandbox.run_attempt import AttemptResult
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sources.caller import CallerTools
from gloveport.sources.functions import FunctionSource
from gloveport.store.run_audit import RunAudit
from gloveport.store.run_recorder import RunRecorder
from gloveport.store.stored_runs import StoredRun
from gloveport.types import (
    DEFAULT_AGENT,
    CallEvent,
    CallRecord,
    Event,
    Failure,
    Language,
    Limits,
    LogLine,
    Outcome,
    Program,
    ToolCall,
    Usage,
)

logger = logging.getLogger("gloveport")

NO_INPUT: Any = object()
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class ResumedRun:
    """A run in the store that this host goes on with, and what it has done so far."""

    stored: StoredRun
    history: RunHistory


@dataclass(frozen=True, slots=True)
class SnippetCaller:
    """What called a snippet: the run under whose id it asks, the bridge of its caller, and the snippets on the way here.

    `call_base` tells the numbers of its calls from those of its callers. `waits` tells its caller that it waits.
    """

    run: str
    call_base: int
    names: tuple[str, ...]
    bridge: RunBridge
    waits: Callable[[bool], None]
    above: SnippetCaller | None = None


class UsedSession(Protocol):
    """A session while one run uses it."""

    @property
    def state(self) -> bytes:
        """The state at the start of the run, encoded."""
        ...

    @property
    def snapshot(self) -> str:
        """The digest of what it held at the start of the run."""
        ...

    async def enter(self, worker: RunWorker) -> None:
        """Put the files of the session into the workspace of a worker."""
        ...

    async def leave(self, worker: RunWorker, result: AttemptResult, *, keep: bool) -> AttemptResult:
        """End the worker and keep what its program has left, if it succeeded; return the result, or why that fails."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for one run. `plan` is the plan that it makes, or the one that it follows.

    `packages` are the names of packages that it may import, None for all that its agent may; `supplied` are
    the ids and hashes of those that its process has.
    `lighter` are the options of the engine that runs the program instead if it suits it: until its program is read.
    `asked` is a digest of what was asked for, from whoever may ask again under the same id.
    `session` is the name of the session that it uses, and `used_session` the session, once no other run uses it.
    `caller` is set for the run of a snippet; `tools` are those that whoever started the run has brought along, and
    `added_sources` have the functions that plugins have added.
    """

    run: str
    code: str
    language: Language
    options: ProcessOptions
    any_engine: bool
    input: Any
    limits: Limits
    env: Mapping[str, str]
    on_event: OnEvent | None
    agent: str = DEFAULT_AGENT
    audit: RunAudit | None = None
    recorder: RunRecorder | None = None
    resumed: ResumedRun | None = None
    plan: PlanDraft | ApprovedPlan | None = None
    seed: bytes = b""
    caller: SnippetCaller | None = None
    tools: CallerTools | None = None
    log_code: bool = False
    session: str | None = None
    waits_for_session: bool = True
    used_session: UsedSession | None = None
    added_sources: tuple[FunctionSource, ...] = ()
    packages: frozenset[str] | None = None
    supplied: Mapping[str, str] = field(default_factory=dict)
    asked: str | None = None
    lighter: ProcessOptions | None = None

    @property
    def lighter_subset(self) -> str | None:
        """The module that says which programs suit the lighter engine; None if there is no choice."""
        return None if self.lighter is None else every_engine()[self.lighter.engine].subset

    @property
    def subset(self) -> str | None:
        """The module that lists the language features the engine lacks; None for a complete engine."""
        return every_engine()[self.options.engine].subset

    def happened(self, event: Event) -> None:
        """Tell whoever listens to the run."""
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:
            logger.exception("run %s: on_event raised; the run goes on", self.run)

    def call_happened(self, kind: CallEvent, record: CallRecord) -> None:
        """Tell whoever listens about a call."""
        self.happened(Event(kind, self.run, call=record))


def closed_outcome(request: RunRequest) -> Outcome:
    """Return the outcome of a run whose port was closed before it began."""
    error = Failure("closed", "GloveportError", "this Gloveport was closed")
    return Outcome(request.run, "failed", error=error, engine=None if request.lighter else request.options.engine)


class RunPort:
    """What the sandbox may use of this run: its bridge, and a place for its output."""

    def __init__(self, request: RunRequest, bridge: RunBridge) -> None:
        self._request = request
        self.recorder = request.recorder
        self.bridge = bridge
        self.call = bridge.call if request.caller is None else self._call_counted
        self.call_again = bridge.call_again
        self.call_sync = bridge.call_sync
        self.stop_asking = bridge.approvals.stop
        self.usage: Callable[[], Usage] = Usage
        """Returns what the process of the run has used so far."""
        past = request.resumed.history if request.resumed is not None else None
        self.logs: list[LogLine] = list(past.logs) if past is not None else []
        self.emitted: list[Any] = list(past.emitted) if past is not None else []

    async def _call_counted(self, call: ToolCall) -> Any:
        """Make a call of a snippet, which also counts as one of its caller."""
        caller = self._request.caller
        while caller is not None:
            caller.bridge.count_call()
            caller = caller.above
        return await self.bridge.call(call)

    def report_defect(self, error: Exception) -> ToolError:
        """Log a defect of the host; return an error that shows the guest none of its internals."""
        return ToolError(internal_error(self._request.run, error)["message"], code="internal-error")

    def log(self, line: LogLine) -> None:
        """Keep a line of output."""
        self.logs.append(line)
        self._request.happened(Event("log", self._request.run, log=line))

    def emit(self, value: Any) -> None:
        """Keep a value for the user."""
        self.emitted.append(value)
        self._request.happened(Event("emit", self._request.run, value=value))

    def waiting_outcome(self, requests: tuple[str, ...]) -> Outcome:
        """Return the outcome of the run so far, which waits for answers to these requests."""
        calls = self.bridge.records
        usage = replace(self.usage(), calls=len(calls), log_bytes=_log_bytes(self.logs))
        return Outcome(
            self._request.run,
            "waiting",
            logs=tuple(self.logs),
            emitted=tuple(self.emitted),
            calls=calls,
            usage=usage,
            waiting=requests,
            engine=self._request.options.engine,
        )


def outcome_of(request: RunRequest, program: Program, port: RunPort, result: AttemptResult, seconds: float) -> Outcome:
    """Return the outcome of a run that has ended."""
    calls = port.bridge.records
    pending = frozenset(result.pending)
    left = Counter((call.tool, _call_result(call)) for call in calls if call.id in pending)
    warnings = [
        f"the program ended before tools.{tool} did (it {result}{f', {count:,} ×' if count > 1 else ''});"
        " the code after that call did not run"
        for (tool, result), count in left.items()
    ]
    if warnings:
        together = "asyncio.gather(*calls)" if request.language == "python" else "Promise.all(items.map(…))"
        warnings.append(f"await every call: one by one in a loop, or all with `await {together}`")
    return Outcome(
        run=request.run,
        status="completed" if result.error is None else "failed",
        value=result.value,
        error=None if result.error is None else _failure(request, program, port, result, seconds),
        logs=tuple(port.logs),
        emitted=tuple(port.emitted),
        calls=calls,
        usage=Usage(
            wall_seconds=seconds,
            cpu_seconds=result.cpu_seconds,
            memory_peak_mb=result.memory_peak_mb,
            calls=len(calls),
            log_bytes=_log_bytes(port.logs),
        ),
        warnings=(*warnings, *port.bridge.notes, *result.warnings),
        plan=request.plan.plan if isinstance(request.plan, PlanDraft) else None,
        engine=request.options.engine,
    )


def _log_bytes(logs: Sequence[LogLine]) -> int:
    return sum(len(line.text.encode()) for line in logs)


def _failure(request: RunRequest, program: Program, port: RunPort, result: AttemptResult, seconds: float) -> Failure:
    found = run_failure(program, result, port.bridge.errors)
    if not result.reported_by_guest:
        # On a busy machine, one that computes may get less of its time than one that waits.
        was_running = result.error is not None and result.error.get("was_running") is True
        is_idle = not was_running and result.cpu_seconds / max(seconds, 0.001) < MAX_IDLE_CPU_SHARE
        found = with_waiting_place(found, program, port.bridge.records, is_idle=is_idle)
    return port.bridge.with_hint(found, has_files=request.session is not None)


def _call_result(call: CallRecord) -> str:
    return {
        "queued": "waits for its turn",
        "ok": "succeeded",
        "failed": "failed",
        "running": "is still running",
        "waiting": "was not answered",
        "planned": "is planned",
        "unknown": "may have been made",
    }[call.status]
