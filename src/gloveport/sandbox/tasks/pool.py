"""Hands tasks to jailed processes: each to a fresh one, or to one that serves a single agent."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence

from gloveport.sandbox.launcher import Launch
from gloveport.sandbox.pool import IdleTimer, Pool
from gloveport.sandbox.tasks.task_process import Answer, TaskBudget, TaskProcess
from gloveport.sandbox.worker import Worker
from gloveport.types import Strength

MAX_PROCESSES_PER_AGENT = os.cpu_count() or 1
MAX_IDLE_PROCESSES = 8
MAX_TASKS_PER_PROCESS = 1000  # a process is replaced after this many tasks, so that nothing they left in it lasts


class TaskPool:
    """Runs tasks of one kind. A process that reads texts of an agent never reads another agent's. Idle ones end."""

    def __init__(self, launch: Callable[[], Launch], budget: TaskBudget, *, minimum: Strength, spare: int) -> None:
        self._launch = launch
        self._budget = budget
        self._minimum: Strength = minimum
        self._spare = spare
        self._pool: Pool[Worker] | None = None
        self._idle: OrderedDict[str, list[TaskProcess]] = OrderedDict()  # by agent, the least recently used first
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._idle_timer = IdleTimer(self._end_idle)

    async def open(self) -> None:
        """Start the zygote and the spare processes."""
        await self._started().open()

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        """Run a task in a process of its own, and return what it yields."""
        process = await self._take()
        try:
            return await process.run(task, parts, answer)
        finally:
            self._retire(process)

    async def run_for(self, agent: str, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        """Run a task in a process that reads only texts of this agent, and return what it yields.

        If an idle process of the agent has had the same input before, and asked nothing, its result is returned again.
        """
        if (result := self._cached(agent, (task.encode(), *parts))) is not None:
            return result
        turns = self._turns.setdefault(agent, asyncio.Semaphore(MAX_PROCESSES_PER_AGENT))
        async with turns:
            process = self._take_idle(agent) or await self._take()
            try:
                return await process.run(task, parts, answer)
            finally:
                self._give_back(agent, process)

    async def close(self) -> None:
        """End every process."""
        self._idle_timer.stop()
        self._end_idle()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    def abandon(self) -> None:
        """End every process after the event loop has closed."""
        self._idle.clear()
        self._turns.clear()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.abandon()

    def _end_idle(self) -> None:
        for processes in self._idle.values():
            for process in processes:
                self._retire(process)
        self._idle.clear()

    def _started(self) -> Pool[Worker]:
        if self._pool is None:
            self._pool = Pool(self._launch(), size=self._spare, minimum=self._minimum, start=Worker.start)
        return self._pool

    def _cached(self, agent: str, given: Sequence[bytes]) -> list[bytes] | None:
        """Return what an idle process of the agent knows. It counts as one of its tasks, so that it too ends some time."""
        for process in self._idle.get(agent, ()):
            if (result := process.results.find(given)) is not None:
                self._idle[agent].remove(process)
                process.tasks += 1
                self._give_back(agent, process)
                return result
        return None

    def _take_idle(self, agent: str) -> TaskProcess | None:
        """Return a process of this agent that waits, and retire those that somebody has killed meanwhile."""
        idle = self._idle.get(agent, [])
        while idle:
            process = idle.pop()
            if process.worker.alive():
                return process
            self._retire(process)
        return None

    async def _take(self) -> TaskProcess:
        pool = self._started()
        process = TaskProcess(await pool.take(), self._budget)
        pool.refill()
        return process

    def _retire(self, process: TaskProcess) -> None:
        if self._pool is not None:
            self._pool.retire(process.worker)

    def _give_back(self, agent: str, process: TaskProcess) -> None:
        worn_out = process.tasks >= MAX_TASKS_PER_PROCESS or not process.worker.alive()
        if self._pool is None or not process.usable or worn_out:
            self._retire(process)
            return
        self._idle_timer.used()
        self._idle.setdefault(agent, []).append(process)
        self._idle.move_to_end(agent)
        while sum(map(len, self._idle.values())) > MAX_IDLE_PROCESSES:
            oldest, processes = next(iter(self._idle.items()))
            self._retire(processes.pop(0))
            if not processes:
                del self._idle[oldest]
