"""A coroutine that is started at once keeps everything that a task promises."""

import asyncio
import contextvars

import pytest

from gloveport.sandbox.eager import Starter

mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")


@pytest.fixture
async def starter():
    made = Starter(asyncio.get_running_loop())
    yield made
    made.close()


async def test_a_coroutine_that_never_waits_ends_at_once(starter: Starter) -> None:
    seen: list[int] = []

    async def quick(value: int) -> None:
        seen.append(value)

    assert [starter.start(quick(index)) for index in range(3)] == [None, None, None]
    assert seen == [0, 1, 2]


async def test_one_that_waits_goes_on_as_a_task(starter: Starter) -> None:
    gate = asyncio.Event()
    seen: list[str] = []

    async def slow() -> None:
        seen.append("begun")
        await gate.wait()
        await asyncio.sleep(0)
        seen.append("ended")

    tasks = [starter.start(slow()), starter.start(slow())]
    assert seen == ["begun", "begun"]
    gate.set()
    for task in tasks:
        assert task is not None
        await task
    assert seen == ["begun", "begun", "ended", "ended"]


async def test_the_current_task_is_its_own_from_the_first_step_on(starter: Starter) -> None:
    seen: list[asyncio.Task[object] | None] = []

    async def look() -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    me = asyncio.current_task()
    task = starter.start(look())
    assert asyncio.current_task() is me
    assert task is not None
    await task
    assert seen == [task, task]
    assert task is not me


async def test_a_timeout_inside_cancels_only_itself(starter: Starter) -> None:
    seen: list[str] = []

    async def bounded() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timed out")

    task = starter.start(bounded())
    assert task is not None
    await task
    assert seen == ["timed out"]


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_it_can_be_cancelled_at_any_moment(starter: Starter, turns: int) -> None:
    seen: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    await asyncio.sleep(0)
    task = starter.start(hang())
    assert task is not None
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_context_variables_stay_in_the_call_and_survive_its_waits(starter: Starter) -> None:
    seen: list[str] = []

    async def setting() -> None:
        seen.append(mark.get())
        mark.set("mine")

    async def keeping() -> None:
        seen.append(mark.get())
        mark.set("kept")
        await asyncio.sleep(0)
        seen.append(mark.get())

    assert starter.start(setting()) is None
    task = starter.start(keeping())
    assert task is not None
    await task
    assert starter.start(setting()) is None
    assert seen == ["none", "none", "kept", "none"]
    assert mark.get() == "none"


async def test_an_error_in_the_first_step_is_raised_and_the_next_start_works(starter: Starter) -> None:
    async def broken() -> None:
        raise ValueError("first step")

    async def fine() -> None:
        await asyncio.sleep(0)

    with pytest.raises(ValueError, match="first step"):
        starter.start(broken())
    task = starter.start(fine())
    assert task is not None
    await task


async def test_a_first_step_that_cancels_its_own_task_does_not_harm_the_next(starter: Starter) -> None:
    async def odd() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def fine() -> None:
        await asyncio.sleep(0)

    assert starter.start(odd()) is None
    task = starter.start(fine())
    assert task is not None
    await task
