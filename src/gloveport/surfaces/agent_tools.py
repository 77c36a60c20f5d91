"""What an agent gets of a port: `search`, `describe` and `execute`, with texts that make a model use them well.

The same three stand behind the MCP server and behind `code_tool`; each answer is plain data and a text for the model.
"""

from __future__ import annotations

import secrets
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gloveport.catalog import pystubs
from gloveport.errors import OptionError
from gloveport.host import NO_INPUT, Gloveport, OnEvent
from gloveport.sandbox.values import to_json
from gloveport.surfaces.outcome_json import outcome_document, to_text
from gloveport.types import LANGUAGES, Outcome

TEXT_BUDGET = 24_000
KEPT_RESULTS, KEPT_BYTES = 64, 64 * 1024 * 1024
MOST_SOURCES = 12
FOUND, MOST_FOUND = 8, 50


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool that an agent is offered; schemas are JSON Schema objects."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent gets back: data that fits the tool's output schema, the text for the model, what was emitted."""

    data: Mapping[str, Any]
    text: str
    failed: bool = False
    emitted: tuple[Any, ...] = ()


class AgentTools:
    """The tools of one agent over a port. Results that are too long for a text are kept here, for this agent alone."""

    def __init__(self, port: Gloveport, *, budget: int = TEXT_BUDGET) -> None:
        self._port = port
        self._budget = budget
        self._kept = _Kept()

    def listed(self) -> tuple[AgentTool, ...]:
        """The tools with their descriptions, which name the sources that are connected now."""
        return tuple(AgentTool(name, make(self._port), taken, given) for name, (make, taken, given) in _TOOLS.items())

    async def call(self, name: str, args: Mapping[str, Any], on_event: OnEvent | None = None) -> Answer:
        """What the tool answers; raises OptionError for arguments that make no sense."""
        if name == "search":
            return self._search(args)
        if name == "describe":
            return self._describe(args)
        if name == "execute":
            return await self._execute(args, on_event)
        raise OptionError(f"there is no tool `{name}`", hint=f"the tools are {', '.join(_TOOLS)}")

    def _search(self, args: Mapping[str, Any]) -> Answer:
        query, source, limit = args.get("query", ""), args.get("source"), args.get("limit", FOUND)
        catalog = self._port.catalog
        names = [one.name for one in catalog.sources]
        if source is not None and source not in names:
            raise OptionError(f"there is no source `{source}`", hint=f"the sources are {', '.join(names)}")
        found = catalog.search(query, source=source, limit=min(limit, MOST_FOUND))
        rows = [
            {
                "path": catalog.spelled(tool),
                "description": tool.description.partition("\n")[0][:200],
                "writes": tool.writes,
                "pages": tool.pages,
            }
            for tool in found.tools
        ]
        lines = [
            f"{len(rows):,} of {found.total:,}" + (" (be more precise to see others)" if found.total > len(rows) else "")
        ]
        lines += [f"tools.{row['path']}{' [writes]' if row['writes'] else ''} - {row['description']}" for row in rows]
        if not rows:
            lines.append("Nothing matches; try other words, or an empty query for everything.")
        return Answer({"tools": rows, "total": found.total}, "\n".join(lines))

    def _describe(self, args: Mapping[str, Any]) -> Answer:
        paths, language = args.get("paths") or (), args.get("language", "typescript")
        catalog = self._port.catalog
        found, missing = [], []
        for path in paths:
            name = path.removeprefix("tools.")
            tool = catalog.find(name)
            if tool is None:
                missing.append({"path": path, "similar": list(catalog.suggest(name))})
            else:
                found.append((catalog.spelled(tool), tool))
        if language == "python":
            text = pystubs.declaration(found) if found else ""
        else:
            text = "\n".join(described.typescript for path, _ in found if (described := catalog.describe(path)))
        for row in missing:
            meant = f"; did you mean {' or '.join(row['similar'])}?" if row["similar"] else "; use search"
            text += f"\n// no tool {row['path']}{meant}"
        paged = [path for path, tool in found if tool.pages]
        if paged:
            text += f"\n// {', '.join(paged)}: `.pages(args)` goes through all pages, `for await` (Python: `async for`)"
        kept, rest = self._fitted(text)
        return Answer({"declarations": kept, "missing": missing, **rest}, kept, failed=bool(missing and not found))

    async def _execute(self, args: Mapping[str, Any], on_event: OnEvent | None) -> Answer:
        if args.get("result_id") is not None:
            return self._more(args["result_id"], args.get("offset", 0))
        if not isinstance(args.get("code"), str):
            raise OptionError("`code` is missing", hint="give the program's text, or the result_id of an earlier result")
        outcome = await self._port.run(
            args["code"],
            language=args.get("language", "typescript"),
            input=args.get("input", NO_INPUT),
            on_event=on_event,
        )
        return self._told(outcome)

    def _told(self, outcome: Outcome) -> Answer:
        document = outcome_document(outcome)
        data: dict[str, Any] = {name: document[name] for name in ("status", "run", "warnings")}
        data["calls"] = [{"tool": call.tool, "status": call.status, "error": call.error} for call in outcome.calls]
        if outcome.error is not None:
            data["error"] = {name: value for name, value in document["error"].items() if value is not None}
        value = to_json(outcome.value)
        text, rest = self._fitted(value if isinstance(value, str) else to_text(value, indented=False))
        data |= {"value": value} if not rest else {"preview": text, **rest}
        logs, log_rest = self._fitted("\n".join(line.text for line in outcome.logs))
        data["logs"] = logs
        parts = [_failure_text(outcome) if outcome.error else text if outcome.value is not None else "(no value)"]
        parts += [_more_text(rest)] if rest else []
        parts += [f"--- logs ---\n{logs}{_more_text(log_rest)}"] if logs else []
        parts += [f"warning: {warning}" for warning in outcome.warnings]
        return Answer(data, "\n".join(part for part in parts if part), failed=not outcome.ok, emitted=outcome.emitted)

    def _more(self, result_id: str, offset: int) -> Answer:
        whole = self._kept.get(result_id)
        if whole is None:
            raise OptionError(
                f"there is no result `{str(result_id)[:60]}`", hint="results are kept for a while; run it again"
            )
        part, end = whole[offset : offset + self._budget], offset + self._budget
        rest = {"result_id": result_id, "next_offset": end, "length": len(whole)} if end < len(whole) else {}
        return Answer({"status": "completed", "preview": part, **rest}, part + (_more_text(rest) if rest else ""))

    def _fitted(self, text: str) -> tuple[str, dict[str, Any]]:
        """The text within the budget, and where the rest of it is."""
        if len(text) <= self._budget:
            return text, {}
        kept = self._kept.put(text)
        return text[: self._budget], {"result_id": kept, "next_offset": self._budget, "length": len(text)}


def _failure_text(outcome: Outcome) -> str:
    error = outcome.error
    assert error is not None
    lines = [f"{error.code}: {error.message}"]
    if error.line is not None:
        lines.append(f"line {error.line}, column {error.column}")
    lines += [error.frame] if error.frame else []
    lines += [f"hint: {error.hint}"] if error.hint else []
    made = Counter(call.tool for call in outcome.calls if call.status == "ok")
    if made:
        lines.append("calls that were made: " + ", ".join(f"{tool} × {count}" for tool, count in made.items()))
    return "\n".join(lines)


def _more_text(rest: Mapping[str, Any]) -> str:
    if not rest:
        return ""
    told = f"{rest['next_offset']:,} of {rest['length']:,} characters"
    return f'\n[{told}; read on with execute({{result_id: "{rest["result_id"]}", offset: {rest["next_offset"]}}})]'


@dataclass(slots=True)
class _Kept:
    """The latest results that were too long to show, bounded in number and size; ids can't be guessed."""

    _texts: OrderedDict[str, str] = field(default_factory=OrderedDict)
    _size: int = 0

    def put(self, text: str) -> str:
        key = secrets.token_hex(16)
        self._texts[key] = text
        self._size += len(text)
        while len(self._texts) > KEPT_RESULTS or (self._size > KEPT_BYTES and len(self._texts) > 1):
            _, gone = self._texts.popitem(last=False)
            self._size -= len(gone)
        return key

    def get(self, key: Any) -> str | None:
        return self._texts.get(key) if isinstance(key, str) else None


# The texts. All three together stay below 1,000 tokens, whatever is connected.


def _search_text(port: Gloveport) -> str:
    return f"Find tools by what they do. Returns paths for `describe` and `execute`.\n{_sources_text(port)}"


def _sources_text(port: Gloveport) -> str:
    counts = Counter(tool.source for tool in port.catalog.tools)
    lines = []
    for source in port.catalog.sources:
        if counts[source.name]:
            title = str(getattr(source, "title", "") or "")[:60]
            lines.append(f"- {source.name}: {counts[source.name]:,} tools{f' ({title})' if title else ''}")
    more = [f"- and {len(lines) - MOST_SOURCES} more sources"] if len(lines) > MOST_SOURCES else []
    return "\n".join(["Connected:", *lines[:MOST_SOURCES], *more]) if lines else "Nothing is connected yet."


def _describe_text(port: Gloveport) -> str:
    return "Show how tools are called: documented types of arguments and results. Read this before you call a tool."


def _execute_text(port: Gloveport) -> str:
    return """Run a program in a sealed sandbox and get its result. Write ONE program that does the whole job: call tools, \
loop, filter, join, and return only what you need.
- TypeScript (default), JavaScript or Python. `await tools.<source>.<name>({...})`; Python: `await tools.x.y(a=1)`.
- Top-level await and return work; a trailing expression is the result. Independent calls: Promise.all / asyncio.gather.
- `for await (const page of tools.x.list.pages({...}))` goes through all pages of a tool that has them.
- A failed call throws ToolError (code, status, message, data, retryable). console.log / print is shown to you.
- No network, files or packages; only tools and the standard library. `emit(value)` shows something to the user.
- A long result comes with a result_id; read on with {result_id, offset}."""


_LANGUAGE = {"type": "string", "enum": list(LANGUAGES), "default": "typescript"}
_SEARCH_TAKES = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool should do, in a few words."},
        "source": {"type": "string", "description": "Only tools of this source."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_SEARCH_GIVES = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}, "total": {"type": "integer"}},
    "required": ["tools", "total"],
}
_DESCRIBE_TAKES = {
    "type": "object",
    "properties": {
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20},
        "language": _LANGUAGE,
    },
    "required": ["paths"],
    "additionalProperties": False,
}
_DESCRIBE_GIVES = {
    "type": "object",
    "properties": {"declarations": {"type": "string"}, "missing": {"type": "array", "items": {"type": "object"}}},
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
        "preview": {"type": "string", "description": "The start of a result that is too long."},
        "result_id": {"type": "string"},
        "next_offset": {"type": "integer"},
        "length": {"type": "integer"},
        "error": {"type": "object"},
        "logs": {"type": "string"},
        "calls": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "run": {"type": "string"},
    },
    "required": ["status"],
}
_TOOLS = {
    "search": (_search_text, _SEARCH_TAKES, _SEARCH_GIVES),
    "describe": (_describe_text, _DESCRIBE_TAKES, _DESCRIBE_GIVES),
    "execute": (_execute_text, _EXECUTE_TAKES, _EXECUTE_GIVES),
}
