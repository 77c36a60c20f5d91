"""One run as the host sees it: what was asked for, what the sandbox may use of it, and its outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gloveport.bridge import RunBridge
from gloveport.bridge.run_bridge import OnCall
from gloveport.errors import ToolError
from gloveport.host.failures import internal_error, run_failure, with_waiting_place
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import ENGINES
from gloveport.sandbox.run_attempt import AttemptResult
from gloveport.store.run_audit import RunAudit
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
    Usage,
)

logger = logging.getLogger("gloveport")

NO_INPUT: Any = object()
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for one run."""

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

    @property
    def subset(self) -> str | None:
        """The module that lists the language features the engine lacks; None for a complete engine."""
        return ENGINES[self.options.engine].subset

    def happened(self, event: Event) -> None:
        """Tell whoever listens to the run."""
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:
            logger.exception("run %s: on_event raised; the run goes on", self.run)

    def listener(self, other: OnCall | None) -> OnCall | None:
        """Return who is told about calls: whoever listens to the run, and another."""
        if self.on_event is None or other is None:
            return other or (self.call_happened if self.on_event else None)

        def tell(kind: CallEvent, record: CallRecord) -> None:
            self.call_happened(kind, record)
            other(kind, record)

        return tell

    def call_happened(self, kind: CallEvent, record: CallRecord) -> None:
        """Tell whoever listens about a call."""
        self.happened(Event(kind, self.run, call=record))


def closed_outcome(request: RunRequest) -> Outcome:
    """Return the outcome of a run whose port was closed before it began."""
    return Outcome(request.run, "failed", error=Failure("closed", "GloveportError", "this Gloveport was closed"))


class RunPort:
    """What the sandbox may use of this run: its bridge, and a place for its output."""

    def __init__(self, request: RunRequest, bridge: RunBridge) -> None:
        self._request = request
        self.bridge = bridge
        self.call = bridge.call
        self.call_sync = bridge.call_sync
        self.stop_asking = bridge.stop_asking
        self.logs: list[LogLine] = []
        self.emitted: list[Any] = []

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


def outcome_of(request: RunRequest, program: Program, port: RunPort, result: AttemptResult, seconds: float) -> Outcome:
    """Return the outcome of a run that has ended."""
    calls = port.bridge.records
    pending = frozenset(result.pending)
    warnings = [
        f"the program ended before tools.{call.tool} did (it {_call_result(call)}); the code after that call did not run"
        for call in calls
        if call.id in pending
    ]
    if warnings:
        together = "asyncio.gather(*calls)" if request.language == "python" else "Promise.all(items.map(…))"
        warnings.append(f"await every call: one by one in a loop, or all with `await {together}`")
    return Outcome(
        run=request.run,
        status="completed" if result.error is None else "failed",
        value=result.value,
        error=None if result.error is None else _failure(program, port, result, calls),
        logs=tuple(port.logs),
        emitted=tuple(port.emitted),
        calls=calls,
        usage=Usage(
            wall_seconds=seconds,
            cpu_seconds=result.cpu_seconds,
            memory_peak_mb=result.memory_peak_mb,
            calls=len(calls),
            log_bytes=sum(len(line.text.encode()) for line in port.logs),
        ),
        warnings=(*warnings, *port.bridge.notes, *result.warnings),
    )


def _failure(program: Program, port: RunPort, result: AttemptResult, calls: Sequence[CallRecord]) -> Failure:
    found = run_failure(program, result, port.bridge.errors)
    return port.bridge.with_hint(found if result.reported_by_guest else with_waiting_place(found, program, calls))


def _call_result(call: CallRecord) -> str:
    return {"ok": "succeeded", "failed": "failed", "running": "is still running", "waiting": "was not answered"}[
        call.status
    ]
