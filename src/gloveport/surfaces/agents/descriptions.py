"""What an agent is describe_tools: three tools, with texts that make a model use them well.

An agent carries these texts all the time, so together they stay below 1,000 tokens, whatever is connected: what depends on
the catalog is cut to a fixed number of bytes, and says how much was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.host.port import Gloveport
from gloveport.surfaces.terminal import visible_line
from gloveport.types import LANGUAGES, Tool

FOUND, MOST_FOUND = 8, 50
MOST_DESCRIBED = 20
SOURCES_BYTES, SOURCE_BYTES, NAMED_TOOLS = 1000, 110, 5

INSTRUCTIONS = "Use search to find tools, describe to see their types, then execute ONE program that does the whole job."


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool that an agent is describe_tools; schemas are JSON Schema objects."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    reads_only: bool


def describe_tools(port: Gloveport, *, opening: bool = False) -> tuple[AgentTool, ...]:
    """The tools; their descriptions name the sources that are connected now, and those that could not be."""
    return (
        AgentTool("search", "Find tools", f"{_SEARCH}\n{_connected(port, opening)}", _SEARCH_TAKES, _SEARCH_GIVES, True),
        AgentTool("describe", "Show how tools are called", _DESCRIBE, _DESCRIBE_TAKES, _DESCRIBE_GIVES, True),
        AgentTool("execute", "Run a program", _EXECUTE, _EXECUTE_TAKES, _EXECUTE_GIVES, False),
    )


def _connected(port: Gloveport, opening: bool) -> str:
    lines = [_clipped(line, SOURCE_BYTES) for line in (*_broken(port), *_sources(port))]
    shown: list[str] = []
    used = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used > SOURCES_BYTES:
            shown.append(f"- and {len(lines) - len(shown):,} more: search names the source of each tool")
            break
        shown.append(line)
    shown += ["- others are still being opened"] if opening else []
    return "\n".join(["Connected:", *shown]) if shown else "Nothing is connected."


def _sources(port: Gloveport) -> Iterator[str]:
    tools: dict[str, list[Tool]] = {}
    for tool in port.catalog.tools:
        tools.setdefault(tool.source, []).append(tool)
    for source in port.catalog.sources:
        if mine := tools.get(source.name):
            said = visible_line(str(getattr(source, "title", "") or ""))
            names = [port.catalog.path_of(tool).removeprefix(f"{source.name}.") for tool in mine[:NAMED_TOOLS]]
            about = said or ", ".join(names) + (", …" if len(mine) > len(names) else "")
            yield f"- {source.name} ({len(mine):,} {'tool' if len(mine) == 1 else 'tools'}): {about}"


def _broken(port: Gloveport) -> Iterator[str]:
    for problem in port.problems:
        if problem.broken:
            yield f"- NOT connected: {visible_line(problem.source)}: {visible_line(problem.message)}"


def _clipped(text: str, most: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= most else raw[: most - 3].decode("utf-8", "ignore") + "…"


_SEARCH = "Find tools by what they do. Gives the paths for `describe` and `execute`."
_DESCRIBE = "Show how tools are called: documented types of arguments and results. Read this before you call a tool."
_EXECUTE = """Run a program in a sealed sandbox and get its result. Write ONE program that does the whole job: call tools, \
loop, filter, join, and return only what you need.
- TypeScript (default), JavaScript or Python. `await tools.<path>({...})`; Python: `await tools.<path>(a=1)`.
- Top-level await and return work; a trailing expression is the result. Independent calls: Promise.all / asyncio.gather.
- `for await (const page of tools.<path>.pages({...}))` goes through all pages of a tool that has them.
- A failed call throws ToolError (code, status, message, data, retryable). console.log / print is shown to you.
- No network, files or packages: tools and the standard library. `emit(value)` shows something to the user; \
`emit({type: "image", mimeType: "image/png", data: bytes})` an image.
- A long result comes with a result_id; read on with {result_id, offset}."""

_LANGUAGE = {"type": "string", "enum": list(LANGUAGES), "default": "typescript"}
_SEARCH_TAKES = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool should do, in a few words; empty for all."},
        "source": {"type": "string", "description": "Only tools of this source."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_REST = {
    "result_id": {"type": "string", "description": "Where the rest of a long result is."},
    "next_offset": {"type": "integer"},
    "length": {"type": "integer"},
}
_SEARCH_GIVES = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "description": {"type": "string"},
                    "writes": {"type": "boolean"},
                    "pages": {"type": "boolean"},
                },
                "required": ["path", "description", "writes", "pages"],
            },
        },
        "total": {"type": "integer"},
    },
    "required": ["tools", "total"],
}
_DESCRIBE_TAKES = {
    "type": "object",
    "properties": {
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_DESCRIBED},
        "language": _LANGUAGE,
    },
    "required": ["paths"],
    "additionalProperties": False,
}
_DESCRIBE_GIVES = {
    "type": "object",
    "properties": {
        "declarations": {"type": "string"},
        "missing": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "similar": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["path", "similar"],
            },
        },
        **_REST,
    },
    "required": ["declarations", "missing"],
}
_EXECUTE_TAKES = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "The program."},
        "language": _LANGUAGE,
        "input": {"description": "Data that the program finds as `input`."},
        "result_id": {"type": "string", "description": "Instead of code: read on in an earlier result."},
        "offset": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}
_EXECUTE_GIVES = {
    "type": "object",
    "properties": {
        "status": {"type": "string"},
        "value": {"description": "What the program returned."},
        "preview": {"type": "string", "description": "A part of a result that is too long to show at once."},
        **_REST,
        "error": {"type": "object"},
        "logs": {"type": "string"},
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "ok": {"type": "integer"}, "failed": {"type": "integer"}},
            },
        },
        "warnings": {"type": "array", "items": {"type": "string"}},
        "run": {"type": "string"},
    },
    "required": ["status"],
}
TAKES: Mapping[str, Mapping[str, Any]] = {"search": _SEARCH_TAKES, "describe": _DESCRIBE_TAKES, "execute": _EXECUTE_TAKES}
