"""What an agent needs to know to call a tool: documented declarations, within a budget for the type of the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gloveport.catalog import python_stubs, typescript_stubs
from gloveport.catalog.result_parts import MAX_RESULT_CHARS, part_at, shortened
from gloveport.types import Language, Tool

MAX_SHOWN_PLACES = 12


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """What an agent needs to know to call a tool; `typescript` and `python` are documented declarations.

    `left_out` are the places in the result whose types are `unknown` here, because they are too long.
    """

    path: str
    description: str
    kind: str
    writes: bool
    parameters: tuple[Mapping[str, Any], ...]
    typescript: str
    python: str
    pages: bool = False
    left_out: tuple[str, ...] = ()


def describe_tool(path: str, tool: Tool, at: str | None = None) -> ToolDescription:
    """Return the description of a tool, or of the part of its result at a place; raises UnknownPart."""
    shown, left_out = _shown(tool, at)
    return ToolDescription(
        path=path,
        description=tool.description,
        kind=tool.kind,
        writes=tool.writes,
        parameters=() if at is not None else tuple(typescript_stubs.parameters(tool)),
        typescript=_typescript(path, shown, at) + _left_out_note("//", path, left_out),
        python=_python(path, shown, at) + _left_out_note("#", path, left_out),
        pages=tool.pages,
        left_out=left_out,
    )


def declare(tools: Iterable[tuple[str, Tool]], language: Language, at: str | None = None) -> str:
    """Return the declarations of several tools, or of the part of each one's result at a place; raises UnknownPart."""
    found = [(path, *_shown(tool, at)) for path, tool in tools]
    mark = "#" if language == "python" else "//"
    notes = "".join(_left_out_note(mark, path, left_out) for path, _, left_out in found)
    if language != "python":
        return "\n".join(_typescript(path, tool, at) for path, tool, _ in found) + notes
    if at is not None:
        return "\n".join(_python(path, tool, at) for path, tool, _ in found) + notes
    return python_stubs.declaration([(path, tool) for path, tool, _ in found]) + notes  # they share their types


def _shown(tool: Tool, at: str | None) -> tuple[Tool, tuple[str, ...]]:
    """Return the tool with its result type cut to the budget, and the places that were left out."""
    if at is not None:
        tool = replace(tool, output_schema=part_at(tool.output_schema or {}, at))
    if tool.output_schema is None or len(typescript_stubs.result_type(tool)) <= MAX_RESULT_CHARS:
        return tool, ()
    short = shortened(tool.output_schema)
    return replace(tool, output_schema=short.schema), tuple(_joined(at, place) for place in short.left_out)


def _typescript(path: str, tool: Tool, at: str | None) -> str:
    if at is None:
        return typescript_stubs.declaration([(path, tool)])
    comment = typescript_stubs.clean(typescript_stubs.schema_comment(tool.output_schema)).replace("\n", "\n// ")
    about = f"// {comment}\n" if comment else ""
    return f"// {_where(path, at)}:\n{about}type Part = {typescript_stubs.result_type(tool)};\n"


def _python(path: str, tool: Tool, at: str | None) -> str:
    if at is None:
        return python_stubs.declaration([(path, tool)])
    types = python_stubs.PythonTypes()
    kind = types.of(tool.output_schema, tool.output_schema, "Part")
    return "".join(f"{text}\n\n" for text in types.classes.values()) + f"# {_where(path, at)}: {kind}\n"


def _where(path: str, at: str) -> str:
    return f"{typescript_stubs.clean(at)} in the result of tools.{path}"


def _joined(at: str | None, place: str) -> str:
    return place if not at else f"{at}{place}" if place.startswith("[") else f"{at}.{place}"


def _left_out_note(mark: str, path: str, places: tuple[str, ...]) -> str:
    if not places:
        return ""
    listed = ", ".join(json.dumps(typescript_stubs.clean(place), ensure_ascii=False) for place in places[:MAX_SHOWN_PLACES])
    more = f" and {len(places) - MAX_SHOWN_PLACES:,} more" if len(places) > MAX_SHOWN_PLACES else ""
    return f"{mark} Parts of the result of tools.{path} that are left out here; describe them with `at`: {listed}{more}\n"
