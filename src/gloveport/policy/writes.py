"""Writes stay shut until someone opens them: the rule that holds while there are no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gloveport.types import Decision, Tool

_YES = Decision("allow")


class WritesShut:
    """Lets reads and plain functions happen, and of what writes only what its source's settings open.

    `opened` has for each source the patterns over its addresses, without its name: `issues.*`, or `*` for all.
    """

    def __init__(self, opened: Mapping[str, Sequence[str]]) -> None:
        self._opened = opened

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Allow, or deny with the line of configuration that would open it."""
        if not tool.writes or tool.kind == "function":
            return _YES
        source, _, path = tool.address.partition(".")
        if any(fnmatchcase(path, pattern) for pattern in self._opened.get(source, ())):
            return _YES
        line = f'writes = ["{path}"]'
        does = "may write" if tool.kind == "mcp" else "writes"  # a server that says nothing of it may do anything
        return Decision("deny", f'it {does}. To open it: `{line}` (or `writes = "allow"`) under [sources.{source}]')
