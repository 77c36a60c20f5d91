"""The bridge of a run over functions and fake sources, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.catalog import Catalog
from gloveport.errors import ToolError
from gloveport.policy import Policy
from gloveport.sources.functions import functions
from gloveport.types import Limits, Tool, ToolCall

DEADLINE = 60


class FakeSource:
    """A source that keeps the arguments that it was sent."""

    def __init__(self, name: str, tools: Sequence[Tool], answer: Any = None) -> None:
        self.name = name
        self.sent: list[dict[str, Any]] = []
        self._tools = tools
        self._answer = answer

    def tools(self) -> Sequence[Tool]:
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        self.sent.append(args)
        return self._answer

    async def close(self) -> None:
        pass


def port(*tools: Any, policy: Policy | None = None, on_call: Any = None, sources: Any = (), **limits: Any) -> RunBridge:
    catalog = Catalog([functions(tools), *sources] if tools else list(sources))
    return Bridge(catalog, policy).for_run(Limits(**limits), RunContext(on_call=on_call))


async def call(port: RunBridge, name: str, *args: Any, id: int = 1) -> Any:
    async with asyncio.timeout(DEADLINE):
        return await port.call(ToolCall(id, name, list(args)))


async def refused(port: RunBridge, name: str, *args: Any) -> ToolError:
    try:
        value = await call(port, name, *args)
    except ToolError as error:
        return error
    raise AssertionError(f"{name} answered {value!r}")
