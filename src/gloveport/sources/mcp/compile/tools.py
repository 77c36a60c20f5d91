"""A server's list of tools → tools of ours.

Nothing in the list is trusted: names become identifiers, texts are cleaned (M3), annotations don't lower the policy (B6),
and what can't be used is left out with a warning that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jsonschema_rs
import mcp_types as mcp
import msgspec

from gloveport.sources.mcp.compile.names import identifiers
from gloveport.sources.texts import clean
from gloveport.types import Tool

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 60
DATA_KEYWORDS = frozenset({"default", "const", "enum", "examples"})


def compile_tools(
    source: str, listed: Iterable[mcp.Tool], *, trust_annotations: bool, warn: Callable[[str], None]
) -> dict[str, tuple[Tool, str]]:
    """Return the tools by address, each with the name that the server knows it by."""
    unique: dict[str, mcp.Tool] = {}
    for each in listed:
        if each.name in unique:
            warn(f"the server lists two tools called {_quoted(each.name)}; the second is left out")
        unique.setdefault(each.name, each)
    names = identifiers(unique)
    found: dict[str, tuple[Tool, str]] = {}
    for name, each in unique.items():
        problem = _schema_problem(each.input_schema)
        if problem:
            warn(f"the tool {_quoted(name)} is left out: its input schema {problem}")
            continue
        output = each.output_schema
        if output is not None and (problem := _schema_problem(output)):
            warn(f"the tool {_quoted(name)} has an output schema that {problem}; it is left out")
            output = None
        address = f"{source}.{names[name]}"
        found[address] = _tool(address, each, output, trust_annotations), name
    return found


def _tool(address: str, listed: mcp.Tool, output: dict[str, Any] | None, trust_annotations: bool) -> Tool:
    hints = listed.annotations or mcp.ToolAnnotations()
    return Tool(
        address,
        clean(listed.description or listed.title or hints.title),
        _cleaned(listed.input_schema),
        _cleaned(output) if output is not None else None,
        kind="mcp",
        writes=not (trust_annotations and hints.read_only_hint is True),
    )


def _schema_problem(schema: dict[str, Any]) -> str:
    """Return why a schema can't be used, or ""."""
    try:
        size = len(msgspec.json.encode(schema))
    except (RecursionError, UnicodeEncodeError):
        return "can't be written as JSON"
    if size > MAX_SCHEMA_BYTES:
        return f"is larger than {MAX_SCHEMA_BYTES:,} bytes"
    if _is_deeper(schema, MAX_SCHEMA_DEPTH):
        return "is nested too deeply"
    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=False)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return f"can't be used: {str(error).splitlines()[0][:200]}"
    return ""


def _refuse(uri: str) -> Any:
    """Refuse every URI: no schema may make the host fetch a URL or read a file, by `$ref` or by `$schema` (N10)."""
    raise ValueError("it is outside the schema")


def _is_deeper(value: Any, max_depth: int) -> bool:
    level = [value]
    for _ in range(max_depth):
        level = [below for each in level for below in _children(each)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _cleaned(value: Any) -> Any:
    """Return the schema with its titles and descriptions cleaned, and its data (defaults, enums …) unchanged."""
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: below if key in DATA_KEYWORDS else clean(below) if key in ("title", "description") and isinstance(below, str)
        else _cleaned(below)
        for key, below in value.items()
    }  # fmt: skip


def _quoted(name: str) -> str:
    return ascii(name[:100])
