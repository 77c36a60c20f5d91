"""The root fields of a schema → tools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any

import orjson
from graphql import GraphQLSchema

from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.definition_cache import LazySchema
from gloveport.sources.graphql.compile.connection_type import connection_of
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, to_text
from gloveport.sources.graphql.compile.roots import RootField, root_fields, root_types
from gloveport.sources.graphql.compile.schemas import InputSchemas, OutputSchemas
from gloveport.sources.texts import clean
from gloveport.types import Tool

MAX_NAMED_FIELDS = 40
MAX_DEFAULT_CHARS = 150


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """The tools of a schema, the root field of each by address, and warnings about what was left out."""

    tools: Sequence[Tool]
    heads: Sequence[ToolHead]
    roots: Mapping[str, RootField]
    warnings: tuple[str, ...]


def compile_schema(
    source: str, schema: GraphQLSchema, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> CompiledSchema:
    """Return the tools of a source's schema; `include` and `exclude` are patterns over addresses."""
    found, warnings = root_fields(schema)
    roots, unmatched = _filtered(found, include, exclude)
    compiler = _ToolCompiler(source, schema)
    tools = [compiler.tool(root) for root in roots]
    return CompiledSchema(
        tools,
        tuple(compiler.head(root, tool) for root, tool in zip(roots, tools, strict=True)),
        {f"{source}.{root.address}": root for root in roots},
        (*warnings, *unmatched),
    )


def _filtered(
    roots: Iterable[RootField], include: Sequence[str], exclude: Sequence[str]
) -> tuple[list[RootField], list[str]]:
    """Return the roots that `include` and `exclude` leave, and a warning for each pattern that matches nothing."""
    roots = list(roots)
    kept = [root for root in roots if not include or any(fnmatchcase(root.address, one) for one in include)]
    kept = [root for root in kept if not any(fnmatchcase(root.address, one) for one in exclude)]
    warnings = [
        f"the pattern {pattern!r} matches no query or mutation"
        for pattern in (*include, *exclude)
        if not any(fnmatchcase(root.address, pattern) for root in roots)
    ]
    return kept, warnings


class _ToolCompiler:
    """Root fields → tools and their heads."""

    def __init__(self, source: str, schema: GraphQLSchema) -> None:
        self._source = source
        self._root_types = root_types(schema)
        self._defaults = DefaultSelections(schema)
        self._inputs = InputSchemas()
        self._outputs = OutputSchemas(schema, self._defaults)

    def tool(self, root: RootField) -> Tool:
        taken = self._inputs.schema(root, self._select_schema(root))
        return Tool(
            address=f"{self._source}.{root.address}",
            description=clean(root.field.description) or f"The {root.operation} {root.name}; it gives {root.field.type}.",
            input_schema=taken,
            output_schema=LazySchema(partial(self._outputs.schema, root.field.type)),
            kind="graphql",
            writes=root.operation == "mutation",
            deprecated=root.field.deprecation_reason is not None,
            pages=root.connection is not None,
            named=tuple(taken["properties"]),
        )

    def head(self, root: RootField, tool: Tool) -> ToolHead:
        """Return what is known of a tool without its schemas; the fingerprint covers those too."""
        digests = (self._inputs.digest(root, tool.input_schema), self._outputs.digest(root.field.type))
        covered = orjson.dumps([root.operation, root.name, root.address, tool.description, *digests])
        return ToolHead(
            root.address,
            tool.description,
            tool.parameters,
            hashlib.sha256(covered).hexdigest(),
            writes=tool.writes,
            deprecated=tool.deprecated,
            pages=tool.pages,
        )

    def _select_schema(self, root: RootField) -> dict[str, Any]:
        """Return the schema of the `select` argument: its forms, the default, and which other fields there are."""
        if root.select is None:
            return {}
        type_, selection = root.type, self._defaults.selection(root.field.type)
        default = to_text(selection)
        shown = default if len(default) <= MAX_DEFAULT_CHARS else f"{default[:MAX_DEFAULT_CHARS]}…"
        text = f"Which fields of {type_.name} to give, as GraphQL text or nested lists; by default `{shown}`."
        if connection := connection_of(root.field.type):
            type_, selection = connection.node, selection[connection.items] or {}
            selection = selection["node"] or {} if connection.items == "edges" else selection
        fields = getattr(type_, "fields", {}) if type_.name not in self._root_types else ()
        more = list(islice((name for name in fields if name not in selection), MAX_NAMED_FIELDS + 1))
        if more:
            ending = "…" if len(more) > MAX_NAMED_FIELDS else "."
            text += f" {type_.name} also has {', '.join(more[:MAX_NAMED_FIELDS])}{ending}"
        return {"type": ["string", "array", "object"], "description": clean(text)}
