"""GraphQL types as JSON Schema: what a call takes, and what the default selection gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLScalarType,
    GraphQLSchema,
    Undefined,
    get_named_type,
    is_required_argument,
    is_required_input_field,
    is_specified_scalar_type,
)

from gloveport.sources.graphql.defaults import Selection
from gloveport.sources.graphql.roots import Root
from gloveport.sources.texts import clean

MOST_DEFINITIONS = 500
MOST_VALUES = 200
LONGEST_DESCRIPTION = 600
SCALARS: Mapping[str, Mapping[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": ["string", "integer"]},
}
# Scalars of these names are text wherever they are met; others may be anything.
TEXTS = frozenset({"Date", "DateTime", "Time", "URI", "URL", "UUID", "HTML", "Markdown", "EmailAddress", "GitObjectID"})
NULL = {"type": "null"}


class Inputs:
    """Input types as JSON Schema: each is made once, and shared by all tools that reach it."""

    def __init__(self) -> None:
        self._definitions: dict[str, dict[str, Any]] = {}
        self._next: dict[str, tuple[GraphQLNamedType, ...]] = {}

    def schema(self, root: Root, select: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of a root field's arguments, with the definitions that it reaches; `select` describes the choice."""
        arguments = root.field.args
        properties = {name: self._property(argument) for name, argument in arguments.items()}
        required = [name for name, argument in arguments.items() if is_required_argument(argument)]
        if root.select:
            properties[root.select] = dict(select)
        found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            found["required"] = required
        if definitions := self._reached([get_named_type(argument.type) for argument in arguments.values()]):
            found["$defs"] = definitions
        return found

    def _reached(self, types: list[GraphQLNamedType]) -> dict[str, dict[str, Any]]:
        """The definitions of the types and of all that they reach; beyond the limit, objects of any form."""
        found: dict[str, dict[str, Any]] = {}
        waiting = list(types)
        while waiting:
            type_ = waiting.pop()
            if isinstance(type_, GraphQLScalarType) or type_.name in found:
                continue
            if len(found) >= MOST_DEFINITIONS and isinstance(type_, GraphQLInputObjectType):
                found[type_.name] = {"type": "object", "description": f"{type_.name}, as its service defines it"}
                continue
            found[type_.name] = self._definition(type_)
            waiting += self._next[type_.name]
        return found

    def _definition(self, type_: GraphQLNamedType) -> dict[str, Any]:
        if type_.name not in self._definitions:
            reached: list[GraphQLNamedType] = []
            if isinstance(type_, GraphQLEnumType):
                made = _enum(type_)
            else:
                assert isinstance(type_, GraphQLInputObjectType)
                made = self._object(type_)
                reached = [get_named_type(field.type) for field in type_.fields.values()]
            self._definitions[type_.name] = _described(made, type_.description)
            self._next[type_.name] = tuple(dict.fromkeys(reached))
        return self._definitions[type_.name]

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
        """The schema of an argument or input field, with its description and default."""
        named = get_named_type(value.type)
        description = value.description or ""
        if isinstance(named, GraphQLScalarType) and not is_specified_scalar_type(named):
            description = f"{description} ({named.name}: {named.description})" if named.description else f"{description} ({named.name})"
        found = _described(self._type(value.type), description)
        if value.deprecation_reason is not None:
            found["deprecated"] = True
        if value.default_value is not Undefined and _is_plain(value.default_value):
            found["default"] = value.default_value
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
        return {"$ref": f"#/$defs/{type_.name}"}


def output_schema(type_: Any, selection: Selection | None, schema: GraphQLSchema) -> dict[str, Any]:
    """The schema of what a field of this type gives for the selection. A choice may bring more, so more is not refused."""
    if isinstance(type_, GraphQLNonNull):
        return _answer(type_.of_type, selection, schema)
    return _or_null(_answer(type_, selection, schema))


def _answer(type_: Any, selection: Selection | None, schema: GraphQLSchema) -> dict[str, Any]:
    if isinstance(type_, GraphQLList):
        return {"type": "array", "items": output_schema(type_.of_type, selection, schema)}
    if isinstance(type_, GraphQLScalarType):
        return {"type": "string"} if type_.name in TEXTS | {"ID"} else dict(SCALARS.get(type_.name, {}))
    if isinstance(type_, GraphQLEnumType):
        return _enum(type_)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, below in (selection or {}).items():
        if name.startswith("... on "):
            member = _answer(schema.type_map[name.removeprefix("... on ")], below, schema)
            properties |= {key: value for key, value in member["properties"].items() if key not in properties}
            continue
        properties[name] = {"type": "string"} if name == "__typename" else _field(type_.fields[name], below, schema)
        required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": True}


def _field(field: Any, below: Selection | None, schema: GraphQLSchema) -> dict[str, Any]:
    return _described(output_schema(field.type, below, schema), field.description)


def _enum(type_: GraphQLEnumType) -> dict[str, Any]:
    return {"type": "string", "enum": list(type_.values)} if len(type_.values) <= MOST_VALUES else {"type": "string"}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"anyOf": [schema, NULL]}
    if "enum" in schema:
        schema = {**schema, "enum": [*schema["enum"], None]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": [*kinds, "null"]}
    return schema


def _described(schema: dict[str, Any], description: str | None) -> dict[str, Any]:
    text = clean(description or "", most=LONGEST_DESCRIPTION)
    return {**schema, "description": text} if text else schema


def _is_plain(value: Any) -> bool:
    """True for a default that JSON can say."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value)) == value
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
