"""The connection between a session and its server, and what a connection may report about a call that it carries."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Protocol

from mcp.client import Transport

from gloveport.errors import ToolError

REPLY_TOO_LARGE = -32019
"""The JSON-RPC error code that a connection delivers in place of a reply that was larger than allowed."""


class ActiveCall:
    """A call in progress: its deadline, and the problem that the connection found with it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.deadline: asyncio.Timeout | None = None
        self.problem: ToolError | None = None
        self.refused: str | None = None  # what the server requested during the call and did not get
        self.structured: Any = None  # the structured content of the reply, which the library does not get
        self.session_unknown = False  # the server did not know the session, so it has done nothing

    def pause(self) -> None:
        """Suspend the deadline while a person is asked."""
        if self.deadline:
            self.deadline.reschedule(None)

    def resume(self, seconds: float) -> None:
        """Set a new deadline after a person was asked."""
        if self.deadline:
            self.deadline.reschedule(asyncio.get_running_loop().time() + seconds)


CURRENT_CALL: ContextVar[ActiveCall | None] = ContextVar("CURRENT_CALL", default=None)
"""The call that this context belongs to: the HTTP request of a call runs in a copy of its caller's context."""


class ServerConnection(Protocol):
    """A connection to a server, used for one session."""

    lost: asyncio.Event
    """Set when nothing can come from the server any more."""

    def open(self) -> Transport:
        """Return the message streams, in the form of the library's transports."""
        ...

    def claim(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the whole result of a reply; a connection may carry a reference to it."""
        ...

    def exit_report(self) -> str:
        """Return how the server ended and what it wrote last, without secrets; empty when nothing is known."""
        ...
