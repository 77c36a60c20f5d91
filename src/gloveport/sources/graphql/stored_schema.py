"""A compiled schema in the definition cache: tools, and the types that selections are checked against."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from gloveport.large_values import looked_up
from gloveport.sources.compiled_definition import shared_schema_names
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.graphql.row_check import reached
from gloveport.sources.graphql.rows import (
    AnswerRow,
    FieldNamesRow,
    FieldRow,
    InputRow,
    LiteralRow,
    Row,
    ToolRow,
    TypeRow,
)

MAX_CACHED_TOOLS = 256

R = TypeVar("R", bound=Row)

for _row in (ToolRow, InputRow, AnswerRow):
    looked_up(_row)


class StoredSchema:
    """The rows of one compiled schema, read when they are needed."""

    def __init__(self, cache: DefinitionCache) -> None:
        self._cache = cache
        self.roots = frozenset[str](cache.facts["roots"])
        self.tool = lru_cache(MAX_CACHED_TOOLS)(self._tool)

    def _tool(self, address: str) -> ToolRow:
        return msgspec.json.decode(self._cache.definition(address), type=ToolRow)

    def input_schema(self, address: str) -> dict[str, Any]:
        """Return the schema of a tool's arguments, with the definitions that it reaches.

        Beyond the limits, a definition allows any value.
        """
        text = bytes(self.tool(address).schema)
        schema: dict[str, Any] = msgspec.json.decode(text)
        found: dict[str, Any] = {}

        def read(name: str) -> tuple[list[str], int]:
            row = msgspec.json.decode(self._cache.definition(f"input {name}"), type=InputRow)
            found[name] = msgspec.json.decode(row.schema)
            return shared_schema_names(bytes(row.schema)), row.size

        for name, within in reached(shared_schema_names(text), read):
            if not within:
                found[name] = {"description": f"{name}, as its service defines it"}
        return schema | {"$defs": found} if found else schema

    def answer_schema(self, address: str) -> dict[str, Any]:
        """Return the schema of the result of a tool's default selection."""
        row = msgspec.json.decode(self._cache.definition(f"answer {self.tool(address).answer}"), type=AnswerRow)
        return msgspec.json.decode(row.schema)

    def type(self, name: str) -> TypeRow | None:
        """Return a type with fields to select; None for any other."""
        return self._row(f"type {name}", TypeRow)

    def field(self, type_: str, name: str) -> FieldRow | None:
        """Return a field of a type."""
        return self._row(f"field {type_}.{name}", FieldRow)

    def field_names(self, type_: str) -> FieldNamesRow:
        """Return the fields of a type, for an error message."""
        return self._row(f"names {type_}", FieldNamesRow) or FieldNamesRow(type_, ())

    def literal(self, name: str) -> LiteralRow | None:
        """Return an enum or input type; None for a scalar."""
        return self._row(f"literal {name}", LiteralRow)

    def close(self) -> None:
        """Close the file."""
        self._cache.close()

    def _row(self, key: str, type_: type[R]) -> R | None:
        try:
            return msgspec.json.decode(self._cache.definition(key), type=type_)
        except KeyError:
            return None
