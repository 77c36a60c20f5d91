"""Tasks run in jailed processes: within a budget, one agent in a process, and nothing that they say is believed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from gloveport.errors import GloveportError, SandboxError, TooComplexError
from gloveport.host import program_reader
from gloveport.host.definition_tasks import COMPILERS
from gloveport.host.program_reader import ProgramReader
from gloveport.sandbox.tasks.launch import task_launch
from gloveport.sandbox.tasks.pool import MAX_IDLE_PROCESSES, TaskPool
from gloveport.sandbox.tasks.result_cache import MAX_CACHED_BYTES, MAX_ENTRY_BYTES, ResultCache
from gloveport.sandbox.tasks.task_process import TaskBudget, TaskProcess

pytestmark = pytest.mark.integration

MODULE = "tests.sandbox.tasks.programs"
NAMES = ("echo", "count", "ask_back", "spin", "allocate", "recurse", "die", "fail", "flood", "reach_out")
BUDGET = TaskBudget(cpu_seconds=0.5, cpu_seconds_per_mib=0, memory_mb=64, max_result_bytes=1 << 20)


def name_of(task: str) -> str:
    return f"{MODULE}:{task}"


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[TaskPool]:
    tasks = TaskPool(lambda: task_launch([*map(name_of, NAMES)], ["tests"]), BUDGET, minimum="kernel", spare=1)
    yield tasks
    await tasks.close()


async def test_a_task_yields_what_it_was_given(pool: TaskPool) -> None:
    parts = [b"", b"a", bytes(range(256)) * 1000]
    assert await pool.run(name_of("echo"), parts) == parts


async def test_a_task_may_ask_the_host(pool: TaskPool) -> None:
    async def answer(question: bytes) -> bytes | None:
        return question.upper() if question != b"b" else None

    assert await pool.run(name_of("ask_back"), [b"a", b"b"], answer=answer) == [b"A", b"nothing"]


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("spin", "reading it takes too much CPU time"),
        ("allocate", "memory"),
        ("recurse", "it is nested too deeply, or takes too much memory to read"),
        ("die", "reading it makes the parser fail"),
        ("flood", "reading it"),
    ],
)
async def test_a_task_over_its_budget_is_killed_and_the_next_one_works(pool: TaskPool, task: str, problem: str) -> None:
    with pytest.raises(TooComplexError, match=problem):
        await pool.run_for("agent", name_of(task), [])
    assert await pool.run_for("agent", name_of("echo"), [b"a"]) == [b"a"]


async def kill(process: TaskProcess) -> None:
    os.kill(process.worker.guest.pid, signal.SIGKILL)
    await process.worker.guest.wait()


async def test_a_process_that_somebody_kills_is_no_fault_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, send = ProgramReader("kernel"), TaskProcess._send

    async def kill_and_send(self: TaskProcess, task: str, parts: Sequence[bytes]) -> None:
        await kill(self)
        await send(self, task, parts)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(TaskProcess, "_send", kill_and_send)
            with pytest.raises(SandboxError, match="was killed") as caught:
                await reader.prepare("1 + 1", language="python", max_code_bytes=1000, agent="default")
        assert caught.value.code == "sandbox-crashed"
        assert (await reader.prepare("1 + 2", language="python", max_code_bytes=1000, agent="default")).code == "1 + 2"
        (idle,) = reader.tasks._idle.values()
        await kill(idle[0])
        assert (await reader.prepare("1 + 3", language="python", max_code_bytes=1000, agent="default")).code == "1 + 3"
    finally:
        await reader.tasks.close()


async def test_a_task_reaches_no_file_no_network_and_no_process(pool: TaskPool) -> None:
    assert await pool.run(name_of("reach_out"), []) == []


async def test_a_defect_is_logged_and_shows_nothing(pool: TaskPool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(SandboxError) as caught:
        await pool.run(name_of("fail"), [])
    assert caught.value.code == "internal-error"
    assert "ZeroDivisionError" in caplog.text and "ZeroDivisionError" not in caught.value.message


async def test_a_cancelled_task_leaves_no_process_in_the_middle_of_it(pool: TaskPool) -> None:
    running = asyncio.create_task(pool.run_for("other", name_of("spin"), []))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await pool.run_for("other", name_of("echo"), [b"a"]) == [b"a"]


async def test_idle_processes_are_bounded_whatever_the_number_of_agents(pool: TaskPool) -> None:
    for agent in range(3 * MAX_IDLE_PROCESSES):
        await pool.run_for(f"agent {agent}", name_of("echo"), [])
    assert sum(map(len, pool._idle.values())) <= MAX_IDLE_PROCESSES


async def test_a_task_without_a_jail_of_the_required_strength_does_not_run() -> None:
    # The launch names no such file, so no jail can be made: there is no other place where the task would run.
    launch = task_launch([name_of("echo")], ["tests"])
    broken = TaskPool(lambda: replace(launch, executable="/nonexistent"), BUDGET, minimum="full", spare=0)
    with pytest.raises(GloveportError) as caught:
        await broken.run(name_of("echo"), [])
    assert caught.value.code == "sandbox-unavailable"
    await broken.close()


async def test_a_process_that_runs_one_task_alone_runs_no_other(pool: TaskPool) -> None:
    assert [await pool.run(name_of("count"), [b"a"]) for _ in range(3)] == [[b"1"]] * 3
    assert [await pool.run_for("counting", name_of("count"), [part]) for part in (b"a", b"b", b"c")] == [
        [b"1"],
        [b"2"],
        [b"3"],
    ]


async def test_what_an_agent_has_had_read_is_not_read_again(pool: TaskPool) -> None:
    async def count(agent: str, part: bytes) -> bytes:
        return (await pool.run_for(agent, name_of("count"), [part]))[0]

    assert [await count("reading", part) for part in (b"a", b"b", b"a", b"b", b"c")] == [b"1", b"2", b"1", b"2", b"3"]
    assert await count("reading too", b"b") == b"1", "of another agent, nothing is known"


async def test_what_a_process_has_returned_lasts_no_longer_than_the_process(
    pool: TaskPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.sandbox.tasks.pool.MAX_TASKS_PER_PROCESS", 4)
    parts = (b"a", b"b", b"b", b"b", b"b", b"b")
    found = [(await pool.run_for("lasting", name_of("count"), [part]))[0] for part in parts]
    assert found == [b"1", b"2", b"2", b"2", b"1", b"1"]


async def test_a_result_that_follows_from_answers_of_the_host_is_not_kept(pool: TaskPool) -> None:
    for given in (b"first", b"second"):

        async def answer(question: bytes, given: bytes = given) -> bytes:
            return given

        assert await pool.run_for("asking", name_of("ask_back"), [b"a"], answer=answer) == [given]


def test_the_results_that_are_kept_of_a_process_are_bounded() -> None:
    cache = ResultCache()
    for number in range(2000):
        cache.add([b"task", b"%d" % number], [bytes(1000)])
    kept = [number for number in range(2000) if cache.find([b"task", b"%d" % number]) is not None]
    assert kept == list(range(kept[0], 2000)), "the least recently used go first"
    assert 100 * 1000 < len(kept) * 1000 < MAX_CACHED_BYTES
    for _ in range(1000):
        cache.add([b"task", b"the same"], [bytes(1000)])
    assert cache.find([b"task", b"1999"]) is not None, "a result that is replaced is counted once"
    cache.add([b"task", b"large"], [bytes(MAX_ENTRY_BYTES)])
    assert cache.find([b"task", b"large"]) is None


def test_the_budgets_are_those_of_the_specification() -> None:
    compilers = {name.split(".")[2]: compiler.budget for name, compiler in COMPILERS.items()}
    found = [program_reader.BUDGET, compilers["openapi"], compilers["graphql"]]
    assert [(one.cpu_seconds, one.cpu_seconds_per_mib, one.memory_mb) for one in found] == [
        (2, 3, 768),
        (10, 4, 2048),
        (10, 4, 2048),
    ]
