"""`make bench` measures each row and its floor in turn and writes the table to benchmarks/results.md."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    auto_engine,
    beside_others,
    catalog,
    cpython,
    durable,
    egress,
    fetch,
    governance,
    graphql,
    history,
    idle,
    large_values,
    mcp,
    memory,
    monty,
    openapi,
    openapi_call,
    quickjs,
    search,
    sustained,
    workspace,
)
from benchmarks.bars import missed
from benchmarks.floor import Floor
from benchmarks.programs import PROGRAM_JS, PROGRAM_PY, PROGRAM_TS, unread
from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport
from gloveport.catalog import Catalog
from gloveport.prepare import check, prepare
from gloveport.sandbox.engines.registry import try_engines
from gloveport.sources.functions import functions
from gloveport.types import Language

CALLS = "let sum = 0; for (let i = 0; i < 2000; i++) sum += await tools.echo({value: i}); return sum"
PARALLEL = "return (await Promise.all(Array.from({length: 100}, (_, i) => tools.echo({value: i})))).length"


async def echo(value: int) -> int:
    """Return the value."""
    return value


def function(body: str) -> str:
    return f"async () => {{{body}\n}}"


async def settle(port: Gloveport) -> None:
    """Wait until the pool is full and quiet, so that starting replacements does not disturb a sample."""
    pool = port._pools.find(port._pools.options("javascript", None, port.limits))
    while len(pool._ready) < pool._size:  # noqa: ASYNC110 - the pool has no event for this
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.03)


async def whole_run(port: Gloveport, name: str, body: str, language: Language, rounds: int, *, again: bool = False) -> Row:
    """Return the row of a program whose text is new in each run, or with `again` has been read before."""
    expected = None

    async def ours() -> float:
        nonlocal expected
        await settle(port)
        text = body if again else unread(body, language)
        began = time.perf_counter()
        outcome = await port.run(text, language=language)
        seconds = time.perf_counter() - began
        assert outcome.ok, outcome.error
        expected = outcome.value
        return seconds

    async def floor() -> float:
        bare = await Floor().ready()
        await settle(port)
        began = time.perf_counter()
        result = await bare.run(function(body), language)
        seconds = time.perf_counter() - began
        assert expected is None or result == expected
        bare.end()
        return seconds

    mine, bare = await interleaved(rounds, ours, floor)
    ratio = median(mine) / median(bare)
    return name, f"{median(mine) * 1e3:.2f} ms", f"{median(bare) * 1e3:.2f} ms", f"{ratio:.2f} ×", "≤ 2.0 ×"


async def calls(port: Gloveport, name: str, body: str, *, count: int, rounds: int, bar: str) -> Row:
    async def ours() -> float:
        await settle(port)
        outcome = await port.run(body, language="javascript", limits={"max_calls": 100_000})
        assert outcome.ok, outcome.error
        first = min(call.started for call in outcome.calls)
        last = max(call.started + (call.seconds or 0) for call in outcome.calls)
        return (last - first) / count

    async def floor() -> float:
        bare = await Floor().ready()
        await settle(port)
        timed = f"const t0 = performance.now(); const r = await (async () => {{ {body} }})(); return performance.now() - t0"
        milliseconds = await bare.run(function(timed), "javascript")
        bare.end()
        return milliseconds / 1e3 / count

    mine, bare = await interleaved(rounds, ours, floor)
    ratio = median(mine) / median(bare)
    if count == 100:
        return name, f"{median(mine) * 1e5:.2f} ms", f"{median(bare) * 1e5:.2f} ms", f"{ratio:.2f} ×", bar
    return name, f"{median(mine) * 1e6:.0f} µs", f"{median(bare) * 1e6:.0f} µs", f"{ratio:.2f} ×", bar


async def kill_after_deadline(port: Gloveport) -> Row:
    late = []
    for _ in range(20):
        await settle(port)
        began = time.perf_counter()
        outcome = await port.run("while (true) {}", limits={"wall_seconds": 0.2})
        late.append(time.perf_counter() - began - 0.2)
        assert outcome.error and outcome.error.code == "time-limit"
    return "kill after the deadline, worst of 20", f"{max(late) * 1e3:.1f} ms", "", "", "≤ 250 ms"


def command(name: str, arguments: list[str], bar: str) -> Row:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gloveport.surfaces.cli.main", *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    bare = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.perf_counter() - began)
    return name, f"{min(times) * 1e3:.0f} ms", f"{min(bare) * 1e3:.0f} ms (python -c pass)", "", bar


def prepared(language: Language, text: str) -> list[Row]:
    """Measure the preparation of a program. The best of many samples is independent of the machine's load."""
    program, catalog = prepare(text, language=language), Catalog([functions([echo])])
    reading, checking = [], []
    for _ in range(200):
        began = time.perf_counter()
        prepare(text, language=language)
        between = time.perf_counter()
        check(program, catalog)
        reading.append(between - began)
        checking.append(time.perf_counter() - between)
    return [
        (f"prepare 20 lines of {language}", f"{min(reading) * 1e3:.2f} ms", "", "", ""),
        (f"check names and arguments of 20 lines of {language}", f"{min(checking) * 1e3:.2f} ms", "", "", "≤ 1 ms"),
    ]


def calibration() -> float:
    """Return the seconds for a fixed loop: the speed of this machine."""
    best = 9.0
    for _ in range(5):
        began = time.perf_counter()
        sum(range(5_000_000))
        best = min(best, time.perf_counter() - began)
    return best


async def measure(rounds: int) -> list[Row]:
    rows: list[Row] = []
    async with Gloveport(tools=[echo], spare=2) as port:
        rows.append(await whole_run(port, "run of 20 lines of JavaScript, p50", PROGRAM_JS, "javascript", rounds))
        rows.append(await whole_run(port, "run of 20 lines of TypeScript, p50", PROGRAM_TS, "typescript", rounds))
        name = "the same 20 lines of TypeScript again, p50"
        rows.append(await whole_run(port, name, PROGRAM_TS, "typescript", rounds, again=True))
        rows.append(
            await calls(port, "one call through the bridge, any core", CALLS, count=2000, rounds=rounds // 4, bar="≤ 2.0 ×")
        )
        rows.append(
            await calls(port, "100 parallel calls, any core", PARALLEL, count=100, rounds=rounds // 2, bar="≤ 5 ms")
        )
        rows.append(await kill_after_deadline(port))
    async with Gloveport(tools=[echo], spare=2, rules=governance.many_rules()) as port:
        rows.append(
            await calls(port, "one call with 500 rules, any core", CALLS, count=2000, rounds=rounds // 4, bar="≤ 2.0 ×")
        )
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    async with Gloveport(tools=[echo], spare=2) as port:
        rows.append(
            await calls(port, "one call through the bridge, one core", CALLS, count=2000, rounds=rounds // 4, bar="≤ 2.0 ×")
        )
        rows.append(
            await calls(port, "100 parallel calls, one core", PARALLEL, count=100, rounds=rounds // 2, bar="≤ 5 ms")
        )
    os.sched_setaffinity(0, cores)
    rows += await quickjs.rows(PROGRAM_JS, rounds)
    rows += await monty.rows(rounds)
    rows += await cpython.rows(rounds)
    rows += await idle.rows(max(3, rounds // 4))
    programs = await auto_engine.measure(max(3, rounds // 4))
    rows += auto_engine.rows(programs)
    rows += await sustained.rows()
    rows += await catalog.rows(rounds)
    rows += await search.rows()
    rows += await egress.rows(rounds)
    rows += await fetch.rows(max(3, rounds // 4))
    rows += await governance.rows(rounds)
    rows += await large_values.rows(max(3, rounds // 4))
    rows += await memory.rows()
    rows += history.rows(rounds)
    rows += await durable.rows(rounds)
    rows += await workspace.rows(rounds)
    rows += await openapi.rows(rounds)
    rows += await openapi_call.rows(rounds)
    rows += await graphql.rows(rounds)
    rows += await mcp.rows(rounds)
    rows += prepared("typescript", PROGRAM_TS) + prepared("python", PROGRAM_PY)
    rows.append(command("gloveport --help", ["--help"], "≤ 150 ms"))
    rows.append(command("first result of a cold `gloveport run`", ["run", "-e", "1 + 1"], "≤ 500 ms"))
    return rows


def table(rows: list[Row], loop_seconds: float, jails: str) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Ours and the floor (a bare engine that was started in advance: `benchmarks/floor.js` for Deno,",
        "`benchmarks/floor_cpython.py` and `benchmarks/floor_quickjs.py` for those two in the same jail) take turns in one run;",
        "the ratio of the medians is what counts, because absolute figures move with the machine.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores, calibration loop {loop_seconds * 1e3:.0f} ms; jails here: {jails}",
        "",
        "| what | ours | floor | ratio | bar |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "Bars that this run missed:", "", *(missed(rows) or ["- none"])]
    return "\n".join(lines) + "\n"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    jails = ", ".join(f"{engine.name} {engine.strength}" for engine in asyncio.run(try_engines()))
    text = table(asyncio.run(measure(rounds)), calibration(), jails)
    text += "\n" + beside_others.section(asyncio.run(beside_others.measure(rounds // 2)))
    Path(__file__).with_name("results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
