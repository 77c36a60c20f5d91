"""Notifications to an MCP client while a run goes on: progress for each tool call, and logs if it asked for them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, get_args

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types import (
    LOG_LEVEL_META_KEY,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gloveport.surfaces.agents.tools import replace_surrogates
from gloveport.types import Event, LogLine

FLUSH_TIMEOUT_SECONDS = 10.0
LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_MCP_LEVELS: dict[str, LoggingLevel] = {"debug": "debug", "warn": "warning", "error": "error"}


class ProgressReporter:
    """Sends the notifications of one request, in order; all are sent, or given up, when its `async with` block ends."""

    def __init__(self, context: ServerRequestContext[Any, Any], level: LoggingLevel | None) -> None:
        meta = context.meta or {}
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:  # each request carries the log level it wants
            level = meta.get(LOG_LEVEL_META_KEY)
        self._context = context
        self._min_level = LEVELS.index(level) if level in LEVELS else len(LEVELS)
        self._progress = meta.get("progress_token") is not None
        self._queue: asyncio.Queue[Coroutine[Any, Any, None] | None] = asyncio.Queue()
        self._calls = 0
        self._sending: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """True when the client asked for progress or logs."""
        return self._progress or self._min_level < len(LEVELS)

    def on_event(self, event: Event) -> None:
        """Queue the notification for an event of the run, if the client wants it."""
        if event.kind == "call-started" and event.call is not None and self._progress:
            self._calls += 1
            self._queue.put_nowait(self._context.session.report_progress(self._calls, None, f"tools.{event.call.tool}"))
        elif event.log is not None:
            level = _MCP_LEVELS.get(event.log.level, "info")
            if LEVELS.index(level) >= self._min_level:
                self._queue.put_nowait(self._log(level, event.log))

    async def _log(self, level: LoggingLevel, line: LogLine) -> None:
        params = LoggingMessageNotificationParams(level=level, logger="program", data=replace_surrogates(line.text))
        note = LoggingMessageNotification(params=params)
        await self._context.session.send_notification(note, related_request_id=self._context.request_id)

    async def _send(self) -> None:
        while (sending := await self._queue.get()) is not None:
            await sending

    async def __aenter__(self) -> ProgressReporter:
        if self.wanted:
            self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._sending is None:
            return
        if kind is None:
            self._queue.put_nowait(None)
        else:
            self._sending.cancel()
        with anyio.CancelScope(shield=kind is not None):
            await asyncio.wait([self._sending], timeout=FLUSH_TIMEOUT_SECONDS)
        self._sending.cancel()  # a client that does not read its notifications only gets the result
        while not self._queue.empty():
            if (unsent := self._queue.get_nowait()) is not None:
                unsent.close()
