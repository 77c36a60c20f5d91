"""Monty through its own asynchronous client, with its default pool of workers."""

from typing import Any

import pydantic_monty
import shop  # pyright: ignore[reportMissingImports]


class MontyAlone:
    """A pool with one session per program."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._limits: Any = {
            "max_feed_duration_secs": float(options["seconds"]),
            "max_memory": options["memory_mb"] << 20,
        }
        self._pool = pydantic_monty.AsyncMonty()
        self._tools = {"add": shop.add, "double": shop.double, "label": shop.label}

    async def start(self) -> None:
        """Start its workers."""
        await self._pool.__aenter__()

    async def run(self, code: str) -> Any:
        """Run the program and return its value."""
        async with self._pool.checkout(limits=self._limits) as session:
            return await session.feed_run(code, external_lookup=self._tools)

    async def close(self) -> None:
        """Stop its workers."""
        await self._pool.__aexit__(None, None, None)


make = MontyAlone
