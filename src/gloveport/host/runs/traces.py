"""OpenTelemetry spans of runs and their calls. Nothing imports this module unless traces are wanted.

Spans have ids, names of tools, engines and agents, statuses and error codes. They have no program, no argument, no
result and no message: any of these may hold what only the run may see.
"""

from __future__ import annotations

import time
from contextvars import Token
from functools import partial

from opentelemetry import context, trace
from opentelemetry.trace import Span, StatusCode, Tracer

import gloveport
from gloveport.errors import CODES
from gloveport.host.runs.observers import OnEnd
from gloveport.host.runs.run_request import RunRequest
from gloveport.policy.egress import TRACE_PARENT
from gloveport.types import CallRecord, Outcome

_Before = tuple[Token[context.Context], Token[str | None]]


class RunTraces:
    """Makes a span of each run, below the span that is current when it begins, and below it one of each of its calls.

    The spans of calls are made from their records when the run ends: while it runs, traces cost nothing.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("gloveport", gloveport.__version__)

    def begun(self, request: RunRequest) -> OnEnd:
        """Start the span of a run."""
        about = {
            "gloveport.run.id": request.run,
            "gloveport.agent": request.agent,
            "gloveport.engine": request.options.engine,
            "gloveport.language": request.language,
            "gloveport.resumed": request.resumed is not None,
        }
        span = self._tracer.start_span("gloveport.run", attributes=about)
        # The MCP library names a span of its own below the current one in its requests; egress names the run.
        before = context.attach(trace.set_span_in_context(span)), TRACE_PARENT.set(_parent_of(span))
        return partial(self._ended, request, span, before)

    def _ended(self, request: RunRequest, span: Span, before: _Before, outcome: Outcome | None) -> None:
        context.detach(before[0])
        TRACE_PARENT.reset(before[1])
        end = time.time_ns()
        span.set_attribute("gloveport.status", "cancelled" if outcome is None else outcome.status)
        if outcome is not None and span.is_recording():
            if outcome.error is not None:
                ours = outcome.error.origin == "gloveport" and outcome.error.code in CODES
                span.set_attribute("error.type", outcome.error.code if ours else "other")
                span.set_status(StatusCode.ERROR)
            began = end - round(outcome.usage.wall_seconds * 1e9)  # the times of calls count from there
            past = frozenset[int]()
            if request.resumed is not None:
                past = frozenset(one.call.id for one in request.resumed.history.calls if one.reply is not None)
            for call in outcome.calls:
                if call.id not in past:
                    self._add_call(span, call, began, end)
        span.end(end)

    def _add_call(self, run: Span, call: CallRecord, began: int, end: int) -> None:
        start = min(began + round(call.started * 1e9), end)
        about = {"gloveport.call.id": call.id, "gloveport.tool": call.tool, "gloveport.status": call.status}
        below = trace.set_span_in_context(run)
        span = self._tracer.start_span("gloveport.call", below, attributes=about, start_time=start)
        if call.status == "failed":
            span.set_status(StatusCode.ERROR)
        span.end(end if call.seconds is None else min(start + round(call.seconds * 1e9), end))


def _parent_of(span: Span) -> str | None:
    """Return a span as the `traceparent` of the requests that its run sends; None for one without an SDK."""
    about = span.get_span_context()
    if not about.is_valid:
        return None
    return f"00-{about.trace_id:032x}-{about.span_id:016x}-{about.trace_flags:02x}"
