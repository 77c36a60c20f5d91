"""The default rule: calls that write are denied until the settings of their source allow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gloveport.policy import AllowAll, Policy
from gloveport.types import Decision, Tool

_YES = Decision("allow")


def choose_policy(tools: Iterable[Tool], allowed: Mapping[str, Sequence[str]]) -> Policy:
    """Return the policy for these tools: `AllowAll` where only plain functions can write, else `WritesDenied`."""
    if any(tool.writes and tool.kind != "function" for tool in tools):
        return WritesDenied(allowed)
    return AllowAll()


class WritesDenied:
    """Allows reads and plain functions, and those writes that the settings of their source allow.

    `allowed` has for each source the patterns over its addresses without its name: `issues.*`, or `*` for all.
    """

    def __init__(self, allowed: Mapping[str, Sequence[str]]) -> None:
        self._allowed = allowed

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Allow the call, or deny it with the setting that would allow it."""
        if not tool.writes or tool.kind == "function":
            return _YES
        source, _, path = tool.address.partition(".")
        if any(fnmatchcase(path, pattern) for pattern in self._allowed.get(source, ())):
            return _YES
        line = f'writes = ["{path}"]'
        does = "may write" if tool.kind == "mcp" else "writes"  # an MCP server that does not state it may do either
        setting = f'set `{line}` (or `writes = "allow"`) under [sources.{source}]'
        return Decision("deny", f"it {does}, and writes of {source} are shut", setting)
