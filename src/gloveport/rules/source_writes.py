"""`writes = …` of a source: the short form for rules that allow its tools, and the setting that would open one more."""

from __future__ import annotations

from dataclasses import dataclass

from gloveport.types import Tool


@dataclass(frozen=True, slots=True)
class SourceWrites:
    """What the settings of a source open, and where they are.

    `patterns` are over its addresses without its name: `issues.*`, or `*` for all. `place` is the file and line of its
    settings; it is empty for a source of a command line. With `trusts_annotations`, an MCP server says what only reads.
    With `denied`, what no rule allows is denied instead of asked about.
    """

    patterns: tuple[str, ...] = ()
    place: str = ""
    trusts_annotations: bool = False
    denied: bool = False

    @property
    def shown_place(self) -> str:
        """The place, to follow the name of the section."""
        return f" in {self.place}" if self.place else ""

    def addresses(self, source: str) -> tuple[str, ...]:
        """Return the patterns with the name of the source."""
        return tuple(f"{source}.{pattern}" for pattern in self.patterns)


def opening_setting(tool: Tool, opened: SourceWrites) -> str:
    """Return the change that opens a tool, with the patterns that are open already."""
    source, _, path = tool.address.partition(".")
    patterns = ", ".join(f'"{pattern}"' for pattern in (*opened.patterns, path))
    setting = f'set `writes = [{patterns}]` (or `writes = "allow"`) under [sources.{source}]{opened.shown_place}'
    if tool.kind == "mcp" and not opened.trusts_annotations:
        setting += "; `trust_annotations = true` there opens the tools that the server itself calls read-only"
    return setting
