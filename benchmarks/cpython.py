"""The rows for Python, beside a bare CPython that is forked in advance in the same jail (`floor_cpython.py`)."""

from __future__ import annotations

import os

from benchmarks.forked import Bench, Kind, echo, with_floor
from benchmarks.sampling import Row
from gloveport import Gloveport
from gloveport.sandbox.engines.cpython.engine import ENGINE
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.launcher import Launch, Launcher

PROGRAM = """
import json
from collections import defaultdict

orders = [{"id": i, "total": (i * 37) % 101, "city": ["Oslo", "Rome", "Kyiv"][i % 3]} for i in range(40)]
by_city = defaultdict(lambda: {"count": 0, "total": 0, "largest": None})
for order in orders:
    entry = by_city[order["city"]]
    entry["count"] += 1
    entry["total"] += order["total"]
    if entry["largest"] is None or order["total"] > entry["largest"]["total"]:
        entry["largest"] = order
ranking = [{"city": city, "mean": entry["total"] / entry["count"], **entry} for city, entry in by_city.items()]
ranking.sort(key=lambda entry: -entry["total"])

def label(entry: dict) -> str:
    return f"{entry['city']:<6} {entry['total']:10.2f} {entry['count']}"

lines = [label(entry) for entry in ranking]
summary = {"best": ranking[0]["city"], "lines": lines, "checksum": len(json.dumps(ranking))}
summary["words"] = [word for line in lines for word in line.split()]
summary
"""
CALLS = "total = 0\nfor i in range(2000):\n    total += await tools.echo(value=i)\ntotal"
PARALLEL = "import asyncio\nlen(await asyncio.gather(*(tools.echo(value=i) for i in range(100))))"
KIND = Kind(
    "cpython",
    "python",
    "Python",
    lambda source: f"import time\nbegan = time.perf_counter()\n{source}\ntime.perf_counter() - began",
)


def floor_launch() -> Launch:
    """Return the launch of the floor."""
    return with_floor(ENGINE.launch(ProcessOptions("cpython")), "floor_cpython.py")


async def rows(rounds: int) -> list[Row]:
    """Return the rows for Python. The calls are also measured on one core."""
    made = await _measure(rounds, "any core", whole=True)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return made + await _measure(rounds, "one core", whole=False)
    finally:
        os.sched_setaffinity(0, cores)


async def _measure(rounds: int, where: str, *, whole: bool) -> list[Row]:
    launcher = Launcher(floor_launch())
    await launcher.start()
    try:
        async with Gloveport(tools=[echo], spare=2) as port:
            bench, made = Bench(KIND, port, launcher), list[Row]()
            if whole:
                made.append(await bench.whole_run("run of 20 lines of Python, p50", PROGRAM, rounds, "≤ 2.0 ×"))
                made.append(await bench.memory("≤ +2 MB"))
            return made + await bench.calls(where, CALLS, PARALLEL, rounds)
    finally:
        await launcher.close()
