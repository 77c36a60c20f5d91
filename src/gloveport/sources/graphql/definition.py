"""Bytes → a GraphQL schema: SDL, or an introspection result in JSON. Bounded, because others write them."""

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
from gloveport.types import MIB

LARGEST_JSON = 32 * MIB
LARGEST_SDL = 4 * MIB
MOST_TOKENS = 500_000
MOST_TYPES = 20_000
MOST_MEMBERS = 200_000
MOST_CONTAINERS = 3_000_000
MOST_ROOTS = 10_000
DEEPEST_LIST = 10
# What graphql-core raises for definitions that break its expectations; it promises no error type of its own.
BROKEN = (GraphQLError, TypeError, KeyError, ValueError, AttributeError, RecursionError)


class _Field(msgspec.Struct):
    args: list[msgspec.Raw] = []


class _Type(msgspec.Struct, rename={"inputs": "inputFields", "values": "enumValues"}):
    kind: str
    name: str
    fields: list[_Field] | None = None
    inputs: list[msgspec.Raw] | None = None
    values: list[msgspec.Raw] | None = None

    def members(self) -> int:
        fields = self.fields or ()
        return len(fields) + sum(len(field.args) for field in fields) + len(self.inputs or ()) + len(self.values or ())


class _Schema(msgspec.Struct):
    types: list[_Type]


class _Result(msgspec.Struct, rename={"schema": "__schema"}):
    """An introspection result, bare or as the `data` of a reply; only what is counted is looked at."""

    schema: _Schema | None = None
    data: _Result | None = None


def read_schema(raw: bytes, source: str, place: str) -> GraphQLSchema:
    """The schema that the bytes at `place` (a file or URL) define; raises SourceError."""
    try:
        schema = _from_json(raw) if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _from_sdl(raw)
        _look_at_all(schema)
    except SourceError as error:
        raise SourceError(f"source {source}: {place}: {error.message}", hint=error.hint) from None
    except BROKEN as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}".splitlines()[0][:300]
        raise SourceError(f"source {source}: {place}: {said}{_line(error)}", hint="correct the definition") from None
    if place_of_list := _deep_list(schema):
        hint = f"lists may be nested {DEEPEST_LIST} deep"
        raise SourceError(f"source {source}: {place}: the lists of {place_of_list} are nested too deeply", hint=hint)
    roots = sum(len(type_.fields) for type_ in (schema.query_type, schema.mutation_type) if type_)
    if not roots:
        raise SourceError(f"source {source}: {place} has no queries or mutations", hint="check `schema { … }` in it")
    if roots > MOST_ROOTS:
        most = f"at most {MOST_ROOTS:,} are read"
        raise SourceError(f"source {source}: {place} has {roots:,} queries and mutations; {most}", hint="give a part of it")
    return schema


def _from_json(raw: bytes) -> GraphQLSchema:
    if len(raw) > LARGEST_JSON:
        raise SourceError(f"the definition has {len(raw):,} bytes; at most {LARGEST_JSON:,} are read")
    try:
        bounded_json.check(raw, MOST_CONTAINERS)
    except bounded_json.JsonLimitError as problem:
        raise SourceError(f"the definition is too much JSON: it {problem}") from None
    result = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"), type=_Result)
    if result.data:
        result = result.data
    if not result.schema:
        hint = "give the JSON that the introspection query answers, or a schema in GraphQL's own language (SDL)"
        raise SourceError("it is JSON, but has no `__schema`", hint=hint)
    types = result.schema.types
    members = sum(type_.members() for type_ in types)
    if len(types) > MOST_TYPES or members > MOST_MEMBERS:
        most = f"at most {MOST_TYPES:,} and {MOST_MEMBERS:,} are read"
        raise SourceError(f"the schema has {len(types):,} types with {members:,} fields, arguments and values; {most}")
    loaded = orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    return build_client_schema(loaded.get("data") or loaded, assume_valid=True)


def _from_sdl(raw: bytes) -> GraphQLSchema:
    if len(raw) > LARGEST_SDL:
        hint = "an introspection result in JSON may be larger"
        raise SourceError(f"the definition has {len(raw):,} bytes; at most {LARGEST_SDL:,} of SDL are read", hint=hint)
    document = parse(raw.decode("utf-8-sig"), max_tokens=MOST_TOKENS)
    # Real definitions break the specification in small ways (GitHub's does), which matters to nothing here.
    return build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)


def _look_at_all(schema: GraphQLSchema) -> None:
    """Have every type made now: graphql-core makes the parts of one when they are asked for, and fails only then."""
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
    """Where a type is nested deeper than anyone means; what is written for types goes down them recursively."""
    for type_ in schema.type_map.values():
        for name, field in getattr(type_, "fields", {}).items():
            for one in (field, *getattr(field, "args", {}).values()):
                kind, levels = one.type, 0
                while levels <= 2 * DEEPEST_LIST and hasattr(kind, "of_type"):
                    kind, levels = kind.of_type, levels + 1
                if levels > 2 * DEEPEST_LIST:
                    return f"{type_.name}.{name}"
    return None


def _line(error: BaseException) -> str:
    if isinstance(error, GraphQLError) and error.locations:
        return f" (line {error.locations[0].line}, column {error.locations[0].column})"
    return ""
