"""GraphQL types as JSON Schema: what a call takes, and what the default selection gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
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
MOST_PROPERTIES = 5000
MOST_VALUES = 200
LONGEST_DESCRIPTION = 600
LONGEST_DEFAULT = 300
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


@dataclass(frozen=True, slots=True)
class _Closure:
    """The definitions that some arguments reach, and what they come to."""

    definitions: Mapping[str, Mapping[str, Any]]
    digest: str


class Inputs:
    """Input types as JSON Schema: each is made once, and shared by all tools that reach it."""

    def __init__(self) -> None:
        self._definitions: dict[str, dict[str, Any]] = {}
        self._digests: dict[str, str] = {}
        self._next: dict[str, tuple[GraphQLNamedType, ...]] = {}
        self._closures: dict[tuple[str, ...], _Closure] = {}

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
        if definitions := self._closure(root).definitions:
            found["$defs"] = definitions
        return found

    def digest(self, root: Root, schema: Mapping[str, Any]) -> str:
        """What a schema that was made here comes to.

        Without `select`, which tells of every field there is: one more of them is no change of this tool.
        """
        properties = {name: one for name, one in schema["properties"].items() if name != root.select}
        return _digest({**schema, "properties": properties, "$defs": self._closure(root).digest})

    def _closure(self, root: Root) -> _Closure:
        types = [get_named_type(argument.type) for argument in root.field.args.values()]
        types = [type_ for type_ in types if not isinstance(type_, GraphQLScalarType)]
        names = tuple(type_.name for type_ in types)
        if names not in self._closures:
            definitions = self._reached(types)
            digests = {name: self._digests[name] for name in definitions}
            self._closures[names] = _Closure(definitions, _digest(digests))
        return self._closures[names]

    def _reached(self, types: Sequence[GraphQLNamedType]) -> dict[str, dict[str, Any]]:
        """The definitions of the types and of all that they reach; beyond the limits, values of any form."""
        found: dict[str, dict[str, Any]] = {}
        waiting, left = list(types[::-1]), MOST_PROPERTIES
        while waiting:
            type_ = waiting.pop()
            if type_.name in found:
                continue
            made = self._definition(type_)
            left -= len(made.get("properties", made.get("enum", ())))
            if len(found) >= MOST_DEFINITIONS or left < 0:
                found[type_.name] = {"description": f"{type_.name}, as its service defines it"}
                continue
            found[type_.name] = made
            waiting += self._next[type_.name][::-1]
        return found

    def _definition(self, type_: GraphQLNamedType) -> dict[str, Any]:
        if type_.name not in self._definitions:
            reached: Iterable[GraphQLNamedType] = ()
            if isinstance(type_, GraphQLEnumType):
                made = _enum(type_)
            else:
                assert isinstance(type_, GraphQLInputObjectType)
                made = self._object(type_)
                reached = dict.fromkeys(get_named_type(field.type) for field in type_.fields.values())
            self._definitions[type_.name] = _described(made, type_.description)
            self._digests[type_.name] = _digest(self._definitions[type_.name])
            self._next[type_.name] = tuple(one for one in reached if not isinstance(one, GraphQLScalarType))
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


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


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
    """True for a default that JSON can say, and say shortly."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return False
    return len(text) <= LONGEST_DEFAULT and orjson.loads(text) == value
