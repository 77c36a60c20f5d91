"""The rows for Monty, beside a bare worker (`floor_monty.py`)."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from benchmarks.floor_monty import MontyFloor
from benchmarks.programs import unread
from gloveport import Gloveport

PROGRAM = """
orders = [{"id": i, "total": (i * 37) % 101, "city": ["Oslo", "Rome", "Kyiv"][i % 3]} for i in range(40)]
by_city = {}
for order in orders:
    entry = by_city.setdefault(order["city"], {"count": 0, "total": 0, "largest": None})
    entry["count"] += 1
    entry["total"] += order["total"]
    if entry["largest"] is None or order["total"] > entry["largest"]["total"]:
        entry["largest"] = order
ranking = sorted(
    [{"city": city, "mean": entry["total"] / entry["count"], **entry} for city, entry in by_city.items()],
    key=lambda entry: -entry["total"],
)

def label(entry):
    money = f"{entry['total']:.2f}"
    return f"{entry['city']:6} {money:>10} {entry['count']}"

lines = [label(entry) for entry in ranking]
summary = {"best": ranking[0]["city"], "lines": lines, "checksum": len("".join(lines))}
summary["words"] = [word for line in summary["lines"] for word in line.split()]
return summary
""".strip()

CALLS = """
total = 0
for i in range(1000):
    total += await tools.echo(value=i)
return total
""".strip()

Row = tuple[str, str, str, str, str]


async def echo(value: int) -> int:
    """Return the value."""
    return value


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this engine."""
    async with Gloveport(tools=[echo], spare=2) as port:
        return [
            await _row(port, "run of 20 lines of Python in monty, p50", PROGRAM, rounds),
            await _row(port, "one call through the bridge in monty", CALLS, rounds // 4, calls=1000),
            await _start(port),
        ]


async def _row(port: Gloveport, name: str, code: str, rounds: int, calls: int = 0) -> Row:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(rounds + 1):
        await _settle(port)
        text = unread(code, "python")
        began = time.perf_counter()
        outcome = await port.run(text, language="python", engine="monty")
        ours.append(time.perf_counter() - began)
        assert outcome.ok, outcome.error
        floor = MontyFloor()
        await _settle(port)
        result, seconds = floor.run(code)
        bare.append(seconds)
        floor.end()
        assert result == outcome.value
    mine, least = statistics.median(ours[1:]), statistics.median(bare[1:])
    ratio = f"{mine / least:.2f} ×"
    if calls:
        return name, f"{mine / calls * 1e6:.0f} µs", f"{least / calls * 1e6:.0f} µs", ratio, ""
    return name, f"{mine * 1e3:.2f} ms", f"{least * 1e3:.2f} ms", ratio, "≤ 2.0 ×"


async def _start(port: Gloveport) -> Row:
    """Measure the start of a worker until it waits for a program, and its private memory then."""
    pool: Any = port._pools.find(port._pools.options("python", "monty", port.limits))
    seconds, private = [], []
    for _ in range(10):
        began = time.perf_counter()
        worker = await pool._start(pool._launcher)
        seconds.append(time.perf_counter() - began)
        private.append(_private_mb(worker.guest.pid))
        await worker.end()
    name = "a monty worker, from spawn to ready; its private memory"
    return name, f"{statistics.median(seconds) * 1e3:.1f} ms; {statistics.median(private):.1f} MB", "", "", ""


def _private_mb(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        held = [line.split() for line in file if line.startswith("Private_")]
    return sum(int(words[1]) for words in held) / 1024


async def _settle(port: Gloveport) -> None:
    """Wait until the pool is full and quiet, so that starting replacements does not disturb a sample."""
    pool = port._pools.find(port._pools.options("python", "monty", port.limits))
    while len(pool._ready) < pool._size:
        pool.refill()
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.03)
