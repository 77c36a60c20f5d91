"""A runner of tasks for tests of sources: it runs them in this process, without a jail."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence

from gloveport.sources.context import Answer


class InProcessTasks:
    """Implements `TaskRunner`, and counts the tasks that it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        """Return what the task yields; its questions are answered on the event loop."""
        self.ran.append(task)
        loop = asyncio.get_running_loop()

        def ask(question: bytes) -> bytes | None:
            return None if answer is None else asyncio.run_coroutine_threadsafe(_answered(answer, question), loop).result()

        module, _, name = task.partition(":")
        function = getattr(importlib.import_module(module), name)
        return await asyncio.to_thread(lambda: list(function([bytes(part) for part in parts], ask)))


async def _answered(answer: Answer, question: bytes) -> bytes | None:
    return await answer(question)
