"""Direct mode: chosen tools of a catalog as ordinary MCP tools, for clients that don't write programs.

A call is a run of one line. So rules, approvals, limits and the record are those of every run.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from mcp_types import Tool as McpTool
from mcp_types import ToolAnnotations

from gloveport.catalog import Catalog
from gloveport.catalog.tool_filter import ToolFilter
from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS
from gloveport.surfaces.terminal import visible_line
from gloveport.types import FETCH_KIND, Tool

MAX_DIRECT_TOOLS = 200
MAX_NAME_CHARS, DIGEST_CHARS = 64, 8
MAX_DESCRIPTION_CHARS = 2000
MAX_ANSWER_CHARS = 100_000  # of one answer: a client without `execute` can't read on
RESUME = "resume"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

logger = logging.getLogger("gloveport")


class DirectTools:
    """The tools of one catalog that an agent gets directly, by their names in MCP."""

    def __init__(self, catalog: Catalog, patterns: tuple[str, ...]) -> None:
        self.catalog, self.patterns = catalog, patterns
        seen = ToolFilter(patterns)
        chosen = [tool for tool in catalog.tools if tool.kind != FETCH_KIND and seen.takes(tool.address)]
        if len(chosen) > MAX_DIRECT_TOOLS:
            logger.warning("only %d of %d tools are offered directly: narrow the patterns", MAX_DIRECT_TOOLS, len(chosen))
        self.by_name = mcp_names(chosen[:MAX_DIRECT_TOOLS])

    def listed(self) -> list[McpTool]:
        """Return the tools as MCP lists them."""
        return [_to_mcp(name, tool) for name, tool in self.by_name.items()]


def mcp_names(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    """Return the tools by names that are legal in MCP. Where names are the same, each gets a digest."""
    listed = list(tools)
    plain = {tool.address: _NOT_IN_NAMES.sub("_", tool.address.removeprefix("local.")) for tool in listed}
    counts = Counter(name[:MAX_NAME_CHARS].lower() for name in plain.values())
    found: dict[str, Tool] = {}
    for tool in listed:
        name = plain[tool.address]
        clashes = counts[name[:MAX_NAME_CHARS].lower()] > 1 or name in INPUT_SCHEMAS
        if clashes or len(name) > MAX_NAME_CHARS:
            digest = hashlib.sha256(tool.address.encode()).hexdigest()[:DIGEST_CHARS]
            name = f"{name[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"
        if clashes:
            logger.warning("another tool would be called like %s in MCP: it is %s", tool.address, name)
        found[name] = tool
    return found


def program_of(tool: Tool) -> str:
    """Return the program that calls the tool with the input of the run: the parts of an address are identifiers."""
    return f"await tools.{tool.address}(input)"


def _to_mcp(name: str, tool: Tool) -> McpTool:
    return McpTool(
        name=name,
        description="\n".join(map(visible_line, tool.description.splitlines()))[:MAX_DESCRIPTION_CHARS] or None,
        input_schema={"type": "object", **tool.input_schema},
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=tool.writes, open_world_hint=tool.kind != "function"
        ),
    )
