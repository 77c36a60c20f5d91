"""Concurrent calls: order, limits, cancellation and the end of a run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from gloveport.bridge import RunBridge
from gloveport.errors import ToolError
from gloveport.types import ToolCall

from .support import DEADLINE, call, port

pytestmark = pytest.mark.timeout(20)


class Gates:
    """A tool whose calls start, wait for their gate and end on command."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.cancelled: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}

    async def wait(self, n: int) -> int:
        self.started.append(n)
        try:
            await self.gates.setdefault(n, asyncio.Event()).wait()
        except asyncio.CancelledError:
            self.cancelled.append(n)
            raise
        return n


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def begin(run: RunBridge, n: int, name: str = "wait") -> asyncio.Task[Any]:
    return asyncio.create_task(run.call(ToolCall(n, name, [n])))


async def test_calls_above_the_limit_wait_and_start_in_the_order_they_came() -> None:
    gates = Gates()
    run = port(gates.wait, max_concurrent_calls=2)
    tasks = [begin(run, n) for n in range(6)]
    await settle()
    assert gates.started == [0, 1]
    assert len(run.records) == 2
    for n in (1, 0, 2, 3, 4, 5):
        gates.gates[n].set()
        await settle()
        assert len(gates.started) - sum(gate.is_set() for gate in gates.gates.values()) <= 2
    assert gates.started == [0, 1, 2, 3, 4, 5]
    assert await asyncio.gather(*tasks) == list(range(6))
    assert [record.id for record in run.records] == [0, 1, 2, 3, 4, 5]


async def test_a_call_that_is_cancelled_while_it_waits_gives_its_turn_to_the_next() -> None:
    gates = Gates()
    run = port(gates.wait, max_concurrent_calls=1)
    tasks = [begin(run, n) for n in range(4)]
    await settle()
    tasks[1].cancel()
    gates.gates[0].set()
    await settle()
    assert gates.started == [0, 2]
    gates.gates[2].set()
    tasks[3].cancel()  # at the moment when it gets its slot
    await settle()
    last = begin(run, 4)
    await settle()
    gates.gates[4].set()
    assert await last == 4
    assert tasks[1].cancelled()


async def test_a_failing_call_frees_its_slot() -> None:
    async def fails(n: int) -> None:
        raise ValueError(n)

    run = port(fails, max_concurrent_calls=1)
    results = await asyncio.gather(*(begin(run, n, "fails") for n in range(50)), return_exceptions=True)
    assert all(isinstance(result, ToolError) for result in results)


async def test_cancelling_a_call_reaches_into_the_function() -> None:
    gates = Gates()
    run = port(gates.wait)
    task = begin(run, 1)
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gates.cancelled == [1]
    assert run.records[0].status == "failed"


async def test_closing_ends_what_runs_and_what_waits_and_marks_nothing_as_ok() -> None:
    gates = Gates()
    run = port(gates.wait, max_concurrent_calls=2)
    tasks = [begin(run, n) for n in range(4)]
    await settle()
    run.close()
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [getattr(result, "code", result) for result in results] == ["cancelled"] * 4
    assert gates.cancelled == [0, 1]
    assert [record.status for record in run.records] == ["running", "running"]
    with pytest.raises(ToolError) as late:
        await call(run, "wait", 9)
    assert late.value.code == "cancelled"
    run.close()


async def test_a_late_answer_is_dropped() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        begun.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    told: list[tuple[str, str]] = []
    run = port(stubborn, on_call=lambda kind, record: told.append((kind, record.status)))
    task = asyncio.create_task(run.call(ToolCall(1, "stubborn", [])))
    await begun.wait()
    run.close()  # returns although the function does not
    gate.set()
    with pytest.raises(ToolError) as error:
        await task
    assert error.value.code == "cancelled"
    assert run.records[0].status == "running"
    assert told == [("call-started", "running")]


async def test_a_blocking_function_that_was_given_up_stays_running_in_its_record() -> None:
    gate, begun = threading.Event(), threading.Event()

    def blocks() -> None:
        begun.set()
        gate.wait(DEADLINE)

    run = port(blocks)
    task = asyncio.create_task(run.call(ToolCall(1, "blocks", [])))
    await asyncio.to_thread(begun.wait, DEADLINE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run.close()
    gate.set()
    record = run.records[0]
    assert (record.status, record.seconds, record.error) == ("running", None, None)


async def test_a_blocking_function_does_not_hold_up_the_end() -> None:
    gate, begun = threading.Event(), threading.Event()

    def blocks() -> None:
        begun.set()
        gate.wait(DEADLINE)

    run = port(blocks)
    task = asyncio.create_task(run.call(ToolCall(1, "blocks", [])))
    await asyncio.to_thread(begun.wait, DEADLINE)
    run.close()
    gate.set()
    with pytest.raises(ToolError):
        await task


async def test_a_tool_that_cancels_itself_has_failed_and_the_caller_is_not_cancelled() -> None:
    async def cancels_itself(wait: bool) -> None:
        if wait:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    run = port(cancels_itself)
    for wait in (True, False):
        with pytest.raises(ToolError) as error:
            await call(run, "cancels_itself", wait)
        assert error.value.code == "tool-failed"


async def test_a_thousand_calls_at_once_all_end() -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    run = port(work, max_concurrent_calls=64)
    assert await asyncio.gather(*(begin(run, n, "work") for n in range(1000))) == list(range(1000))
    assert {record.status for record in run.records} == {"ok"}
