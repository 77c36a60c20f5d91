"""A server's resources and prompts, as tools.

They are reads because the protocol says so, not because an annotation of the server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as mcp
from pydantic import TypeAdapter

from gloveport.large_values import off_loop
from gloveport.sources.mcp.pagination import all_pages, json_size
from gloveport.sources.mcp.results import content_value, resource_value
from gloveport.sources.mcp.tool_rows import fingerprint
from gloveport.types import Tool

Send = Callable[[Any, Any], Awaitable[Any]]
"""Sends a request and returns its result, of the given type."""

ROWS_PER_TURN = 200
"""How many rows are written in one turn of the event loop."""
NO_ARGS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
ROWS: Mapping[str, Any] = {"type": "array", "items": {"type": "object"}}
READ_RESULT: TypeAdapter[Any] = TypeAdapter(mcp.ReadResourceResult | mcp.InputRequiredResult)
PROMPT_RESULT: TypeAdapter[Any] = TypeAdapter(mcp.GetPromptResult | mcp.InputRequiredResult)


@dataclass(frozen=True, slots=True)
class ServerFeature:
    """A tool of ours for a feature of the server, and how it is called."""

    tool: Tool
    call: Callable[[Send, Mapping[str, Any], int], Awaitable[Any]]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the tool."""
        return fingerprint(self.tool)


def server_features(source: str, capabilities: mcp.ServerCapabilities | None) -> dict[str, ServerFeature]:
    """Return the tools for the features that a server has, by address."""
    rows: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], Any]] = []
    if capabilities and capabilities.resources:
        rows += [
            ("resources.list", "The server's resources: uri, name, description, type.", NO_ARGS, ROWS, _resources),
            ("resources.templates", "URI templates of the server's resources.", NO_ARGS, ROWS, _templates),
            ("resources.read", "What is in a resource: its parts, each with text or, as bytes, data.", BY_URI, ROWS, _read),
        ]  # fmt: skip
    if capabilities and capabilities.prompts:
        rows += [
            ("prompts.list", "The server's prompts: their names, descriptions and arguments.", NO_ARGS, ROWS, _prompts),
            ("prompts.get", "A prompt's messages, filled in with the arguments.", PROMPT_ARGS, {"type": "object"}, _prompt),
        ]  # fmt: skip
    found = {}
    for path, description, takes, gives, call in rows:
        address = f"{source}.{path}"
        found[address] = ServerFeature(Tool(address, description, takes, gives, kind="mcp"), call)
    return found


BY_URI: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The resource's address, from the list or a template."}},
    "required": ["uri"],
    "additionalProperties": False,
}
PROMPT_ARGS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


async def _resources(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    return await _list_all(send, mcp.ListResourcesRequest, mcp.ListResourcesResult, lambda page: page.resources, max_bytes)


async def _templates(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    kinds = mcp.ListResourceTemplatesRequest, mcp.ListResourceTemplatesResult
    return await _list_all(send, *kinds, lambda page: page.resource_templates, max_bytes)


async def _prompts(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    return await _list_all(send, mcp.ListPromptsRequest, mcp.ListPromptsResult, lambda page: page.prompts, max_bytes)


async def _list_all(send: Send, request: Any, result: Any, items: Callable[[Any], Any], max_bytes: int) -> list[Any]:
    def ignore(warning: str) -> None:
        """Drop the warning: a program gets the list as far as it goes."""

    found = await all_pages(lambda params: send(request(params=params), result), items, json_size, max_bytes, ignore)
    rows = []
    for item in found:
        rows.append(item.model_dump(mode="json", by_alias=True, exclude_none=True))
        if len(rows) % ROWS_PER_TURN == 0:
            await asyncio.sleep(0)
    return rows


async def _read(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    request = mcp.ReadResourceRequest(params=mcp.ReadResourceRequestParams(uri=args["uri"]))
    contents = (await send(request, READ_RESULT)).contents
    return await off_loop(lambda: [resource_value(part, "resources.read") for part in contents])


async def _prompt(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    params = mcp.GetPromptRequestParams(name=args["name"], arguments=args.get("arguments"))
    found = await send(mcp.GetPromptRequest(params=params), PROMPT_RESULT)

    def rows() -> list[dict[str, Any]]:
        return [{"role": each.role, "content": content_value(each.content, "prompts.get")} for each in found.messages]

    messages = await off_loop(rows)
    return {"description": found.description, "messages": messages} if found.description else {"messages": messages}
