"""Runs the readers of definitions and of archives in jailed processes: one process for each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gloveport.sandbox.tasks.launch import task_launch
from gloveport.sandbox.tasks.pool import TaskPool
from gloveport.sandbox.tasks.task_process import Answer, TaskBudget
from gloveport.types import MIB, Strength

IDLE_SECONDS = 5.0  # after which the zygote of a kind of definition is ended: definitions are compiled rarely


@dataclass(frozen=True, slots=True)
class _Compiler:
    """The packages that the compiler of a kind of definition uses, and its budget."""

    packages: tuple[str, ...]
    budget: TaskBudget


COMPILERS: Mapping[str, _Compiler] = {
    "gloveport.sources.openapi.compile.task:compile_definition": _Compiler(
        ("jsonschema_rs", "msgspec", "orjson", "yaml"), TaskBudget(10.0, 4.0, memory_mb=2048, max_result_bytes=200 * MIB)
    ),
    "gloveport.sources.graphql.compile.task:compile_schema_text": _Compiler(
        ("jsonschema_rs", "msgspec", "orjson", "graphql"), TaskBudget(10.0, 4.0, memory_mb=2048, max_result_bytes=128 * MIB)
    ),
    "gloveport.sources.mcp.compile.task:compile_tool_list": _Compiler(
        ("jsonschema_rs", "msgspec", "orjson"), TaskBudget(5.0, 2.0, memory_mb=512, max_result_bytes=64 * MIB)
    ),
    "gloveport.sources.schemas.task:normalise_schemas": _Compiler(
        ("jsonschema_rs", "msgspec", "orjson"), TaskBudget(5.0, 2.0, memory_mb=512, max_result_bytes=64 * MIB)
    ),
    "gloveport.packages.archives:unpack_archive": _Compiler(
        ("msgspec",), TaskBudget(60.0, 4.0, memory_mb=1536, max_result_bytes=700 * MIB)
    ),
}


class DefinitionTasks:
    """A `TaskRunner` for the compilers. It starts a zygote when a definition is to be compiled, and ends it after that."""

    def __init__(self, minimum: Strength) -> None:
        self._minimum: Strength = minimum
        self._pools: dict[str, TaskPool] = {}
        self._running: dict[str, int] = {}

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        """Run a compiler in a process of its own, and return what it yields."""
        if task not in self._pools:
            compiler = COMPILERS[task]
            self._pools[task] = TaskPool(
                lambda: task_launch((task,), compiler.packages), compiler.budget, minimum=self._minimum, spare=0
            )
        self._running[task] = self._running.get(task, 0) + 1
        try:
            return await self._pools[task].run(task, parts, answer=answer)
        finally:
            self._running[task] -= 1
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_if_idle, task)

    def _end_if_idle(self, task: str) -> None:
        if not self._running.get(task) and (pool := self._pools.pop(task, None)) is not None:
            self._closing = asyncio.ensure_future(pool.close())

    async def close(self) -> None:
        """End every process."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.close()

    def abandon(self) -> None:
        """End every process after the event loop has closed."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.abandon()
