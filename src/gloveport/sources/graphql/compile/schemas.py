"""GraphQL types → JSON Schema: the arguments of a call, and the result of its default selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLScalarType,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
    is_required_argument,
    is_required_input_field,
    value_from_ast_untyped,
)

from gloveport.errors import SourceError
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, Selection
from gloveport.sources.graphql.compile.roots import RootField
from gloveport.sources.texts import clean

MAX_ENUM_VALUES = 200
MAX_DESCRIPTION_CHARS = 600
MAX_DEFAULT_BYTES = 300
SCALARS: Mapping[str, Mapping[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": ["string", "integer"]},
}
# Custom scalars of these names are text in practice; others may be anything.
TEXT_SCALARS = frozenset({"Date", "DateTime", "Time", "URI", "URL", "UUID", "HTML", "Markdown", "EmailAddress", "ID"})
NULL_SCHEMA = {"type": "null"}
FRAGMENT_PREFIX = "... on "


class InputSchemas:
    """Input types as JSON Schema; each is built once and shared by all tools that refer to it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._waiting: list[GraphQLNamedType] = []

    def schema(self, root: RootField, select: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of a root field's arguments; `select` is the schema of that argument."""
        arguments = root.field.args
        properties = {name: self._property(argument) for name, argument in arguments.items()}
        required = [name for name, argument in arguments.items() if is_required_argument(argument)]
        if root.select:
            properties[root.select] = dict(select)
        found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            found["required"] = required
        return found

    def reached(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and schema of each type that the schemas so far refer to, directly or not."""
        while self._waiting:
            type_ = self._waiting.pop()
            yield type_.name, self._definition(type_)

    def _definition(self, type_: GraphQLNamedType) -> dict[str, Any]:
        if isinstance(type_, GraphQLEnumType):
            return _described(_enum(type_), type_.description)
        if not isinstance(type_, GraphQLInputObjectType):
            raise SourceError(f"the type {type_.name} is used as input, and is no input type")
        return _described(self._object(type_), type_.description)

    def _object(self, type_: GraphQLInputObjectType) -> dict[str, Any]:
        made: dict[str, Any] = {
            "type": "object",
            "properties": {name: self._property(field) for name, field in type_.fields.items()},
            "additionalProperties": False,
        }
        if type_.is_one_of:
            return {**made, "minProperties": 1, "maxProperties": 1}
        if required := [name for name, field in type_.fields.items() if is_required_input_field(field)]:
            made["required"] = required
        return made

    def _property(self, value: Any) -> dict[str, Any]:
        """Return the schema of an argument or input field, with its description and default."""
        named = get_named_type(value.type)
        description = value.description or ""
        if isinstance(named, GraphQLScalarType) and named.name not in SCALARS:
            description += f" ({named.name}: {named.description})" if named.description else f" ({named.name})"
        found = _described(self._type(value.type), description)
        if value.deprecation_reason is not None:
            found["deprecated"] = True
        if value.default and value.default.literal:
            default = value_from_ast_untyped(value.default.literal)
            if _is_short(default):
                found["default"] = default
        return found

    def _type(self, type_: Any) -> dict[str, Any]:
        if isinstance(type_, GraphQLNonNull):
            return self._bare(type_.of_type)
        return _or_null(self._bare(type_))

    def _bare(self, type_: Any) -> dict[str, Any]:
        if isinstance(type_, GraphQLList):
            return {"type": "array", "items": self._type(type_.of_type)}
        if isinstance(type_, GraphQLScalarType):
            return dict(SCALARS.get(type_.name, {}))
        if type_.name not in self._seen:
            self._seen.add(type_.name)
            self._waiting.append(type_)
        return {"$ref": f"#/$defs/{type_.name}"}


class OutputSchemas:
    """Results of default selections as JSON Schema. They allow more fields, because a `select` may ask for more."""

    def __init__(self, schema: GraphQLSchema, defaults: DefaultSelections) -> None:
        self._schema = schema
        self._defaults = defaults

    def schema(self, answer: Any) -> dict[str, Any]:
        """Return the schema of the default result of a field of this type."""
        leaf = is_leaf_type(get_named_type(answer))
        return self._type(answer, {} if leaf else self._defaults.selection(answer))

    def _type(self, type_: Any, selection: Selection) -> dict[str, Any]:
        if isinstance(type_, GraphQLNonNull):
            return self._bare(type_.of_type, selection)
        return _or_null(self._bare(type_, selection))

    def _bare(self, type_: Any, selection: Selection) -> dict[str, Any]:
        if isinstance(type_, GraphQLList):
            return {"type": "array", "items": self._type(type_.of_type, selection)}
        if isinstance(type_, GraphQLScalarType):
            return {"type": "string"} if type_.name in TEXT_SCALARS else dict(SCALARS.get(type_.name, {}))
        if isinstance(type_, GraphQLEnumType):
            return _enum(type_)
        return self._object(type_, selection)

    def _object(self, type_: Any, selection: Selection) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        required = []
        for name, below in selection.items():
            if name.startswith(FRAGMENT_PREFIX):
                member = self._object(self._schema.type_map[name.removeprefix(FRAGMENT_PREFIX)], below or {})
                properties = member["properties"] | properties
                continue
            required.append(name)
            properties[name] = {"type": "string"}
            if name != "__typename":
                properties[name] = self._field(type_.fields[name], below or {})
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": True}

    def _field(self, field: GraphQLField, below: Selection) -> dict[str, Any]:
        return _described(self._type(field.type, below), field.description)


def _enum(type_: GraphQLEnumType) -> dict[str, Any]:
    return {"type": "string", "enum": list(type_.values)} if len(type_.values) <= MAX_ENUM_VALUES else {"type": "string"}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"anyOf": [schema, NULL_SCHEMA]}
    if "enum" in schema:
        schema = {**schema, "enum": [*schema["enum"], None]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": [*kinds, "null"]}
    return schema


def _described(schema: dict[str, Any], description: str | None) -> dict[str, Any]:
    text = clean(description or "", max_chars=MAX_DESCRIPTION_CHARS)
    return {**schema, "description": text} if text else schema


def _is_short(default: Any) -> bool:
    """Return whether a default is short as JSON."""
    try:
        return len(orjson.dumps(default)) <= MAX_DEFAULT_BYTES
    except TypeError:
        return False
