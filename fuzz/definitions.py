"""Definitions from a hostile service: they compile to valid tools, or fail with a SourceError (N10, N11, M3)."""

from __future__ import annotations

import ast
import json
import tempfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import msgspec
from graphql import build_schema, introspection_from_schema
from tests.sources.openapi.compiled import compile_here

from fuzz.mutation import mutate_bytes, mutate_json, mutate_tokens
from fuzz.target import BrokenPromise, Target
from gloveport.catalog import python_stubs, typescript_stubs
from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.graphql.compile.task import compile_schema_text
from gloveport.sources.graphql.row_check import CheckedRows
from gloveport.sources.graphql.source import GraphQLSource
from gloveport.sources.openapi.operation import CompiledOperation
from gloveport.types import Tool

URL = "https://api.example.com/openapi.json"
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "servers": [{"url": "https://{region}.example.com/v1", "variables": {"region": {"default": "eu", "enum": ["eu"]}}}],
    "security": [{"key": []}],
    "paths": {
        "/things/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {
                "operationId": "things.get",
                "tags": ["things"],
                "parameters": [
                    {"name": "page", "in": "query", "style": "deepObject", "explode": True, "schema": {"type": "object"}},
                    {"name": "cursor", "in": "query", "schema": {"type": "string", "default": "x"}},
                ],
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}},
            },
            "post": {
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {"properties": {"f": {"type": "string", "format": "binary"}}},
                            "encoding": {"f": {"contentType": "image/png"}},
                        }
                    },
                },
                "responses": {"default": {"$ref": "#/components/responses/R"}},
            },
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "allOf": [{"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Thing"}}}],
                "oneOf": [{"const": 1}, {"enum": ["a", None]}],
                "additionalProperties": {"type": ["string", "null"], "pattern": "^a+$", "maxLength": 5},
                "nullable": True,
                "discriminator": {"propertyName": "kind"},
            }
        },
        "responses": {"R": {"description": "none"}},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "host": "example.com",
    "basePath": "/v2",
    "schemes": ["https"],
    "info": {},
    "paths": {
        "/a": {
            "post": {
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [
                    {
                        "name": "b",
                        "in": "formData",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "multi",
                    },
                    {"name": "c", "in": "body", "schema": {"$ref": "#/definitions/D"}},
                ],
                "responses": {"200": {"schema": {"$ref": "#/definitions/D"}}},
            }
        }
    },
    "definitions": {"D": {"type": "object", "properties": {"e": {"type": "file"}}, "required": ["e"]}},
}
DISCOVERY: dict[str, Any] = {
    "kind": "discovery#restDescription",
    "rootUrl": "https://www.googleapis.com/",
    "servicePath": "a/",
    "resources": {
        "files": {
            "methods": {
                "list": {
                    "httpMethod": "GET",
                    "path": "files/{+id}",
                    "parameters": {"id": {"location": "path", "required": True, "type": "string"}},
                    "response": {"$ref": "F"},
                    "scopes": ["x"],
                }
            }
        }
    },
    "schemas": {"F": {"id": "F", "type": "object", "properties": {"a": {"type": "any"}}}},
}
YAML = b"openapi: 3.0.0\ninfo: &i {title: a}\npaths:\n  /x: &p\n    get: {responses: {200: {description: ok}}}\n  /y: *p\n"
WORDS = (
    *(
        "get",
        "post",
        "$ref",
        "#/components/schemas/Thing",
        "#/paths",
        "#",
        "http://a/b",
        "file:///etc/passwd",
        "/a/{b}/{c}",
    ),
    *("type", "object", "array", "string", "integer", "null", "items", "properties", "allOf", "anyOf", "not", "enum"),
    *("in", "query", "header", "cookie", "path", "body", "style", "form", "explode", "name", "schema", "content", "const"),
    *("required", "default", "security", "servers", "url", "variables", "application/json", "*/*", "text/plain; charset=x"),
    {"$ref": "#/components/schemas/Thing"},
    {"$ref": "#/components"},
    {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Thing"}}},
    {"allOf": [{"$ref": "#/components/schemas/Thing"}]},
)
SDL = b""""Doc" schema { query: Q mutation: M }
scalar D @specifiedBy(url: "x") enum E { A B @deprecated(reason: "c") } union U = T | V
interface N { id: ID! } type T implements N { id: ID! more(first: Int = 5, after: String): TConnection! self: T u: U e: [E!]! }
type V { a: D } type TConnection { edges: [TEdge] nodes: [T] pageInfo: PageInfo! } type TEdge { node: T cursor: String }
type PageInfo { hasNextPage: Boolean! endCursor: String }
input I { a: Int! = 1 b: [I!] c: E = A } input O @oneOf { a: Int b: String }
type Q { t(id: ID!, i: I = {a: 2, b: []}): T all(first: Int, after: String): TConnection! e: E! } type M { set(o: O!): Boolean }
extend type Q { extra: Int @deprecated }"""
INTROSPECTED = json.dumps(introspection_from_schema(build_schema(SDL.decode()), input_value_deprecation=True)).encode()


def judge_openapi(data: bytes) -> None:
    """Compile to tools with valid schemas and valid stubs, or fail with a SourceError."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = compile_here(data, URL, Path(folder))
        except SourceError:
            return
        with closing(made) as cache:
            _show([_tool(head.address, head.description, cache) for head in cache.heads()])


def _tool(address: str, description: str, cache: Any) -> Tool:
    made = msgspec.json.decode(cache.definition(address), type=CompiledOperation)
    schemas = [
        None if schema is None else cache.schema(msgspec.json.encode(schema))
        for schema in (made.input_schema, made.output_schema)
    ]
    return Tool(f"api.{address}", description, schemas[0] or {}, schemas[1])


def _show(tools: list[Tool]) -> None:
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            if schema is not None:
                jsonschema_rs.Draft202012Validator(dict(schema))
    pairs = [(tool.address, tool) for tool in tools]
    typescript_stubs.declaration(pairs)
    ast.parse(python_stubs.declaration(pairs, checked=True))


CONFIG = SourceConfig("lib", "graphql", "schema.graphql", base_url="https://example.com/graphql")
ENDPOINT: Any = SimpleNamespace(slots=(), url="https://example.com/graphql")


def judge_graphql(data: bytes) -> None:
    """Do the same for a GraphQL schema, as SDL or as the reply to an introspection query."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            rows = CheckedRows(list(compile_schema_text([b'{"form": "file"}', data], lambda _: None)))
            parts = rows.heads(), rows.definitions(), (), rows.facts
            cache = DefinitionCache.build(Path(folder), "0" * 64, *parts)
        except SourceError:
            return
        with closing(cache):
            tools = GraphQLSource(CONFIG, cache, ENDPOINT).tools()
            if len({tool.address for tool in tools}) != len(tools):
                raise BrokenPromise("two tools have the same address")
            _show(list(tools))


SEEDS = tuple(json.dumps(document).encode() for document in (OPENAPI, SWAGGER, DISCOVERY))
TOKENS = b'type input enum union scalar interface schema extend implements ! [ ] { } ( ) : = | & @ @oneOf ID Int " """ # ...'.split()
_of_json, _of_words = (
    mutate_json(WORDS),
    mutate_bytes((b": ", b"- ", b"&a ", b"*a", b"<<: *p", b"!!python/object:os.system ")),
)
_of_sdl, _of_answer = (
    mutate_tokens(TOKENS),
    mutate_json(("kind", "OBJECT", "LIST", "NON_NULL", "ofType", "fields", "args", "name")),
)
TARGETS = (
    Target("openapi", judge_openapi, _of_json, SEEDS, ("sources/openapi", "catalog"), test_seconds=3),
    Target("openapi-yaml", judge_openapi, _of_words, (YAML,), ("sources/openapi",)),
    Target("graphql", judge_graphql, _of_sdl, (SDL,), ("sources/graphql",), test_seconds=2),
    Target(
        "graphql-answer",
        judge_graphql,
        _of_answer,
        (INTROSPECTED,),
        ("sources/graphql",),
        max_bytes=64 * 1024,
        test_seconds=2,
    ),
)
