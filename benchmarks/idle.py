"""A run after some idle seconds, beside a bare engine that has been idle as long.

`python -m benchmarks.idle [rounds] [engine …]` runs it alone.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack

from benchmarks.engines import ENGINES, Engine
from benchmarks.sampling import Row, interleaved, median, p95
from gloveport import Gloveport

IDLE_SECONDS = 3.0


async def row(engine: Engine, rounds: int) -> Row:
    """Measure p50 and p95 of one engine and its floor in turn, each after its own idle time."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(Gloveport())
        bare = await engine.bare(stack)
        expected = await engine.run(port)

        async def ours() -> float:
            await engine.settle(port)
            await asyncio.sleep(IDLE_SECONDS)
            began = time.perf_counter()
            value = await engine.run(port)
            seconds = time.perf_counter() - began
            assert value == expected
            return seconds

        async def floor() -> float:
            waiting = await bare()
            await engine.settle(port)
            await asyncio.sleep(IDLE_SECONDS)
            began = time.perf_counter()
            value = await waiting.run()
            seconds = time.perf_counter() - began
            await waiting.end()
            assert value == expected
            return seconds

        mine, least = await interleaved(rounds, ours, floor)
    name = f"20 lines of {engine.language} in {engine.name} after {IDLE_SECONDS:.0f} s of idleness, p50 (p95)"
    told = [f"{median(times) * 1e3:.2f} ms ({p95(times) * 1e3:.2f})" for times in (mine, least)]
    return name, *told, f"{median(mine) / median(least):.2f} ×", "≤ 2.0 ×"


async def rows(rounds: int, names: list[str] | None = None) -> list[Row]:
    """Return the rows of this module."""
    return [await row(engine, rounds) for engine in ENGINES if not names or engine.name in names]


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for line in asyncio.run(rows(count, sys.argv[2:])):
        print(" | ".join(line))
