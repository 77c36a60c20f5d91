"""A coroutine that is started at once keeps all guarantees of a task."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from gloveport.sandbox.eager import EagerTaskStarter

Start = Callable[[Coroutine[Any, Any, None]], Coroutine[Any, Any, asyncio.Task[Any] | None]]

mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    loop = asyncio.get_running_loop()
    starter = EagerTaskStarter(loop)

    async def from_a_callback(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[Any] | None:
        done: asyncio.Future[asyncio.Task[Any] | None] = loop.create_future()

        def callback() -> None:
            try:
                done.set_result(starter.start(coroutine))
            except ValueError as error:
                done.set_exception(error)

        loop.call_soon(callback)
        return await done

    yield from_a_callback
    starter.close()


async def test_a_coroutine_that_never_waits_ends_at_once(start: Start) -> None:
    seen: list[int] = []

    async def quick(value: int) -> None:
        seen.append(value)

    assert [await start(quick(index)) for index in range(3)] == [None, None, None]
    assert seen == [0, 1, 2]


async def test_one_that_starts_nothing_has_no_task() -> None:
    before = asyncio.all_tasks()
    starter = EagerTaskStarter(asyncio.get_running_loop())
    assert asyncio.all_tasks() == before
    starter.close()


async def test_one_that_waits_goes_on_as_a_task(start: Start) -> None:
    gate = asyncio.Event()
    seen: list[str] = []

    async def slow() -> None:
        seen.append("begun")
        await gate.wait()
        await asyncio.sleep(0)
        seen.append("ended")

    tasks = [await start(slow()), await start(slow())]
    assert seen == ["begun", "begun"]
    gate.set()
    for task in tasks:
        assert task is not None
        await task
    assert seen == ["begun", "begun", "ended", "ended"]


async def test_the_current_task_is_its_own_from_the_first_step_on(start: Start) -> None:
    seen: list[asyncio.Task[object] | None] = []

    async def look() -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    me = asyncio.current_task()
    task = await start(look())
    assert asyncio.current_task() is me
    assert task is not None
    await task
    assert seen == [task, task]
    assert task is not me


async def test_a_timeout_inside_cancels_only_itself(start: Start) -> None:
    seen: list[str] = []

    async def bounded() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timed out")

    task = await start(bounded())
    assert task is not None
    await task
    assert seen == ["timed out"]


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_it_can_be_cancelled_at_any_moment(start: Start, turns: int) -> None:
    seen: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    await asyncio.sleep(0)
    task = await start(hang())
    assert task is not None
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_context_variables_stay_in_the_call_and_survive_its_waits(start: Start) -> None:
    seen: list[str] = []

    async def setting() -> None:
        seen.append(mark.get())
        mark.set("mine")

    async def keeping() -> None:
        seen.append(mark.get())
        mark.set("kept")
        await asyncio.sleep(0)
        seen.append(mark.get())

    assert await start(setting()) is None
    task = await start(keeping())
    assert task is not None
    await task
    assert await start(setting()) is None
    assert seen == ["none", "none", "kept", "none"]
    assert mark.get() == "none"


async def test_an_error_in_the_first_step_is_raised_and_the_next_start_works(start: Start) -> None:
    async def broken() -> None:
        raise ValueError("first step")

    async def fine() -> None:
        await asyncio.sleep(0)

    with pytest.raises(ValueError, match="first step"):
        await start(broken())
    task = await start(fine())
    assert task is not None
    await task


async def test_a_first_step_that_cancels_its_own_task_does_not_harm_the_next(start: Start) -> None:
    async def odd() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def fine() -> None:
        await asyncio.sleep(0)

    assert await start(odd()) is None
    task = await start(fine())
    assert task is not None
    await task
