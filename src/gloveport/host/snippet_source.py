"""Snippets as tools: `tools.snippets.<name>(input)`. The run that calls one runs it: see `runs/snippet_calls`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from gloveport.errors import ToolError
from gloveport.store.snippets import SOURCE, Snippet
from gloveport.types import Tool


class SnippetSource:
    """The snippets that an agent may call."""

    name = SOURCE
    attributes_errors: Literal[True] = True

    def __init__(self, snippets: Sequence[Snippet]) -> None:
        self.snippets = {snippet.address: snippet for snippet in snippets}
        self._tools = tuple(map(_tool, snippets))

    def tools(self) -> Sequence[Tool]:
        """Return a tool for each snippet."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> NoReturn:
        """Refuse: the run that calls a snippet runs it, and a plan runs none, since its writes would not be held back."""
        message = f"tools.{tool.address} is a snippet, and a plan runs none"
        raise ToolError(message, code="snippet-refused", tool=tool.address)

    async def close(self) -> None:
        """Do nothing: the store has the snippets."""


def _tool(snippet: Snippet) -> Tool:
    uses = ", ".join(snippet.tools)
    described = f"{snippet.description or 'A saved program.'}\n\nIt calls {uses}." if uses else snippet.description
    schema = {
        "type": "object",
        "properties": {name: {} for name in snippet.parameters or ()},
        "additionalProperties": snippet.parameters is not None,
    }
    return Tool(snippet.address, described, schema, kind="snippet")
