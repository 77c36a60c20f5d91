"""Sustained rate with fresh processes, 8 at once: our TypeScript runs beside bare Deno processes for the same program.

The floor starts one process per run with our flags and a minimal prelude, without a jail, and kills it afterwards. It starts
nothing in advance. `python -m benchmarks.sustained [slices] [seconds]` runs it alone.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks.engines import ENGINES, BareDeno, Engine
from benchmarks.processes import seconds_of
from benchmarks.sampling import Row
from gloveport import Gloveport

AT_ONCE = 8
SLICES, SLICE_SECONDS = 5, 4.0


@dataclass(frozen=True, slots=True)
class Slice:
    """Runs per second, and milliseconds of CPU time per run in this process and its descendants."""

    rate: float
    cpu: float


async def slice_of(run: Callable[[], Awaitable[object]], seconds: float) -> Slice:
    """Count the runs that end in some seconds while each ended run is replaced by a new one."""
    done = 0
    before, began = seconds_of(os.getpid()), time.perf_counter()

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() < began + seconds:
            await run()
            done += 1

    await asyncio.gather(*(repeat() for _ in range(AT_ONCE)))
    took = time.perf_counter() - began
    return Slice(done / took, (seconds_of(os.getpid()) - before) / done * 1e3)


def middle(slices: list[Slice]) -> Slice:
    """Return the slice with the median rate."""
    return sorted(slices, key=lambda one: one.rate)[len(slices) // 2]


async def rows(slices: int = SLICES, seconds: float = SLICE_SECONDS) -> list[Row]:
    """Return the rows for every engine that runs TypeScript."""
    return [row for engine in ENGINES if engine.language == "typescript" for row in await pair(engine, slices, seconds)]


async def pair(engine: Engine, slices: int, seconds: float) -> list[Row]:
    """Return the rows of one engine: rates and CPU time."""
    async with Gloveport() as port:
        expected = await engine.run(port)

        async def ours() -> None:
            assert await engine.run(port) == expected

        async def repeated() -> None:
            assert await engine.run(port, again=True) == expected

        async def floor() -> None:
            bare = BareDeno(cold=True)
            value = await bare.run()
            await bare.end()
            assert value == expected

        mine: list[Slice] = []
        again: list[Slice] = []
        least: list[Slice] = []
        for index in range(slices + 1):
            for run, found in ((ours, mine), (repeated, again), (floor, least)):
                await engine.settle(port)
                found.append(await slice_of(run, seconds if index else 1.0))
    one, same, bare = middle(mine[1:]), middle(again[1:]), middle(least[1:])
    name = f"sustained runs of 20 lines of TypeScript in {engine.name}, a fresh process each, {AT_ONCE} at once"
    return [
        (name, f"{one.rate:.1f} /s", f"{bare.rate:.1f} /s (Deno, spawned)", f"{one.rate / bare.rate:.2f} ×", "≥ 0.8 ×"),
        ("the same, when each run has the same text", f"{same.rate:.1f} /s", "", f"{same.rate / bare.rate:.2f} ×", ""),
        ("processor time of one of them", f"{one.cpu:.1f} ms", f"{bare.cpu:.1f} ms", f"{one.cpu / bare.cpu:.2f} ×", ""),
    ]


if __name__ == "__main__":
    given = [int(sys.argv[1])] if len(sys.argv) > 1 else []
    for line in asyncio.run(rows(*given, *map(float, sys.argv[2:3]))):
        print(" | ".join(line))
