"""The texts and schemas of the agent tools, written so that a model uses them well.

They are in an agent's context all the time, so together they stay below 1,000 tokens, whatever is connected: the part that
depends on the catalog is cut at a fixed number of bytes, and states how much was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.catalog import Catalog
from gloveport.host.port import Gloveport
from gloveport.surfaces.terminal import visible_line
from gloveport.types import LANGUAGES, Tool

DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 8, 50
MAX_DESCRIBED_TOOLS = 20
MAX_SOURCES_BYTES, MAX_SOURCE_BYTES, NAMED_TOOLS, MAX_PACKAGES_CHARS = 1000, 110, 5, 240

INSTRUCTIONS = "Use search to find tools, describe to see their types, then execute ONE program that does the whole job."


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool as an agent sees it; schemas are JSON Schema objects."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    reads_only: bool


def describe_tools(port: Gloveport, agent: str, catalog: Catalog, *, opening: bool = False) -> tuple[AgentTool, ...]:
    """Return the tools of an agent; they name the sources of its catalog, those that failed, and what it may import."""
    execute = f"{_EXECUTE}\n- {_imports(port, agent)}"
    tools = (
        AgentTool(
            "search", "Find tools", f"{_SEARCH}\n{_connected(port, catalog, opening)}", _SEARCH_INPUT, _SEARCH_OUTPUT, True
        ),
        AgentTool("describe", "Show how tools are called", _DESCRIBE, _DESCRIBE_INPUT, _DESCRIBE_OUTPUT, True),
        AgentTool("execute", "Run a program", execute, _EXECUTE_INPUT, _EXECUTE_OUTPUT, False),
        AgentTool("resume", "Go on with a program", _RESUME, _RESUME_INPUT, _EXECUTE_OUTPUT, False),
    )
    return tools if port.holds_runs else tools[:-1]


def _connected(port: Gloveport, catalog: Catalog, opening: bool) -> str:
    lines = [_truncate(line, MAX_SOURCE_BYTES) for line in (*_broken(port, catalog), *_sources(port, catalog))]
    shown: list[str] = []
    used = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used > MAX_SOURCES_BYTES:
            shown.append(f"- and {len(lines) - len(shown):,} more: search names the source of each tool")
            break
        shown.append(line)
    shown += ["- others are still being opened"] if opening else []
    return "\n".join(["Connected:", *shown]) if shown else "Nothing is connected."


def _imports(port: Gloveport, agent: str) -> str:
    listed = port.imports.packages_of(agent)
    names = ", ".join(listed)
    if len(names) > MAX_PACKAGES_CHARS:
        names = names[:MAX_PACKAGES_CHARS].rpartition(", ")[0]
        names += f" and {len(listed) - names.count(', ') - 1:,} more"
    mount = port.imports.modules_mount
    modules = f" Modules of the project are below {mount}." if mount else ""
    return (f"Packages: {names}." if names else "No packages.") + modules


def _sources(port: Gloveport, catalog: Catalog) -> Iterator[str]:
    tools: dict[str, list[Tool]] = {}
    for tool in catalog.tools:
        tools.setdefault(tool.source, []).append(tool)
    for source in catalog.sources:
        if mine := tools.get(source.name):
            opened = port.opened_source(source.name)
            title = visible_line(opened.info.title) if opened else ""
            names = [catalog.path_of(tool).removeprefix(f"{source.name}.") for tool in mine[:NAMED_TOOLS]]
            about = title or ", ".join(names) + (", …" if len(mine) > len(names) else "")
            yield f"- {source.name} ({len(mine):,} {'tool' if len(mine) == 1 else 'tools'}): {about}"


def _broken(port: Gloveport, catalog: Catalog) -> Iterator[str]:
    for problem in port.problems:
        if problem.broken and catalog.tells_of(problem):
            yield f"- NOT connected: {visible_line(problem.source)}: {visible_line(problem.message)}"


def _truncate(text: str, max_bytes: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= max_bytes else raw[: max_bytes - 3].decode("utf-8", "ignore") + "…"


_SEARCH = "Find tools by what they do. Gives the paths for `describe` and `execute`."
_DESCRIBE = "Show how tools are called: documented types of arguments and results. Read this before you call a tool."
_EXECUTE = """Run a program in a sealed sandbox and get its result. Write ONE program that does the whole job: call tools, \
loop, filter, join, and return only what you need.
- TypeScript (default), JavaScript or Python. `await tools.<path>({...})`; Python: `await tools.<path>(a=1)`.
- Top-level await and return work; a trailing expression is the result. Independent calls: Promise.all / asyncio.gather.
- `for await (const page of tools.<path>.pages({...}))` goes through all pages of a tool that has them.
- A failed call throws ToolError (code, status, message, data, retryable). console.log / print is shown to you.
- No network. `session` (a name) keeps files and `state`. `emit(value)` shows something to the user; \
`emit({type: "image", mimeType: "image/png", data: bytes})` an image.
- A long result comes with a result_id; read on with {result_id, offset}."""

_RESUME = "Get the result of a program whose status was `waiting`, after the user has answered. It approves nothing."

_LANGUAGE = {"type": "string", "enum": list(LANGUAGES), "default": "typescript"}
_SEARCH_INPUT = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool should do, in a few words; empty for all."},
        "source": {"type": "string", "description": "Only tools of this source."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_SEARCH_LIMIT, "default": DEFAULT_SEARCH_LIMIT},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_READ_ON = {
    "result_id": {"type": "string", "description": "Where the rest of a long result is."},
    "next_offset": {"type": "integer"},
    "length": {"type": "integer"},
}
_SEARCH_OUTPUT = {
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
_DESCRIBE_INPUT = {
    "type": "object",
    "properties": {
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_DESCRIBED_TOOLS},
        "at": {"type": "string", "description": "Only this part of the result's type: items[].spec"},
        "language": _LANGUAGE,
    },
    "required": ["paths"],
    "additionalProperties": False,
}
_DESCRIBE_OUTPUT = {
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
        **_READ_ON,
    },
    "required": ["declarations", "missing"],
}
_EXECUTE_INPUT = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "The program."},
        "language": _LANGUAGE,
        "input": {"description": "The program's `input`."},
        "plan": {"type": "boolean", "description": "List writes, make none."},
        "session": {"type": "string"},
        "result_id": {"type": "string", "description": "Read on in a result."},
        "offset": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}
_RESUME_INPUT = {
    "type": "object",
    "properties": {"run": {"type": "string", "description": "The run that was waiting."}},
    "required": ["run"],
    "additionalProperties": False,
}
_EXECUTE_OUTPUT = {
    "type": "object",
    "properties": {
        "status": {"type": "string"},
        "value": {"description": "What the program returned."},
        "preview": {"type": "string", "description": "A part of a result that is too long to show at once."},
        **_READ_ON,
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
        "waiting": {"type": "integer", "description": "How many calls a person has to approve."},
        "plan": {"type": "object", "description": "The writes that were held back."},
        "next": {"type": "string"},
    },
    "required": ["status"],
}
INPUT_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "search": _SEARCH_INPUT,
    "describe": _DESCRIBE_INPUT,
    "execute": _EXECUTE_INPUT,
    "resume": _RESUME_INPUT,
}
