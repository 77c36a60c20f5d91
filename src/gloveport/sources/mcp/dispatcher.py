"""The library's JSON-RPC dispatcher, more tolerant: one invalid tool does not spoil a list.

It also reports requests of the server that nobody here can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as mcp
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gloveport.sources.mcp.pagination import MAX_LIST_ITEMS


class TolerantDispatcher(JSONRPCDispatcher[TransportContext]):
    """Requests and replies over a connection's streams; `on_refused` gets the method of each server request that failed."""

    def __init__(self, read: Any, write: Any, on_refused: Callable[[str], None]) -> None:
        super().__init__(read, write)
        self._on_refused = on_refused
        self.version = ""
        self.dropped: list[str] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the raw result; from a list of tools, drop the invalid ones."""
        raw = await super().send_raw_request(method, params, opts, **more)
        if self._modern or method == "server/discover":
            raw.setdefault("resultType", "complete")  # the protocol's default; the library refuses a result without it
        if method == "tools/list" and isinstance(raw.get("tools"), list):
            raw["tools"] = raw["tools"][:MAX_LIST_ITEMS]  # validation takes time for each
            if self._problem(raw):
                raw["tools"] = [kept for tool in raw["tools"] if (kept := self._repaired(raw, tool)) is not None]
        return raw

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, on_notify_intercept: OnNotifyIntercept | None = None, **more: Any
    ) -> None:
        """Drive the receive loop."""

        async def reporting(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            try:
                return await on_request(context, method, params)
            except (MCPError, ValidationError):
                self._on_refused(method)
                raise

        await super().run(reporting, on_notify, on_notify_intercept, **more)

    @property
    def _modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    def _repaired(self, raw: dict[str, Any], tool: Any) -> Any:
        """Return the tool, without its output schema if that makes it valid (it only documents); else None."""
        if not (problem := self._problem({**raw, "tools": [tool]})):
            return tool
        name = tool.get("name") if isinstance(tool, dict) else None
        less = {key: value for key, value in tool.items() if key != "outputSchema"} if isinstance(tool, dict) else None
        repaired = less is not None and not self._problem({**raw, "tools": [less]})
        what = "its output schema is left out" if repaired else "it is left out"
        self.dropped.append(f"the tool {str(name)[:100]!a} is not valid MCP, so {what}: {problem}")
        return less if repaired else None

    def _problem(self, raw: dict[str, Any]) -> str:
        try:
            validate_server_result("tools/list", self.version, raw)
            listed = mcp.ListToolsResult.model_validate(raw, by_name=False)
        except ValidationError as error:
            return first_error(error)
        # The library would leave these out too, and only log it.
        reasons = [find_invalid_x_mcp_header(tool.input_schema) for tool in listed.tools] if self._modern else []
        return next((reason[:400] for reason in reasons if reason), "")


def first_error(error: ValidationError) -> str:
    """Return the first invalid place and what is wrong with it, without the value itself."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}"
