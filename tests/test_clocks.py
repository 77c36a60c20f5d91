"""No clock in a program shows how long something took, so that it can time neither the host nor other guests.

Threat S20. What remains: a program in CPython that goes below the language (ctypes) reads the true time (SECURITY.md).
"""

from __future__ import annotations

import pytest

from gloveport import Gloveport
from gloveport.types import Language

pytestmark = pytest.mark.integration

SPIN = {
    "javascript": "for (let n = 0, at = 0; at < 3e7; at++) n += at;",
    "python": "sum(range(10**6))",
}
CLOCKS: dict[tuple[str, Language], list[str]] = {
    ("deno", "javascript"): [
        "Date.now()",
        "+new Date()",
        "performance.now()",
        "performance.timeOrigin",
        "performance.mark('x').startTime",
        "new Event('x').timeStamp",
        "Number(process.hrtime.bigint())",
        "process.hrtime()[1]",
        "process.uptime()",
        "Number(Temporal.Now.instant().epochNanoseconds)",
        "new File([], 'x').lastModified",
    ],
    ("cpython", "python"): [
        "time.time()",
        "time.time_ns()",
        "time.monotonic()",
        "time.perf_counter()",
        "time.perf_counter_ns()",
        "time.process_time()",
        "time.thread_time()",
        "time.clock_gettime(time.CLOCK_MONOTONIC)",
        "datetime.datetime.now().timestamp()",
        "datetime.datetime.now(datetime.timezone.utc).timestamp()",
        "asyncio.get_running_loop().time()",
    ],
    ("monty", "python"): ["datetime.datetime.now().timestamp()"],
}


@pytest.mark.parametrize(("engine", "language"), CLOCKS, ids=lambda given: given)
async def test_a_clock_shows_nothing_of_what_was_done_between_two_readings(
    port: Gloveport, engine: str, language: Language
) -> None:
    clocks = CLOCKS[engine, language]
    if language == "javascript":
        body = "\n".join(
            f"try {{ const a = {clock}, b = {clock}; {SPIN[language]} const c = {clock}; out.push([b - a, c - b]); }} "
            "catch (error) { out.push(String(error)); }"
            for clock in clocks
        )
        code = f"const out = [];\n{body}\nreturn out;"
    else:
        modules = "import datetime\n" if engine == "monty" else "import time, datetime, asyncio\n"
        readings = "\n".join(
            f"a = {clock}\nb = {clock}\n{SPIN[language]}\nc = {clock}\nout.append([b - a, c - b])" for clock in clocks
        )
        code = f"{modules}out = []\n{readings}\nout"
    outcome = await port.run(code, language=language, engine=engine)
    assert outcome.error is None
    told = dict(zip(clocks, outcome.value, strict=True))
    # Each reading is a microsecond after the one before, whatever happens between; in their units: ns, µs, ms, s.
    odd = {clock: pair for clock, pair in told.items() if not isinstance(pair, str) and max(map(abs, pair)) > 2000}
    uneven = {
        clock: pair
        for clock, pair in told.items()
        if not isinstance(pair, str) and abs(pair[0] - pair[1]) > max(abs(pair[0]) * 0.5, _step(pair))
    }
    assert (odd, uneven) == ({}, {})


def _step(pair: list[float]) -> float:
    """Return the unit of a clock of whole milliseconds, which may pass from one to the next between any two readings."""
    return 1 if all(isinstance(one, int) for one in pair) else 2e-6


async def test_there_is_nothing_in_a_script_to_build_a_clock_of(port: Gloveport) -> None:
    names = [
        "SharedArrayBuffer",
        "Atomics",
        "Worker",
        "MessageChannel",
        "BroadcastChannel",
        "WeakRef",
        "FinalizationRegistry",
    ]
    names += ["WebAssembly", "EventSource", "WebSocket", "requestAnimationFrame", "PerformanceObserver", "Deno"]
    outcome = await port.run(f"return {names!r}.filter((name) => typeof globalThis[name] !== 'undefined')")
    assert outcome.value == []


async def test_a_timer_fires_at_its_time_by_the_program_s_own_clock(port: Gloveport) -> None:
    code = "const a = performance.now(); await new Promise((r) => setTimeout(r, 30)); return performance.now() - a"
    outcome = await port.run(code)
    assert outcome.value >= 29.9
