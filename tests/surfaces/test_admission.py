"""Callers share the places of a server: one that fills it leaves places and turns to the others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack

import pytest

from gloveport.errors import GloveportError
from gloveport.surfaces.http.admission import MAX_SOCKETS, Admission


async def test_one_caller_leaves_places_to_the_others() -> None:
    admission = Admission(4, 512)
    with ExitStack() as held:
        most = 0
        with pytest.raises(GloveportError, match="runs of greedy") as refused:
            while True:
                admission.check("greedy")
                held.enter_context(admission.request("greedy"))
                most += 1
        assert refused.value.code == "busy"
        assert 500 <= most < admission.max_runs
        for other in range(admission.max_runs - most):
            admission.check(f"other {other}")
            held.enter_context(admission.request(f"other {other}"))
        with pytest.raises(GloveportError, match="too many runs are waiting"):
            admission.check("one too many")
    for caller in ("greedy", "one too many"):
        admission.check(caller)


async def test_one_caller_leaves_websockets_to_the_others() -> None:
    admission = Admission()
    with ExitStack() as held:
        for _ in range(MAX_SOCKETS - 16):
            admission.check("greedy", is_socket=True)
            held.enter_context(admission.socket("greedy"))
        with pytest.raises(GloveportError, match="too many WebSockets of greedy are open") as refused:
            admission.check("greedy", is_socket=True)
        assert refused.value.code == "busy"
        admission.check("greedy")
        for other in range(16):
            admission.check(f"other {other}", is_socket=True)
            held.enter_context(admission.socket(f"other {other}"))
        with pytest.raises(GloveportError, match="too many WebSockets are open"):
            admission.check("one too many", is_socket=True)
    admission.check("greedy", is_socket=True)


@pytest.mark.parametrize(("at_once", "waiting", "most"), [(1, 0, 1), (2, 0, 2), (1, 1, 2), (2, 20, 21)])
def test_a_small_server_keeps_one_place_where_some_runs_may_wait(at_once: int, waiting: int, most: int) -> None:
    admission = Admission(at_once, waiting)
    with ExitStack() as held:
        for _ in range(most):
            admission.check("greedy")
            held.enter_context(admission.request("greedy"))
        with pytest.raises(GloveportError, match="waiting"):
            admission.check("greedy")
        if waiting >= 8:
            admission.check("other")


async def test_slots_go_to_callers_in_turn() -> None:
    admission = Admission(1, 100)
    order: list[str] = []

    async def run(caller: str) -> None:
        async with admission.run_slot(caller):
            order.append(caller)

    async with AsyncExitStack() as held, asyncio.TaskGroup() as runs:
        await held.enter_async_context(admission.run_slot("first"))
        for caller in ["greedy"] * 5 + ["a", "b", "a"]:
            runs.create_task(run(caller))
        await asyncio.sleep(0)
        await held.aclose()
    assert order == ["greedy", "a", "b", "greedy", "a", "greedy", "greedy", "greedy"]
    assert admission.runs == 0


async def test_a_run_that_is_cancelled_while_it_waits_leaves_nothing_behind() -> None:
    admission = Admission(1, 100)

    async def run() -> None:
        async with admission.run_slot("caller"):
            pass

    async with admission.run_slot("first"):
        waiting = [asyncio.create_task(run()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.sleep(0)
        assert admission.runs == 2
    waiting[2].cancel()  # it has just got its slot
    await asyncio.gather(*waiting, return_exceptions=True)
    async with asyncio.timeout(5), admission.run_slot("next"):
        assert admission.runs == 1
    await asyncio.wait_for(admission.wait_until_idle(), 5)
