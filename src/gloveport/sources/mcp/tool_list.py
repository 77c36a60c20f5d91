"""A server's list of tools, as it was sent: kept as texts for the compiler, and never validated on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from mcp.shared.inbound import find_invalid_x_mcp_header

from gloveport.sources.mcp.pagination import MAX_LIST_ITEMS
from gloveport.sources.mcp.tool_rows import MAX_NAME_CHARS, MAX_SCHEMA_BYTES

MAX_TOOL_BYTES = 4 * MAX_SCHEMA_BYTES
MAX_PART_BYTES = 1024 * 1024
MAX_HEADER_STEPS = 10_000
"""How many properties of one page are searched for headers."""
MAX_HEADER_DEPTH = 5
MAX_HEADER_TOOLS = 500
MAX_SHOWN_NAME_CHARS = 100
HEADER_KEY = "x-mcp-header"


class ListedTool(NamedTuple):
    """A tool as the server listed it. `read_only` is what it says of itself, which counts only if the user trusts that."""

    name: str
    read_only: bool
    text: bytes


@dataclass(slots=True)
class ListedPage:
    """One page: the tools, warnings about entries that are none, and for the library, the tools that want headers."""

    tools: list[ListedTool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    with_headers: list[dict[str, Any]] = field(default_factory=list)


def read_page(entries: Sequence[Any], *, modern: bool) -> ListedPage:
    """Return the tools among the entries of one page.

    In protocol 2026-07-28, an argument may also be sent as a header, which `x-mcp-header` in its schema names. The library
    does that, for the tools that it has seen.
    """
    page = ListedPage()
    steps = 0
    for entry in entries[:MAX_LIST_ITEMS]:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or len(name) > MAX_NAME_CHARS:
            page.warnings.append(f"the tool {_shown(name)} is not valid MCP, so it is left out: its name is no short text")
            continue
        try:
            text = msgspec.json.encode(entry)
        except (UnicodeEncodeError, RecursionError, msgspec.MsgspecError):
            text = b""
        if not 0 < len(text) <= MAX_TOOL_BYTES:
            problem = f"is larger than {MAX_TOOL_BYTES:,} bytes" if text else "can't be written as JSON"
            page.warnings.append(f"the tool {_shown(name)} {problem}, so it is left out")
            continue
        if modern and HEADER_KEY.encode() in text:
            schema, visited = _header_schema(entry.get("inputSchema"), MAX_HEADER_STEPS - steps)
            steps += visited
            if problem := find_invalid_x_mcp_header(schema):
                page.warnings.append(f"the tool {_shown(name)} is not valid MCP, so it is left out: {problem[:200]}")
                continue
            if len(page.with_headers) < MAX_HEADER_TOOLS:
                page.with_headers.append({"name": name, "inputSchema": schema})
        hints = entry.get("annotations")
        read_only = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        page.tools.append(ListedTool(name, read_only, text))
    return page


def read_only_hints(tools: Iterable[ListedTool]) -> Mapping[str, bool]:
    """Return the names of the tools, each with the hint of the first tool of that name."""
    found: dict[str, bool] = {}
    for tool in tools:
        found.setdefault(tool.name, tool.read_only)
    return found


def to_parts(tools: Iterable[ListedTool]) -> list[bytes]:
    """Return the tools as JSON lists of bounded size."""
    return list(_parts(tools))


def digest(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 (hex) of a list."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(b"%d:" % len(part))
        hashed.update(part)
    return hashed.hexdigest()


def _parts(tools: Iterable[ListedTool]) -> Iterator[bytes]:
    part: list[bytes] = []
    size = 0
    for tool in tools:
        if part and size + len(tool.text) > MAX_PART_BYTES:
            yield b"[" + b",".join(part) + b"]"
            part, size = [], 0
        part.append(tool.text)
        size += len(tool.text)
    yield b"[" + b",".join(part) + b"]"


def _header_schema(schema: Any, max_steps: int, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Return the schema with nothing but the properties that want headers, and how many properties were looked at."""
    found: dict[str, Any] = {"type": "object"}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth >= MAX_HEADER_DEPTH:
        return found, 0
    steps = 0
    kept: dict[str, Any] = {}
    for name, each in properties.items():
        steps += 1
        if steps > max_steps:
            break
        if isinstance(each, dict) and HEADER_KEY in each:
            kept[name] = {key: each[key] for key in ("type", HEADER_KEY) if key in each}
        elif isinstance(each, dict) and "properties" in each:
            below, visited = _header_schema(each, max_steps - steps, depth + 1)
            steps += visited
            if "properties" in below:
                kept[name] = below
    if kept:
        found["properties"] = kept
    return found, steps


def _shown(name: Any) -> str:
    return ascii(name[:MAX_SHOWN_NAME_CHARS]) if isinstance(name, str) else f"of type {type(name).__name__}"
