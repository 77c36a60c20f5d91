"""The library's JSON-RPC dispatcher, bounded and more tolerant: no result is large, and one invalid tool spoils no list.

It also reports requests of the server that nobody here can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gloveport.large_values import off_loop
from gloveport.sources.mcp.connection import CURRENT_CALL, REPLY_TOO_LARGE
from gloveport.sources.mcp.messages import MessageLimitError, check_result, holds_more
from gloveport.sources.mcp.tool_list import ListedPage, read_page

MAX_PARAMETER_VALUES = 1000
"""How many values a request or notification of the server may hold: the library validates them."""

Claim = Callable[[dict[str, Any]], dict[str, Any]]


class TolerantDispatcher(JSONRPCDispatcher[TransportContext]):
    """Requests and replies over a connection's streams.

    `claim` returns the whole result of a reply. `on_refused` gets the method of each server request that failed.
    """

    def __init__(self, read: Any, write: Any, claim: Claim, on_refused: Callable[[str], None]) -> None:
        super().__init__(read, write)
        self._claim = claim
        self._on_refused = on_refused
        self.version = ""
        self.listed: list[ListedPage] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the raw result. Tools are kept in `listed`, for the compiler: the library would validate them here."""
        raw = self._claim(await super().send_raw_request(method, params, opts, **more))
        if self._modern or method == "server/discover":
            raw.setdefault("resultType", "complete")  # the protocol's default; the library refuses a result without it
        if method == "tools/list" and isinstance(raw.get("tools"), list):
            page = await off_loop(read_page, raw["tools"], modern=self._modern)
            self.listed.append(page)
            raw["tools"] = page.with_headers
        if (call := CURRENT_CALL.get()) is not None:
            call.structured = None
            if raw.get("structuredContent") is not None:  # any JSON: the library would look at all of it
                call.structured, raw["structuredContent"] = raw["structuredContent"], {}
        try:
            check_result(raw)
        except MessageLimitError as problem:
            raise MCPError(REPLY_TOO_LARGE, f"the reply {problem}") from None
        return raw

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, on_notify_intercept: OnNotifyIntercept | None = None, **more: Any
    ) -> None:
        """Drive the receive loop."""

        async def reporting(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            try:
                if holds_more(params, MAX_PARAMETER_VALUES):
                    raise MCPError(INVALID_PARAMS, f"{method} has more than {MAX_PARAMETER_VALUES:,} values")
                return await on_request(context, method, params)
            except (MCPError, ValidationError):
                self._on_refused(method)
                raise

        async def bounded(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> None:
            if not holds_more(params, MAX_PARAMETER_VALUES):
                await on_notify(context, method, params)

        await super().run(reporting, bounded, on_notify_intercept, **more)

    @property
    def _modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS


def first_error(error: ValidationError) -> str:
    """Return the first invalid place and what is wrong with it, without the value itself."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}"
