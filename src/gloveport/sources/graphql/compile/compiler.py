"""A schema → the rows of its compiled form: tools, the schemas that they share, and the types to select from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from graphql import GraphQLSchema

from gloveport.sources.graphql.compile.connection_type import connection_of
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, to_text
from gloveport.sources.graphql.compile.roots import RootField, root_fields, root_types
from gloveport.sources.graphql.compile.schemas import InputSchemas, OutputSchemas
from gloveport.sources.graphql.compile.type_table import TypeTable
from gloveport.sources.graphql.rows import MAX_SCHEMA_BYTES, AnswerRow, AnyRow, FactsRow, InputRow, ToolRow
from gloveport.sources.texts import clean

MAX_NAMED_FIELDS = 40
MAX_DEFAULT_CHARS = 150
MAX_WARNINGS = 100


def compile_rows(schema: GraphQLSchema) -> Iterator[AnyRow]:
    """Yield the rows of a schema; the last one has the facts, with warnings about what was left out."""
    roots, warnings = root_fields(schema)
    types = TypeTable(schema)
    yield from _ToolCompiler(schema, warnings).rows(roots)
    yield from types.rows()
    if types.left_out:
        warnings.append(f"fields with too many arguments can't be selected ({', '.join(types.left_out[:5])})")
    yield FactsRow(tuple(sorted(root_types(schema))), tuple(warnings[:MAX_WARNINGS]))


class _ToolCompiler:
    """Root fields → rows of tools, and of the schemas of inputs and answers that they refer to."""

    def __init__(self, schema: GraphQLSchema, warnings: list[str]) -> None:
        self._warnings = warnings
        self._root_types = root_types(schema)
        self._defaults = DefaultSelections(schema)
        self._inputs = InputSchemas()
        self._outputs = OutputSchemas(schema, self._defaults)

    def rows(self, roots: tuple[RootField, ...]) -> Iterator[AnyRow]:
        answers: set[str] = set()
        for root in roots:
            row = self._tool(root)
            if len(row.schema) > MAX_SCHEMA_BYTES:
                self._warnings.append(f"the {root.operation} {root.name} has too many arguments and is left out")
                continue
            yield row
            if row.answer not in answers:
                answers.add(row.answer)
                yield AnswerRow(row.answer, _encoded(self._outputs.schema(root.field.type)))
        for name, schema in self._inputs.reached():
            yield InputRow(name, _encoded(schema))

    def _tool(self, root: RootField) -> ToolRow:
        field = root.field
        return ToolRow(
            root.address,
            root.operation,
            root.name,
            clean(field.description) or f"The {root.operation} {root.name}; it gives {field.type}.",
            f"{field.type}",
            msgspec.Raw(msgspec.json.encode(self._inputs.schema(root, self._select_schema(root)))),
            {name: f"{argument.type}" for name, argument in field.args.items()},
            root.select,
            to_text(self._defaults.selection(field.type)) if root.select else "",
            pages=root.connection is not None,
            deprecated=field.deprecation_reason is not None,
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


def _encoded(schema: dict[str, Any]) -> msgspec.Raw:
    """Return the schema as JSON; one that allows any value in place of one that is too large."""
    text = msgspec.json.encode(schema)
    return msgspec.Raw(text if len(text) <= MAX_SCHEMA_BYTES else b"{}")
