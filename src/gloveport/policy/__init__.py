"""May a call happen, as whom, to where. The rules stand behind one question, which the bridge asks about every call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gloveport.types import Decision, Tool

__all__ = ["AllowAll", "Policy"]


class Policy(Protocol):
    """Decides about calls."""

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """The decision on a call; without `args`, what would hold for the tool before any are known."""
        ...


class AllowAll:
    """Lets every call happen: the default for functions that the program's owner passed in himself."""

    _yes = Decision("allow")

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Allow."""
        return self._yes
