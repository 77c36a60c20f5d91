"""smolagents' LocalPythonExecutor, a new one per program. Its tools are plain functions that block."""

import asyncio
from typing import Any

import shop  # pyright: ignore[reportMissingImports]
from smolagents.local_python_executor import LocalPythonExecutor  # pyright: ignore[reportMissingImports]


def blocking(function: Any) -> Any:
    """Return the tool as a plain function."""

    def call(**arguments: Any) -> Any:
        coroutine = function(**arguments)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("the tools of shop.py wait for nothing")

    return call


class SmolagentsLocal:
    """Executors with the default imports and a time limit."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._seconds = options["seconds"]
        self._tools = {name: blocking(getattr(shop, name)) for name in ("add", "double", "label")}

    async def start(self) -> None:
        """Do nothing."""

    async def run(self, code: str) -> Any:
        """Run the program and return its value."""
        executor = LocalPythonExecutor(additional_authorized_imports=[], timeout_seconds=self._seconds)
        executor.send_tools(self._tools)
        return (await asyncio.to_thread(executor, code)).output

    async def close(self) -> None:
        """Do nothing."""


make = SmolagentsLocal
