"""FastMCP's code mode with its in-memory client: no transport, which is its fastest way."""

from typing import Any

import shop  # pyright: ignore[reportMissingImports]
from fastmcp import Client, FastMCP  # pyright: ignore[reportMissingImports]
from fastmcp.experimental.transforms.code_mode import (  # pyright: ignore[reportMissingImports]
    CodeMode,
    MontySandboxProvider,
)


class FastMCPCodeMode:
    """A server over the tools of shop.py."""

    def __init__(self, options: dict[str, Any]) -> None:
        limits = {"max_feed_duration_secs": float(options["seconds"]), "max_memory": options["memory_mb"] << 20}
        mode = CodeMode(sandbox_provider=MontySandboxProvider(limits=limits), max_tool_calls=1000)
        server = FastMCP("peer", transforms=[mode])
        for function in (shop.add, shop.double, shop.label):
            server.tool(function)
        self._client = Client(server)

    async def start(self) -> None:
        """Connect."""
        await self._client.__aenter__()

    async def run(self, code: str) -> Any:
        """Run the program and return its value, or its text if that is not an object."""
        answer = await self._client.call_tool("execute", {"code": code})
        return answer.content[0].text if answer.structured_content is None else answer.structured_content

    async def close(self) -> None:
        """Disconnect."""
        await self._client.__aexit__(None, None, None)


make = FastMCPCodeMode
