"""The types of a schema → the rows by which the host checks a selection at each call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLNamedType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_interface_type,
    is_object_type,
    is_required_argument,
    is_required_input_field,
    is_union_type,
)

from gloveport.sources.graphql.compile.connection_type import connection_of
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, to_text
from gloveport.sources.graphql.compile.roots import root_types
from gloveport.sources.graphql.rows import (
    MAX_FIELD_BYTES,
    MAX_LISTED_NAMES,
    MAX_TYPE_BYTES,
    AnyRow,
    FieldNamesRow,
    FieldRow,
    LiteralRow,
    Row,
    TypeRow,
)

MAX_DEFAULT_FIELDS_BELOW = 20
MAX_OVERLAPS = 1000

R = TypeVar("R", bound=Row)


class TypeTable:
    """The rows of one schema's types. Root types have no rows for their fields, so nothing below them can be selected."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._root_types = root_types(schema)
        self._defaults = DefaultSelections(schema)
        self._composites = [
            type_ for name, type_ in schema.type_map.items() if is_composite_type(type_) and not name.startswith("__")
        ]
        self.left_out: list[str] = []

    def rows(self) -> Iterator[AnyRow]:
        """Yield the rows of all types with fields, and of the types of those fields' arguments."""
        abstract = self._abstract_types()
        taken: dict[str, GraphQLNamedType] = {}
        for type_ in self._composites:
            yield self._type(type_, abstract)
            fields: Mapping[str, GraphQLField] = getattr(type_, "fields", {})
            if type_.name in self._root_types or not fields:
                continue
            names = tuple(fields)[:MAX_LISTED_NAMES]
            yield FieldNamesRow(type_.name, names, len(fields) - len(names))
            for name, field in fields.items():
                row = _field(type_.name, name, field)
                if _size(row) > MAX_FIELD_BYTES:
                    self.left_out.append(f"{type_.name}.{name}")
                    continue
                taken |= {named.name: named for argument in field.args.values() if (named := get_named_type(argument.type))}
                yield row
        yield from _literals(taken)

    def _type(self, type_: Any, abstract: Mapping[str, list[str]]) -> TypeRow:
        connection = connection_of(type_)
        row = TypeRow(
            type_.name,
            "union" if is_union_type(type_) else "interface" if is_interface_type(type_) else "object",
            to_text(self._defaults.selection(type_, MAX_DEFAULT_FIELDS_BELOW, objects=False)),
            self._overlaps(type_, abstract),
            connection.items if connection else "",
            connection.node.name if connection else "",
        )
        return row if _size(row) <= MAX_TYPE_BYTES else msgspec.structs.replace(row, overlaps=None)

    def _abstract_types(self) -> Mapping[str, list[str]]:
        """Return the interfaces and unions that each object type belongs to."""
        found: dict[str, list[str]] = defaultdict(list)
        for type_ in self._composites:
            if is_abstract_type(type_):
                for member in self._schema.get_possible_types(type_):
                    found[member.name].append(type_.name)
        return found

    def _overlaps(self, type_: Any, abstract: Mapping[str, list[str]]) -> tuple[str, ...] | None:
        if is_object_type(type_):
            return tuple(abstract.get(type_.name, ())[:MAX_OVERLAPS])
        possible = [member.name for member in self._schema.get_possible_types(type_)]
        if len(possible) > MAX_OVERLAPS:
            return None
        found = dict.fromkeys(possible)
        for name in possible:
            found |= dict.fromkeys(abstract[name][:MAX_OVERLAPS])
        found.pop(type_.name, None)
        return tuple(found) if len(found) <= MAX_OVERLAPS else None


def _field(type_: str, name: str, field: GraphQLField) -> FieldRow:
    required = tuple(key for key, argument in field.args.items() if is_required_argument(argument))
    arguments = {key: f"{argument.type}" for key, argument in field.args.items()}
    return FieldRow(type_, name, f"{field.type}", arguments, required)


def _literals(taken: Mapping[str, GraphQLNamedType]) -> Iterator[LiteralRow]:
    """Yield the enums and input types that these lead to; those that are too large are not checked on the host."""
    seen, waiting = dict(taken), list(taken.values())
    while waiting:
        type_ = waiting.pop()
        if isinstance(type_, GraphQLEnumType):
            row = LiteralRow(type_.name, tuple(type_.values))
        elif isinstance(type_, GraphQLInputObjectType):
            row = LiteralRow(
                type_.name,
                (),
                {name: f"{field.type}" for name, field in type_.fields.items()},
                tuple(name for name, field in type_.fields.items() if is_required_input_field(field)),
                type_.is_one_of,
            )
        else:
            continue
        if _size(row) <= MAX_TYPE_BYTES:
            yield row
            waiting += _new(type_, seen)


def _new(type_: GraphQLNamedType, seen: dict[str, GraphQLNamedType]) -> Iterable[GraphQLNamedType]:
    found = {named.name: named for field in getattr(type_, "fields", {}).values() if (named := get_named_type(field.type))}
    new = {name: named for name, named in found.items() if name not in seen}
    seen |= new
    return new.values()


def _size(row: Row) -> int:
    return len(msgspec.json.encode(row))
