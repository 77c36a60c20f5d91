"""What a call may do: whether it is allowed, with which credentials, to which addresses.

policy.decide     the bridge asks it about every call
writes.py         the only rule so far: writes are denied until the source's settings allow them
credentials.py    secrets, and where they come from
redaction.py      removes echoed secrets from replies
egress/           the only HTTP client
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gloveport.types import Decision, Tool

__all__ = ["AllowAll", "Policy"]


class Policy(Protocol):
    """Decides whether a call may be made."""

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Return the decision on a call. Without `args`, return what holds for the tool whatever its arguments."""
        ...


class AllowAll:
    """Allows every call. It is the default for functions that the owner of the port passed in."""

    _yes = Decision("allow")

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Allow the call."""
        return self._yes
