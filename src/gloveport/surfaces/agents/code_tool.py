"""`code_tool(port)`: one tool that a Python framework gives to its model, and that runs the programs which it writes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gloveport.catalog import typescript_stubs
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport, OnEvent
from gloveport.surfaces.agents.tools import AgentAnswer, AgentTools

# About 2,000 tokens of declarations: a model that has them writes its program at once, without looking around first.
DECLARED, MOST_DECLARED = 8_000, 100
MOST_SOURCES = 12
_LOOK = """Find out in a first program what there is, return what you need of it, and call tools in the next:
- `await tools.search("what it should do")` gives [{path, description, writes}]; `await tools.sources()` lists all sources.
- `(await tools.describe(path)).typescript` gives a tool's documented types."""


class CodeTool:
    """A tool in the shape that model APIs take: `name`, `description`, `input_schema`, and `call` for what comes back."""

    name = "execute"

    def __init__(self, port: Gloveport, on_event: OnEvent | None = None) -> None:
        self._port = port
        self._on_event = on_event
        self._tools = AgentTools(port)
        self._offer = next(tool for tool in self._tools.listed() if tool.name == self.name)

    @property
    def description(self) -> str:
        """What the model reads: how to write programs, and the tools that are connected now, declared or summed up."""
        return f"{self._offer.description}\n\n{_declared(self._port) or _summed_up(self._port)}"

    @property
    def input_schema(self) -> dict[str, Any]:
        """What `call` takes, as JSON Schema."""
        return dict(self._offer.input_schema)

    async def call(self, args: Mapping[str, Any] | str) -> AgentAnswer:
        """What to give back to the model: `text`, the same as `data`, and `failed`. Arguments may be JSON text.

        A program that fails and arguments that make no sense are answers too, for the model to learn from.
        """
        try:
            given = _parsed(args) if isinstance(args, str) else args
            return await self._tools.call(self.name, given, self._on_event)
        except OptionError as error:
            told = {"code": error.code, "message": error.message, "hint": error.hint}
            text = f"{error.code}: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")
            return AgentAnswer({"status": "failed", "error": told}, text, failed=True)

    def call_sync(self, args: Mapping[str, Any] | str) -> AgentAnswer:
        """The same as `call`, for callers without an event loop; open the port first."""
        return asyncio.run(self.call(args))


def code_tool(port: Gloveport, *, on_event: OnEvent | None = None) -> CodeTool:
    """The tool that lets a model run programs on this port; make it when the port is open, so that it knows all tools."""
    return CodeTool(port, on_event)


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        args = json.loads(text)
    except ValueError:
        args = None
    if not isinstance(args, dict):
        raise OptionError("the arguments are not a JSON object", hint='send {"code": "…"}')
    return args


def _declared(port: Gloveport) -> str | None:
    tools = port.catalog.tools
    if not tools or len(tools) > MOST_DECLARED:
        return None
    text = typescript_stubs.declaration((port.catalog.path_of(tool), tool) for tool in tools)
    return f"What there is to call:\n{text.rstrip()}" if len(text) <= DECLARED else None


def _summed_up(port: Gloveport) -> str:
    counts = Counter(tool.source for tool in port.catalog.tools)
    listed = [f"{name} ({count:,})" for name, count in counts.items()]
    more = [f"and {len(listed) - MOST_SOURCES} more"] if len(listed) > MOST_SOURCES else []
    if not listed:
        return "No tools are connected; programs can compute."
    return f"Sources and how many tools each has: {', '.join([*listed[:MOST_SOURCES], *more])}.\n{_LOOK}"
