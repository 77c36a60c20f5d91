"""The floor of the engine `monty`: a bare worker, checked out in advance, under asyncio, by `pydantic_monty`'s own client."""

from __future__ import annotations

import time
from typing import Any

import pydantic_monty


class MontyFloor:
    """One bare worker that waits for a program."""

    async def ready(self) -> MontyFloor:
        """Itself, once the worker has been checked out."""
        self._pool = pydantic_monty.AsyncMonty(min_processes=1, max_processes=1)
        await self._pool.__aenter__()
        self._session = self._pool.checkout(limits={"max_suspensions": 100_000})
        await self._session.__aenter__()
        return self

    async def run(self, code: str, echo: Any) -> tuple[Any, float]:
        """The program's result, and the seconds that it took; each of its calls of `tools.echo` is answered by `echo`."""
        began = time.perf_counter()
        tools = pydantic_monty.ClassInstance(echo, allowed_methods={"echo"})
        snapshot = await self._session.feed_start(code, inputs={"tools": tools})
        while not isinstance(snapshot, pydantic_monty.MontyComplete):
            snapshot = await snapshot.resume_auto()
        result = snapshot.output
        return result, time.perf_counter() - began

    async def end(self) -> None:
        """End the worker."""
        await self._session.__aexit__(None, None, None)
        await self._pool.__aexit__(None, None, None)
