"""The library's dispatcher, but one bad tool does not spoil a list, and what a server asks for in vain is noted."""

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

from gloveport.sources.mcp.listing import MOST_ITEMS


class Wire(JSONRPCDispatcher[TransportContext]):
    """Requests and replies over a connection's streams; `refused` hears of each request of the server that failed."""

    def __init__(self, read: Any, write: Any, refused: Callable[[str], None]) -> None:
        super().__init__(read, write)
        self._refused = refused
        self.version = ""
        self.dropped: list[str] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """The raw result; from a list of tools, those that are none are dropped."""
        raw = await super().send_raw_request(method, params, opts, **more)
        if self._modern or method == "server/discover":
            raw.setdefault("resultType", "complete")  # the protocol says so of a result without it; the library refuses it
        if method == "tools/list" and isinstance(raw.get("tools"), list):
            raw["tools"] = raw["tools"][:MOST_ITEMS]  # what follows takes time for each
            if self._problem(raw):
                raw["tools"] = [kept for tool in raw["tools"] if (kept := self._kept(raw, tool)) is not None]
        return raw

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, on_notify_intercept: OnNotifyIntercept | None = None, **more: Any
    ) -> None:
        """Drives the receive loop."""

        async def noting(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            try:
                return await on_request(context, method, params)
            except (MCPError, ValidationError):
                self._refused(method)
                raise

        await super().run(noting, on_notify, on_notify_intercept, **more)

    @property
    def _modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    def _kept(self, raw: dict[str, Any], tool: Any) -> Any:
        """The tool, if need be without its output schema, which only documents; None where that does not mend it."""
        if not (problem := self._problem({**raw, "tools": [tool]})):
            return tool
        name = tool.get("name") if isinstance(tool, dict) else None
        less = {key: value for key, value in tool.items() if key != "outputSchema"} if isinstance(tool, dict) else None
        mended = less is not None and not self._problem({**raw, "tools": [less]})
        what = "its output schema is left out" if mended else "it is left out"
        self.dropped.append(f"the tool {str(name)[:100]!a} is not as the protocol says, so {what}: {problem}")
        return less if mended else None

    def _problem(self, raw: dict[str, Any]) -> str:
        try:
            validate_server_result("tools/list", self.version, raw)
            listed = mcp.ListToolsResult.model_validate(raw, by_name=False)
        except ValidationError as error:
            return shown(error)
        # The library would leave these out too, and tell nobody but a log.
        reasons = [find_invalid_x_mcp_header(tool.input_schema) for tool in listed.tools] if self._modern else []
        return next((reason[:400] for reason in reasons if reason), "")


def shown(error: ValidationError) -> str:
    """The first place that is wrong and what is wrong with it, without what stood there."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}"
