"""Schemas as documented TypeScript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gloveport.catalog import typescript_stubs
from gloveport.types import Tool


def type_of(schema: Any, root: Any = None) -> str:
    types = typescript_stubs.TypeScriptTypes(root or {}, dates="Date | string", binary="Uint8Array | string")
    return " ".join(types.of(schema, "").split())


TYPES = [
    ({"type": "string"}, "string"),
    ({"type": "integer"}, "number"),
    ({"type": ["string", "null"]}, "string | null"),
    ({"type": "string", "nullable": True}, "string | null"),
    ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
    ({"const": 'say "hi"'}, '"say \\"hi\\""'),
    ({"type": "array", "items": {"type": "string"}}, "string[]"),
    ({"type": "array", "items": {"enum": ["a|b", "c"]}}, '("a|b" | "c")[]'),
    ({"type": "array", "items": {"const": "a|b"}}, '"a|b"[]'),
    ({"type": "array"}, "unknown[]"),
    ({"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False}, "[string, unknown]"),
    ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}, "[string, ...number[]]"),
    ({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]}, "string | number"),
    ({"allOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"type": "string"}]},
     "{ a?: unknown; } & string"),
    ({"allOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"const": 1}]}, "(string | number) & 1"),
    ({"type": "object"}, "Record<string, unknown>"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
    ({"type": "object", "additionalProperties": False}, "Record<string, never>"),
    ({"properties": {"a-b": {}}, "required": ["a-b"], "additionalProperties": False}, '{ "a-b": unknown; }'),
    ({"properties": {"a": {}}, "additionalProperties": True}, "{ a?: unknown; [key: string]: unknown; }"),
    ({"type": "string", "format": "date-time"}, "Date | string"),
    ({"type": "string", "contentEncoding": "base64"}, "Uint8Array | string"),
    (True, "unknown"),
    (False, "never"),
    ({}, "unknown"),
    ({"type": "nonsense"}, "unknown"),
    ({"$ref": "https://elsewhere/x"}, "unknown"),
    ({"$ref": "#/$defs/none"}, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), TYPES, ids=lambda value: str(value)[:50])
def test_a_schema_becomes_its_type(schema: Any, expected: str) -> None:
    assert type_of(schema) == expected


def test_references_are_followed_and_recursion_is_cut() -> None:
    root = {"$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": False}}}
    assert type_of({"$ref": "#/$defs/Node"}, root) == "{ next?: unknown /* Node again */; }"


def test_a_schema_that_explodes_stays_small() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for n in range(1, 40):
        ref = {"$ref": f"#/$defs/d{n - 1}"}
        definitions[f"d{n}"] = {"properties": {"a": ref, "b": ref}}
    text = typescript_stubs.declaration(
        [("x", Tool("s.x", "", {"$defs": definitions, "properties": {"p": {"$ref": "#/$defs/d39"}}}))]
    )
    assert len(text) < 100_000


def test_a_description_can_not_close_its_comment_or_hide_in_invisible_letters() -> None:
    schema = {"properties": {"a": {"description": "x */ evil() /* \u202e\u200b\x07y"}}, "additionalProperties": False}
    text = typescript_stubs.declaration([("x", Tool("s.x", "Does */ harm", schema))])
    assert "*/ evil" not in text
    assert "*/ harm" not in text
    assert not {"\u202e", "\u200b", "\x07"} & set(text)


def test_tools_are_declared_under_their_paths_with_notes() -> None:
    number = {"type": "integer", "description": "How many", "default": 10, "maximum": 100, "deprecated": True}
    schema = {"type": "object", "properties": {"n": number}, "additionalProperties": False}
    text = typescript_stubs.declaration(
        [("a.b.delete", Tool("a.b.delete", "Lines\nof text", schema)), ("a.c", Tool("a.c", "", {}))]
    )
    assert text == (
        "declare const tools: {\n  a: {\n    b: {\n      /**\n       * Lines\n       * of text\n       */\n"
        "      delete(args?: {\n        /** How many @deprecated Default 10. maximum 100. */\n        n?: number;\n"
        "      }): Promise<unknown>;\n    };\n    c(): Promise<unknown>;\n  };\n};\n"
    )


WORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "allOf", "enum", "const", "$ref", "required", "nullable", "prefixItems",
     "additionalProperties", "description", "default", "format", "object", "array", "a"]
)  # fmt: skip
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(WORDS, plain, max_size=5))
@example({"type": None, "properties": None, "required": [[]]})
def test_no_schema_however_odd_breaks_the_declaration(schema: dict[str, Any]) -> None:
    text = typescript_stubs.declaration(
        [("x", Tool("s.x", "", {"properties": {"p": schema}}, {"properties": {"q": schema}}))]
    )
    assert text.startswith("declare const tools: {")
    assert json.dumps(text)
