"""Bytes → a GraphQL schema, from SDL or from an introspection result in JSON. Bounded, because others write them."""

from __future__ import annotations

import msgspec
import orjson
from graphql import (
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_ast_schema,
    build_client_schema,
    parse,
)

from gloveport import bounded_json
from gloveport.errors import SourceError
from gloveport.sources.graphql.rows import MAX_NAME_CHARS
from gloveport.types import MIB

MAX_JSON_BYTES = 32 * MIB
MAX_SDL_BYTES = 4 * MIB
MAX_SDL_TOKENS = 500_000
MAX_TYPES = 20_000
MAX_TYPE_MEMBERS = 200_000
JSON_LIMITS = bounded_json.JsonLimits(containers=3_000_000, items=15_000_000, depth=1000)
MAX_ROOT_FIELDS = 10_000
MAX_LIST_DEPTH = 10
# What graphql-core raises for definitions that it does not expect; it promises no error type of its own.
DEFINITION_ERRORS = (GraphQLError, TypeError, KeyError, ValueError, AttributeError, RecursionError)


class _IntrospectedField(msgspec.Struct):
    args: list[msgspec.Raw] = []


class _IntrospectedType(msgspec.Struct, rename={"inputs": "inputFields", "values": "enumValues"}):
    kind: str
    name: str
    fields: list[_IntrospectedField] | None = None
    inputs: list[msgspec.Raw] | None = None
    values: list[msgspec.Raw] | None = None

    def members(self) -> int:
        fields = self.fields or ()
        return len(fields) + sum(len(field.args) for field in fields) + len(self.inputs or ()) + len(self.values or ())


class _IntrospectedSchema(msgspec.Struct):
    types: list[_IntrospectedType]


class _IntrospectionResult(msgspec.Struct, rename={"schema": "__schema"}):
    """An introspection result, bare or as the `data` of a reply; only what is counted is decoded."""

    schema: _IntrospectedSchema | None = None
    data: _IntrospectionResult | None = None


def read_schema(raw: bytes, *, reply: bool = False) -> GraphQLSchema:
    """Return the schema that the bytes define, as SDL or JSON; a `reply` of an endpoint is JSON. Raise SourceError."""
    try:
        schema = _from_json(raw) if reply or raw[:100].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _from_sdl(raw)
        _build_all(schema)
    except DEFINITION_ERRORS as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}"[:300].partition("\n")[0]
        raise SourceError(f"{problem}{_line(error)}", hint="correct the definition") from None
    if place := _deep_list(schema):
        hint = f"lists may be nested {MAX_LIST_DEPTH} deep"
        raise SourceError(f"the lists of {place} are nested too deeply", hint=hint)
    if name := _long_name(schema):
        raise SourceError(f"the name {name[:40]}… has more than {MAX_NAME_CHARS} characters", hint="correct the definition")
    roots = sum(len(type_.fields) for type_ in (schema.query_type, schema.mutation_type) if type_)
    if not roots:
        raise SourceError("it has no queries or mutations", hint="check `schema { … }` in it")
    if roots > MAX_ROOT_FIELDS:
        most = f"at most {MAX_ROOT_FIELDS:,} are read"
        raise SourceError(f"it has {roots:,} queries and mutations; {most}", hint="give a part of it")
    return schema


def _from_json(raw: bytes) -> GraphQLSchema:
    if len(raw) > MAX_JSON_BYTES:
        raise SourceError(f"the definition has {len(raw):,} bytes; at most {MAX_JSON_BYTES:,} are read")
    try:
        bounded_json.check(raw, JSON_LIMITS)
    except bounded_json.JsonLimitError as problem:
        raise SourceError(f"the definition is too much JSON: it {problem}") from None
    result = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"), type=_IntrospectionResult)
    if result.data:
        result = result.data
    if not result.schema:
        hint = "give the JSON that the introspection query answers, or a schema in GraphQL's own language (SDL)"
        raise SourceError("it is JSON, but has no `__schema`", hint=hint)
    types = result.schema.types
    members = sum(type_.members() for type_ in types)
    if len(types) > MAX_TYPES or members > MAX_TYPE_MEMBERS:
        most = f"at most {MAX_TYPES:,} and {MAX_TYPE_MEMBERS:,} are read"
        raise SourceError(f"the schema has {len(types):,} types with {members:,} fields, arguments and values; {most}")
    loaded = orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    return build_client_schema(loaded.get("data") or loaded, assume_valid=True)


def _from_sdl(raw: bytes) -> GraphQLSchema:
    if len(raw) > MAX_SDL_BYTES:
        hint = "an introspection result in JSON may be larger"
        raise SourceError(f"the definition has {len(raw):,} bytes; at most {MAX_SDL_BYTES:,} of SDL are read", hint=hint)
    document = parse(raw.decode("utf-8-sig"), max_tokens=MAX_SDL_TOKENS)
    # Real definitions violate the specification in small ways (GitHub's does) that do not matter here.
    return build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)


def _build_all(schema: GraphQLSchema) -> None:
    """Build every type now: graphql-core builds the parts of a type when they are read, and fails only then."""
    for type_ in schema.type_map.values():
        for part in ("fields", "interfaces", "types", "values"):
            getattr(type_, part, None)
        if isinstance(type_, GraphQLUnionType) and not all(isinstance(one, GraphQLObjectType) for one in type_.types):
            raise SourceError(f"the union {type_} has a member that is no object type", hint="correct the definition")
    for root in (schema.query_type, schema.mutation_type):
        if root is not None and not isinstance(root, GraphQLObjectType):
            hint = "queries and mutations are the fields of an object type"
            raise SourceError(f"{root} is no type for queries or mutations", hint=hint)


def _deep_list(schema: GraphQLSchema) -> str | None:
    """Return where a list type is nested too deeply, or None; code that writes types recurses into them."""
    for type_ in schema.type_map.values():
        for name, field in getattr(type_, "fields", {}).items():
            for one in (field, *getattr(field, "args", {}).values()):
                kind, levels = one.type, 0
                while levels <= 2 * MAX_LIST_DEPTH and hasattr(kind, "of_type"):
                    kind, levels = kind.of_type, levels + 1
                if levels > 2 * MAX_LIST_DEPTH:
                    return f"{type_.name}.{name}"
    return None


def _long_name(schema: GraphQLSchema) -> str | None:
    """Return a name that is too long, or None."""
    for type_ in schema.type_map.values():
        fields = getattr(type_, "fields", {})
        arguments = (name for field in fields.values() for name in getattr(field, "args", ()))
        for name in (type_.name, *fields, *arguments, *getattr(type_, "values", ())):
            if len(name) > MAX_NAME_CHARS:
                return name
    return None


def _line(error: BaseException) -> str:
    if isinstance(error, GraphQLError) and error.locations:
        return f" (line {error.locations[0].line}, column {error.locations[0].column})"
    return ""
