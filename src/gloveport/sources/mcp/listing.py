"""A server's lists, page by page and within bounds, and its list of tools → tools of ours.

Everything in a list is the server's word: names become identifiers, texts are cleaned (M3), hints don't lower the gate
(B6), and what can't be used is left out with a warning that names it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import jsonschema_rs
import mcp_types as mcp
import msgspec

from gloveport.sources.mcp.names import identifiers
from gloveport.sources.texts import clean
from gloveport.types import Tool

MOST_ITEMS = 10_000
MOST_PAGES = 1_000
LARGEST_SCHEMA = 256 * 1024
DEEPEST_SCHEMA = 60
DATA = frozenset({"default", "const", "enum", "examples"})

ItemT = TypeVar("ItemT")
PageT = TypeVar("PageT", bound=mcp.PaginatedResult)


async def all_pages(
    fetch: Callable[[mcp.PaginatedRequestParams], Awaitable[PageT]],
    items: Callable[[PageT], list[ItemT]],
    max_bytes: int,
    warn: Callable[[str], None],
) -> list[ItemT]:
    """The items of all pages of a list, up to bounds that no honest server reaches."""
    found: list[ItemT] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await fetch(mcp.PaginatedRequestParams(cursor=cursor))
        found += items(page)
        max_bytes -= len(page.model_dump_json())
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            warn("the list goes in circles; what came before is used")
            return found
        seen.add(cursor)
        if len(found) > MOST_ITEMS or max_bytes < 0:
            break
    warn(f"the list is too long; its first {min(len(found), MOST_ITEMS):,} items are used")
    return found[:MOST_ITEMS]


def tools_of(
    source: str, listed: Iterable[mcp.Tool], *, trust_annotations: bool, warn: Callable[[str], None]
) -> dict[str, tuple[Tool, str]]:
    """The tools by their addresses, each with the name that the server knows it by."""
    unique: dict[str, mcp.Tool] = {}
    for each in listed:
        if each.name in unique:
            warn(f"the server lists two tools called {_quoted(each.name)}; the second is left out")
        unique.setdefault(each.name, each)
    names = identifiers(unique)
    found: dict[str, tuple[Tool, str]] = {}
    for name, each in unique.items():
        problem = _problem(each.input_schema)
        if problem:
            warn(f"the tool {_quoted(name)} is left out: its input schema {problem}")
            continue
        output = each.output_schema
        if output is not None and (problem := _problem(output)):
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


def _problem(schema: dict[str, Any]) -> str:
    """Why a schema can't be used, or ""."""
    try:
        size = len(msgspec.json.encode(schema))
    except (RecursionError, UnicodeEncodeError):
        return "can't be written down"
    if size > LARGEST_SCHEMA:
        return f"is larger than {LARGEST_SCHEMA:,} bytes"
    if _depth_exceeds(schema, DEEPEST_SCHEMA):
        return "is nested too deeply"
    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=False)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return f"can't be used: {str(error).splitlines()[0][:200]}"
    return ""


def _refuse(uri: str) -> Any:
    """No schema may make the host fetch a URL or read a file, be it by `$ref` or by `$schema` (N10)."""
    raise ValueError("it is outside the schema")


def _depth_exceeds(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [below for each in level for below in _below(each)]
        if not level:
            return False
    return True


def _below(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _cleaned(value: Any) -> Any:
    """The schema with its titles and descriptions cleaned; what is data in it stays as it is."""
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: below if key in DATA else clean(below) if key in ("title", "description") and isinstance(below, str)
        else _cleaned(below)
        for key, below in value.items()
    }  # fmt: skip


def _quoted(name: str) -> str:
    return ascii(name[:100])
