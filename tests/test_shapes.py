"""Shapes of spin and of memory bomb, on every engine: each is ended by its limit, its process is gone, and the host has
neither grown nor stood still (threats S11 and S12)."""

from __future__ import annotations

import asyncio

import pytest

from gloveport import Gloveport, Outcome
from tests import shapes
from tests.watching import MAX_GROWTH_BYTES, watching

AT_ONCE = 3
MEMORY_MB = 96
ENGINES = {  # engine: its language, spins, bombs, and the error that an engine without memory may end a program with
    "deno": ("typescript", shapes.SCRIPT_SPINS, shapes.SCRIPT_BOMBS, "RangeError"),
    "quickjs": ("typescript", shapes.QUICKJS_SPINS, shapes.QUICKJS_BOMBS, "RangeError"),
    "cpython": ("python", shapes.PYTHON_SPINS, shapes.PYTHON_BOMBS, "OSError"),
    "monty": ("python", shapes.MONTY_SPINS, shapes.MONTY_BOMBS, "MemoryError"),
}

each = pytest.mark.parametrize("engine", ENGINES)


async def run_each(
    port: Gloveport, engine: str, programs: dict[str, str], at_once: int, **limits: float
) -> dict[str, Outcome]:
    room = asyncio.Semaphore(at_once)

    async def one(name: str) -> tuple[str, Outcome]:
        async with room:
            return name, await port.run(programs[name], language=ENGINES[engine][0], engine=engine, limits=limits)

    return dict(await asyncio.gather(*map(one, programs)))


def codes(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: "ok" if outcome.error is None else outcome.error.code for name, outcome in outcomes.items()}


@each
async def test_every_spin_is_ended_in_time_and_its_process_is_gone(port: Gloveport, engine: str) -> None:
    spins = ENGINES[engine][1]
    async with watching() as watch:
        outcomes = await run_each(port, engine, spins, len(spins), wall_seconds=2, cpu_seconds=60, max_calls=10**6)
        gone = await watch.all_gone()
    assert codes(outcomes) == dict.fromkeys(spins, "time-limit")
    assert (len(watch.pids), gone) == (len(spins), True)
    assert watch.growth < MAX_GROWTH_BYTES


@each
async def test_every_memory_bomb_is_capped_and_the_host_does_not_grow(port: Gloveport, engine: str) -> None:
    _, _, bombs, failure = ENGINES[engine]
    async with watching() as watch:
        outcomes = await run_each(port, engine, bombs, AT_ONCE, memory_mb=MEMORY_MB, cpu_seconds=60, wall_seconds=600)
        gone = await watch.all_gone()
    ends = {name: (outcome.error.code, outcome.error.type) for name, outcome in outcomes.items() if outcome.error}
    wrong = {name: end for name, end in ends.items() if end[0] != "memory-limit" and end != ("program-failed", failure)}
    assert (len(ends), wrong) == (len(bombs), {})
    assert (len(watch.pids), gone) == (len(bombs), True)
    assert max(outcome.usage.memory_peak_mb for outcome in outcomes.values()) < MEMORY_MB * 1.1 + 120
    assert watch.growth < MAX_GROWTH_BYTES


def test_there_are_as_many_shapes_as_are_promised() -> None:
    for _, spins, bombs, _ in ENGINES.values():
        assert len(set(spins.values())) >= 15
        assert len(set(bombs.values())) >= 12
