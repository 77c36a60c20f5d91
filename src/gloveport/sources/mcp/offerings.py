"""What a server offers besides tools, as tools: its resources and its prompts.

They are reads by the protocol's own word, not by a hint of the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as mcp
from pydantic import TypeAdapter

from gloveport.sources.mcp.listing import all_pages
from gloveport.sources.mcp.results import content, resource
from gloveport.types import Tool

Send = Callable[[Any, Any], Awaitable[Any]]
"""Sends a request and gives back its result, of the given type."""

NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
OBJECTS: Mapping[str, Any] = {"type": "array", "items": {"type": "object"}}
READ: TypeAdapter[Any] = TypeAdapter(mcp.ReadResourceResult | mcp.InputRequiredResult)
GOT: TypeAdapter[Any] = TypeAdapter(mcp.GetPromptResult | mcp.InputRequiredResult)


@dataclass(frozen=True, slots=True)
class Offering:
    """A tool that is no tool of the server, and how it is called."""

    tool: Tool
    call: Callable[[Send, Mapping[str, Any], int], Awaitable[Any]]


def offerings(source: str, capabilities: mcp.ServerCapabilities | None) -> dict[str, Offering]:
    """What this server offers, by address."""
    rows: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], Any]] = []
    if capabilities and capabilities.resources:
        rows += [
            ("resources.list", "The server's resources: uri, name, description, type.", NOTHING, OBJECTS, _resources),
            ("resources.templates", "URI templates of the server's resources.", NOTHING, OBJECTS, _templates),
            ("resources.read", "What is in a resource: its parts, each with text or, as bytes, data.", URI, OBJECTS, _read),
        ]  # fmt: skip
    if capabilities and capabilities.prompts:
        rows += [
            ("prompts.list", "The server's prompts: their names, descriptions and arguments.", NOTHING, OBJECTS, _prompts),
            ("prompts.get", "A prompt's messages, filled in with the arguments.", PROMPT, {"type": "object"}, _prompt),
        ]  # fmt: skip
    found = {}
    for path, description, takes, gives, call in rows:
        address = f"{source}.{path}"
        found[address] = Offering(Tool(address, description, takes, gives, kind="mcp"), call)
    return found


URI: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The resource's address, from the list or a template."}},
    "required": ["uri"],
    "additionalProperties": False,
}
PROMPT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


async def _resources(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    return await _listed(send, mcp.ListResourcesRequest, mcp.ListResourcesResult, lambda page: page.resources, max_bytes)


async def _templates(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    kinds = mcp.ListResourceTemplatesRequest, mcp.ListResourceTemplatesResult
    return await _listed(send, *kinds, lambda page: page.resource_templates, max_bytes)


async def _prompts(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    return await _listed(send, mcp.ListPromptsRequest, mcp.ListPromptsResult, lambda page: page.prompts, max_bytes)


async def _listed(send: Send, request: Any, result: Any, items: Callable[[Any], Any], max_bytes: int) -> list[Any]:
    def ignore(warning: str) -> None:
        """A list that a program asked for ends where it ends."""

    found = await all_pages(lambda params: send(request(params=params), result), items, max_bytes, ignore)
    return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in found]


async def _read(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    request = mcp.ReadResourceRequest(params=mcp.ReadResourceRequestParams(uri=args["uri"]))
    return [resource(part, "resources.read") for part in (await send(request, READ)).contents]


async def _prompt(send: Send, args: Mapping[str, Any], max_bytes: int) -> Any:
    params = mcp.GetPromptRequestParams(name=args["name"], arguments=args.get("arguments"))
    found = await send(mcp.GetPromptRequest(params=params), GOT)
    messages = [{"role": said.role, "content": content(said.content, "prompts.get")} for said in found.messages]
    return {"description": found.description, "messages": messages} if found.description else {"messages": messages}
