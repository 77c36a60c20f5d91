"""The Python SDK's client in a scenario of the client suite: `python -m interop.sdk_client URL`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Any

import httpx2
import mcp_types as mcp
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from interop.scenarios import REVISION, arguments, asks, filled_in
from interop.sdk_account import provider


async def answer(context: Any, params: mcp.ElicitRequestParams) -> mcp.ElicitResult:
    """Accept every elicitation."""
    schema = params.requested_schema if isinstance(params, mcp.ElicitRequestFormParams) else {}
    return mcp.ElicitResult(action="accept", content=filled_in(schema))


async def attempt(call: Awaitable[Any]) -> Any:
    """Return the result of a call, or None if it fails. The suite checks what was sent."""
    try:
        return await call
    except Exception as error:  # noqa: BLE001 - the outer edge of one step
        print(repr(error), file=sys.stderr)


async def main(url: str) -> None:
    """List and call everything that the server has."""
    mode = "legacy" if REVISION == "2025-11-25" else "auto"
    authorizes = os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/")
    http = httpx2.AsyncClient(auth=provider(url) if authorizes else None, follow_redirects=True, timeout=30)
    transport = streamable_http_client(url, http_client=http)
    async with http, Client(transport, mode=mode, elicitation_callback=answer if asks else None) as client:
        has = client.server_capabilities
        listed = await client.list_tools()
        schemas = {tool.name: tool.input_schema for tool in listed.tools}
        await asyncio.gather(*(attempt(client.call_tool(name, arguments(name, schemas))) for name in schemas))
        if has.resources and (resources := await attempt(client.list_resources())):
            for resource in resources.resources:
                await attempt(client.read_resource(resource.uri))
        if has.prompts and (prompts := await attempt(client.list_prompts())):
            for prompt in prompts.prompts:
                await attempt(client.get_prompt(prompt.name))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
