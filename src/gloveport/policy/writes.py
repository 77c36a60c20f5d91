"""The default rule: calls that write are denied until the settings of their source allow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gloveport.policy import AllowAll, Policy
from gloveport.types import Decision, Tool

_YES = Decision("allow")


@dataclass(frozen=True, slots=True)
class SourceWrites:
    """What the settings of a source open, and where they are.

    `patterns` are over its addresses without its name: `issues.*`, or `*` for all. `place` is the file and line of its
    settings; it is empty for a source of a command line. With `trusts_annotations`, an MCP server says what only reads.
    """

    patterns: tuple[str, ...] = ()
    place: str = ""
    trusts_annotations: bool = False


_SHUT = SourceWrites()


def choose_policy(tools: Iterable[Tool], allowed: Mapping[str, SourceWrites]) -> Policy:
    """Return the policy for these tools: `AllowAll` where only plain functions can write, else `WritesDenied`."""
    if any(tool.writes and tool.kind != "function" for tool in tools):
        return WritesDenied(allowed)
    return AllowAll()


class WritesDenied:
    """Allows reads and plain functions, and those writes that the settings of their source allow, by its name."""

    def __init__(self, allowed: Mapping[str, SourceWrites]) -> None:
        self._allowed = allowed

    def decide(self, tool: Tool, args: Mapping[str, Any] | None) -> Decision:
        """Allow the call, or deny it with the setting that would allow it."""
        if not tool.writes or tool.kind == "function":
            return _YES
        source, _, path = tool.address.partition(".")
        rules = self._allowed.get(source, _SHUT)
        if any(fnmatchcase(path, pattern) for pattern in rules.patterns):
            return _YES
        does = "may write" if tool.kind == "mcp" else "writes"  # an MCP server that does not state it may do either
        return Decision("deny", f"it {does}, and writes of {source} are shut", _setting(tool, source, path, rules))


def _setting(tool: Tool, source: str, path: str, rules: SourceWrites) -> str:
    """Return the change that opens the tool, with the patterns that are open already."""
    patterns = ", ".join(f'"{pattern}"' for pattern in (*rules.patterns, path))
    place = f" in {rules.place}" if rules.place else ""
    setting = f'set `writes = [{patterns}]` (or `writes = "allow"`) under [sources.{source}]{place}'
    if tool.kind == "mcp" and not rules.trusts_annotations:
        setting += "; `trust_annotations = true` there opens the tools that the server itself calls read-only"
    return setting
