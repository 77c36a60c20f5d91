"""What a session needs of the way to its server, and what that way may say about a call that is under way."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Protocol

from mcp.client import Transport

from gloveport.errors import ToolError

REPLY_TOO_LARGE = -32019
"""The JSON-RPC code with which a connection answers in place of a reply that was larger than allowed."""


class Call:
    """A call that is under way: its deadline, and what the connection found to be wrong with it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.clock: asyncio.Timeout | None = None
        self.problem: ToolError | None = None
        self.refused: str | None = None  # what the server asked for meanwhile and did not get
        self.forgotten = False  # the server did not know the session: nothing was done

    def pause(self) -> None:
        """Lets the deadline stand still, while a person is asked."""
        if self.clock:
            self.clock.reschedule(None)

    def resume(self, seconds: float) -> None:
        """A new deadline, after a person was asked."""
        if self.clock:
            self.clock.reschedule(asyncio.get_running_loop().time() + seconds)


CURRENT: ContextVar[Call | None] = ContextVar("CURRENT", default=None)
"""The call that this context belongs to: the HTTP request of a call runs in a copy of its caller's context."""


class Connection(Protocol):
    """One way to a server, used once."""

    lost: asyncio.Event
    """Set when nothing can come from the server any more."""

    def open(self) -> Transport:
        """The streams of messages, as the library's transports give them."""
        ...

    def last_words(self) -> str:
        """How the server ended and what it said last, without secrets; empty when nothing is known."""
        ...
