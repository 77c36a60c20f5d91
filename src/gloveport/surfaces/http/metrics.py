"""Metrics in the text format of Prometheus: what came of runs and calls, and what the server has to do now.

No label holds a text that a program, an agent or a tool wrote: engines, languages, statuses, codes and the names of
sources are known beforehand, and whatever else comes is `other`. So no program can make the number of series grow.
"""

from __future__ import annotations

import asyncio
import platform
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from starlette.responses import Response

import gloveport
from gloveport.errors import CODES
from gloveport.host.port import Gloveport
from gloveport.host.runs.observers import OnEnd
from gloveport.host.runs.run_request import RunRequest
from gloveport.surfaces.http import METRICS_PATH
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api.endpoint import MONITORS, ApiCall, ApiEndpoint
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.types import Outcome

MEDIA = "text/plain"
BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
LAG_SAMPLE_SECONDS = 0.01
OTHER = "other"


class Counter:
    """A number for each combination of labels, which only grows."""

    kind = "counter"

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name, self.about, self._labels = name, about, labels
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Add to the number with these labels."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def samples(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        for labels, value in self._values.items():
            yield _sample(self.name, dict(zip(self._labels, labels, strict=True)), value)


class Gauge(Counter):
    """A number for each combination of labels, as it is now."""

    kind = "gauge"


class Histogram:
    """How many durations fell below each bound, for each value of one label."""

    kind = "histogram"

    def __init__(self, name: str, about: str, label: str) -> None:
        self.name, self.about, self._label = name, about, label
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, seconds: float, label: str) -> None:
        """Count a duration."""
        counts = self._counts.setdefault(label, [0] * (len(BUCKET_SECONDS) + 1))
        counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self._sums[label] = self._sums.get(label, 0) + seconds

    def samples(self) -> Iterator[str]:
        """Yield the lines of the text format. Each bucket includes the smaller ones."""
        for label, counts in self._counts.items():
            total = 0
            for bound, count in zip((*map(str, BUCKET_SECONDS), "+Inf"), counts, strict=True):
                total += count
                yield _sample(f"{self.name}_bucket", {self._label: label, "le": bound}, total)
            yield _sample(f"{self.name}_sum", {self._label: label}, self._sums[label])
            yield _sample(f"{self.name}_count", {self._label: label}, total)


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(families: Iterable[Counter | Histogram]) -> str:
    """Return metrics in the text format of Prometheus, version 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}", *family.samples()]
    return "\n".join(lines) + "\n"


class Metrics:
    """Counts the runs of a port as they end. What is so only now is looked up when somebody asks."""

    def __init__(self, port: Gloveport, admission: Admission, store: StoreReader) -> None:
        self._port, self._admission, self._store = port, admission, store
        self._runs = Counter("gloveport_runs_total", "Runs that have ended.", "status", "engine", "language")
        self._errors = Counter("gloveport_run_errors_total", "Runs that failed, by error code.", "code")
        self._run_seconds = Histogram("gloveport_run_duration_seconds", "Duration of runs.", "engine")
        self._cpu = Counter("gloveport_run_cpu_seconds_total", "Processor time of sandboxes.", "engine")
        self._calls = Counter("gloveport_calls_total", "Calls of runs that have ended.", "source", "status")
        self._call_seconds = Histogram("gloveport_call_duration_seconds", "Duration of calls.", "source")
        port.observers.add(self)

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoint of the metrics."""
        answers = {200: {"type": "string"}}
        return [ApiEndpoint("GET", METRICS_PATH, MONITORS, "Show metrics.", self._show, answers, media=MEDIA)]

    def begun(self, request: RunRequest) -> OnEnd:
        """Count the run when it ends."""
        return lambda outcome: self._count(request, outcome)

    def _count(self, request: RunRequest, outcome: Outcome | None) -> None:
        engine = request.options.engine
        self._runs.add(1, "cancelled" if outcome is None else outcome.status, engine, request.language)
        if outcome is None:
            return
        self._run_seconds.observe(outcome.usage.wall_seconds, engine)
        self._cpu.add(outcome.usage.cpu_seconds, engine)
        if outcome.error is not None:
            known = outcome.error.origin == "gloveport" and outcome.error.code in CODES
            self._errors.add(1, outcome.error.code if known else OTHER)
        for call in outcome.calls:
            tool = self._port.catalog.find(call.tool)
            source = tool.source if tool is not None else OTHER if request.tools is None else "caller"
            self._calls.add(1, source, call.status)
            if call.seconds is not None:
                self._call_seconds.observe(call.seconds, source)

    async def _show(self, call: ApiCall) -> Response:
        counted = (self._runs, self._errors, self._run_seconds, self._cpu, self._calls, self._call_seconds)
        text = exposition([*counted, *await self._now()])
        return Response(text, headers={"Cache-Control": "no-store"}, media_type=f"{MEDIA}; version=0.0.4")

    async def _now(self) -> list[Counter]:
        approvals = Gauge("gloveport_approvals_waiting", "Calls that wait for a person, of all hosts on the store.")
        approvals.add(await self._waiting())
        admitted = Gauge("gloveport_runs_admitted", "Runs that run, or wait for a slot.")
        admitted.add(self._admission.runs)
        most = Gauge("gloveport_runs_admitted_limit", "Runs that are admitted at most.")
        most.add(self._admission.max_runs)
        sandboxes = Gauge("gloveport_sandboxes", "Sandboxes in the pools, and runs that want one.", "engine", "state")
        for engine, states in self._port.sandboxes.states():
            for state, count in states.items():
                sandboxes.add(count, engine, state)
        broken = Gauge("gloveport_sources_broken", "Sources that could not be opened.")
        broken.add(sum(problem.broken for problem in self._port.problems))
        lag = Gauge("gloveport_event_loop_lag_seconds", "Delay of a timer of the event loop, measured for this answer.")
        lag.add(await _lag())
        build = Gauge("gloveport_build_info", "The version of Gloveport and of Python.", "version", "python")
        build.add(1, gloveport.__version__, platform.python_version())
        return [approvals, admitted, most, sandboxes, broken, lag, build]

    async def _waiting(self) -> int:
        if self._port.store_path is None:
            return 0  # without a store, a person is asked in code or in the terminal
        return await self._store.approvals(lambda shelf: len(shelf.waiting()))


async def _lag() -> float:
    loop = asyncio.get_running_loop()
    due = loop.time() + LAG_SAMPLE_SECONDS
    await asyncio.sleep(LAG_SAMPLE_SECONDS)
    return max(0.0, loop.time() - due)
