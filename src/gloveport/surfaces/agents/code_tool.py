"""`code_tool(port)`: one tool for the model of a Python framework; it runs the programs that the model writes."""

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
from gloveport.surfaces.documents import error_document

# About 2,000 tokens of declarations: with them a model writes its program at once, without exploring first.
MAX_DECLARATION_CHARS, MAX_DECLARED_TOOLS = 8_000, 100
MAX_LISTED_SOURCES = 12
_EXPLORE = """In a first program, find out which tools there are and return what you need to know; call them in the next:
- `await tools.search("what it should do")` gives [{path, description, writes}]; `await tools.sources()` lists all sources.
- `(await tools.describe(path)).typescript` gives a tool's documented types."""


class CodeTool:
    """A tool as model APIs define it: `name`, `description` and `input_schema`, and `call` to run it."""

    name = "execute"

    def __init__(self, port: Gloveport, on_event: OnEvent | None = None) -> None:
        self._port = port
        self._on_event = on_event
        self._tools = AgentTools(port)
        self._described = next(tool for tool in self._tools.descriptions() if tool.name == self.name)

    @property
    def description(self) -> str:
        """What the model reads: how to write programs, and the connected tools, as declarations or as a summary."""
        return f"{self._described.description}\n\n{_declarations(self._port) or _summary(self._port)}"

    @property
    def input_schema(self) -> dict[str, Any]:
        """The arguments of `call`, as JSON Schema."""
        return dict(self._described.input_schema)

    async def call(self, args: Mapping[str, Any] | str) -> AgentAnswer:
        """Return the answer for the model: `text`, the same as `data`, and `failed`. Arguments may be JSON text.

        A failed program and invalid arguments give an answer too, so that the model can correct them.
        """
        try:
            given = _parse(args) if isinstance(args, str) else args
            return await self._tools.call(self.name, given, self._on_event)
        except OptionError as error:
            text = f"{error.code}: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")
            return AgentAnswer({"status": "failed", "error": error_document(error)}, text, failed=True)

    def call_sync(self, args: Mapping[str, Any] | str) -> AgentAnswer:
        """The same as `call`, for callers without an event loop; open the port first."""
        return asyncio.run(self.call(args))


def code_tool(port: Gloveport, *, on_event: OnEvent | None = None) -> CodeTool:
    """Return the tool that lets a model run programs on this port. Open the port first, so that it knows all tools."""
    return CodeTool(port, on_event)


def _parse(text: str) -> Mapping[str, Any]:
    try:
        args = json.loads(text)
    except ValueError:
        args = None
    if not isinstance(args, dict):
        raise OptionError("the arguments are not a JSON object", hint='send {"code": "…"}')
    return args


def _declarations(port: Gloveport) -> str | None:
    tools = port.catalog.tools
    if not tools or len(tools) > MAX_DECLARED_TOOLS:
        return None
    text = typescript_stubs.declaration((port.catalog.path_of(tool), tool) for tool in tools)
    return f"Available tools:\n{text.rstrip()}" if len(text) <= MAX_DECLARATION_CHARS else None


def _summary(port: Gloveport) -> str:
    counts = Counter(tool.source for tool in port.catalog.tools)
    listed = [f"{name} ({count:,})" for name, count in counts.items()]
    more = [f"and {len(listed) - MAX_LISTED_SOURCES} more"] if len(listed) > MAX_LISTED_SOURCES else []
    if not listed:
        return "No tools are connected; programs can compute."
    return f"Sources and how many tools each has: {', '.join([*listed[:MAX_LISTED_SOURCES], *more])}.\n{_EXPLORE}"
