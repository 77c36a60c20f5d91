"""Ours: one engine of Gloveport as a library, with its default pool."""

from typing import Any

import shop  # pyright: ignore[reportMissingImports]

from gloveport import Gloveport


class GloveportEngine:
    """A port with the tools of shop.py."""

    def __init__(self, options: dict[str, Any]) -> None:
        limits = {"wall_seconds": options["seconds"], "memory_mb": options["memory_mb"]}
        tools = [shop.add, shop.double, shop.label]
        self._port = Gloveport(tools=tools, limits=limits, check_types=options["check_types"])
        self._how = {"language": options["language"], "engine": options["engine"]}

    async def start(self) -> None:
        """Open the port. The first run starts the engine's pool and its type checker."""
        await self._port.open()
        await self.run("return 1")

    async def run(self, code: str) -> Any:
        """Run the program and return its value."""
        outcome = await self._port.run(code, **self._how)
        if outcome.error:
            raise RuntimeError(outcome.error.message)
        return outcome.value

    async def close(self) -> None:
        """Stop its sandboxes."""
        await self._port.close()


make = GloveportEngine
