"""GraphQL types → JSON Schema: the arguments of a call, and the result of its default selection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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

MAX_DEFINITIONS = 500
MAX_PROPERTIES = 5000
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


@dataclass(frozen=True, slots=True)
class _Closure:
    """The definitions that some arguments refer to, directly or not, and a digest of them."""

    definitions: Mapping[str, Mapping[str, Any]]
    digest: str


class InputSchemas:
    """Input types as JSON Schema; each is built once and shared by all tools that refer to it."""

    def __init__(self) -> None:
        self._definitions: dict[str, dict[str, Any]] = {}
        self._digests: dict[str, str] = {}
        self._next: dict[str, tuple[GraphQLNamedType, ...]] = {}
        self._closures: dict[tuple[str, ...], _Closure] = {}

    def schema(self, root: RootField, select: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of a root field's arguments, with its definitions; `select` is the schema of that argument."""
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

    def digest(self, root: RootField, schema: Mapping[str, Any]) -> str:
        """Return the digest of a schema that was built here.

        It leaves out `select`, which names every field of a type: a new field there is no change of this tool.
        """
        properties = {name: one for name, one in schema["properties"].items() if name != root.select}
        return _digest({**schema, "properties": properties, "$defs": self._closure(root).digest})

    def _closure(self, root: RootField) -> _Closure:
        types = [get_named_type(argument.type) for argument in root.field.args.values()]
        types = [type_ for type_ in types if not isinstance(type_, GraphQLScalarType)]
        names = tuple(type_.name for type_ in types)
        if names not in self._closures:
            definitions = self._reached(types)
            digests = {name: self._digests[name] for name in definitions}
            self._closures[names] = _Closure(definitions, _digest(digests))
        return self._closures[names]

    def _reached(self, types: Sequence[GraphQLNamedType]) -> dict[str, dict[str, Any]]:
        """Return the definitions of the types and of all that they refer to; beyond the limits, they allow any value."""
        found: dict[str, dict[str, Any]] = {}
        waiting, left = list(types[::-1]), MAX_PROPERTIES
        while waiting:
            type_ = waiting.pop()
            if type_.name in found:
                continue
            made = self._definition(type_)
            left -= len(made.get("properties", made.get("enum", ())))
            if len(found) >= MAX_DEFINITIONS or left < 0:
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
            elif not isinstance(type_, GraphQLInputObjectType):
                raise SourceError(f"the type {type_.name} is used as input, and is no input type")
            else:
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
        return {"$ref": f"#/$defs/{type_.name}"}


class OutputSchemas:
    """Results of default selections as JSON Schema. They allow more fields, because a `select` may ask for more."""

    def __init__(self, schema: GraphQLSchema, defaults: DefaultSelections) -> None:
        self._schema = schema
        self._defaults = defaults
        self._digests: dict[str, str] = {}

    def schema(self, answer: Any) -> dict[str, Any]:
        """Return the schema of the default result of a field of this type."""
        leaf = is_leaf_type(get_named_type(answer))
        return self._type(answer, {} if leaf else self._defaults.selection(answer))

    def digest(self, answer: Any) -> str:
        """Return the digest of that schema."""
        name = f"{answer}"
        if name not in self._digests:
            self._digests[name] = _digest(self.schema(answer))
        return self._digests[name]

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


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


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
