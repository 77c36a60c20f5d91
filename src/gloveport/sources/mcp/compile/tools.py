"""A server's list of tools → tools as programs get them. Pure: no connection, no credential, no I/O.

Nothing in the list is trusted: names become identifiers, texts are cleaned (M3), schemas are brought into the normal form,
and what can't be used is left out with a warning that names it. Whether a tool writes is decided by the host (B6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gloveport.sources.mcp.compile.names import identifiers
from gloveport.sources.mcp.tool_rows import MAX_SCHEMA_BYTES, ServerToolRow
from gloveport.sources.schemas.normaliser import normalise
from gloveport.sources.texts import clean

MAX_SHOWN_NAME_CHARS = 100
MAX_WARNINGS_PER_TOOL = 3
Warn = Callable[[str], None]


def compile_tools(listed: Iterable[Mapping[str, Any]], warn: Warn) -> Iterator[ServerToolRow]:
    """Yield the tools that can be used, each with the name that the server knows it by."""
    unique: dict[str, Mapping[str, Any]] = {}
    for each in listed:
        name = each["name"]
        if name in unique:
            warn(f"the server lists two tools called {_quoted(name)}; the second is left out")
        unique.setdefault(name, each)
    names = identifiers(unique)
    for name, each in unique.items():
        takes = each.get("inputSchema")
        if not isinstance(takes, dict) or takes.get("type") != "object":
            warn(f"the tool {_quoted(name)} is left out: it has no input schema of type object")
            continue
        yield ServerToolRow(
            name,
            names[name],
            clean(each.get("description") or each.get("title") or _title(each)),
            _normal(takes, f"the input schema of the tool {_quoted(name)}", {"type": "object"}, warn),
            _output(each, warn),
        )


def _title(tool: Mapping[str, Any]) -> Any:
    hints = tool.get("annotations")
    return hints.get("title") if isinstance(hints, dict) else None


def _output(tool: Mapping[str, Any], warn: Warn) -> msgspec.Raw:
    schema = tool.get("outputSchema")
    if schema is None:
        return msgspec.Raw(b"null")
    where = f"the output schema of the tool {_quoted(tool['name'])}"
    if not isinstance(schema, dict):
        warn(f"{where} is no schema and is left out")
        return msgspec.Raw(b"null")
    return _normal(schema, where, None, warn)


def _normal(schema: dict[str, Any], where: str, instead: Any, warn: Warn) -> msgspec.Raw:
    """Return the schema in the normal form, as JSON; `instead` where it is too large."""
    try:
        found = normalise(schema)
    except RecursionError:
        warn(f"{where} is nested too deeply and is not used")
        return msgspec.Raw(msgspec.json.encode(instead))
    for problem in found.warnings[:MAX_WARNINGS_PER_TOOL]:
        warn(f"{where}: {problem}")
    text = msgspec.json.encode(found.schema)
    if len(text) <= MAX_SCHEMA_BYTES:
        return msgspec.Raw(text)
    warn(f"{where} is larger than {MAX_SCHEMA_BYTES:,} bytes and is not used")
    return msgspec.Raw(msgspec.json.encode(instead))


def _quoted(name: str) -> str:
    return ascii(name[:MAX_SHOWN_NAME_CHARS])
