"""The cost of a schema is bounded before the validator sees it: alternatives, patterns and size, whatever refers to what."""

from __future__ import annotations

import time
from typing import Any

import jsonschema_rs
import pytest

from gloveport.schema_cost import (
    MAX_BRANCHES,
    MAX_SCHEMA_SIZE,
    UNBOUNDED,
    pattern_states,
    recursive_names,
    schema_cost,
)

MAX_CPU_SECONDS = 0.05


def named(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def chain(depth: int, one: Any) -> dict[str, Any]:
    """Return definitions of which each contains what `one` makes of a reference to the next."""
    defs = {f"d{n}": one(named(f"d{n + 1}")) for n in range(depth)}
    return {"properties": {"p": named("d0")}, "$defs": {**defs, f"d{depth}": {"type": "string"}}}


DOUBLING = {
    "anyOf": lambda ref: {"anyOf": [ref, ref]},
    "oneOf": lambda ref: {"oneOf": [ref, ref]},
    "allOf": lambda ref: {"allOf": [ref, ref]},
    "if": lambda ref: {"if": ref, "else": ref},
    "not": lambda ref: {"not": ref, "allOf": [ref]},
    "dependentSchemas": lambda ref: {"dependentSchemas": {"a": ref, "b": ref}},
    "alternatives with one property": lambda ref: {"anyOf": [{"properties": {"a": ref}}, {"properties": {"a": ref}}]},
    "overlapping patternProperties": lambda ref: {"patternProperties": {"a": ref, "a+": ref}},
    "properties and patternProperties": lambda ref: {"properties": {"a": ref}, "patternProperties": {"a": ref}},
    "items and contains": lambda ref: {"items": ref, "contains": ref},
    "items and unevaluatedItems": lambda ref: {"prefixItems": [ref], "unevaluatedItems": ref},
}


@pytest.mark.parametrize("how", DOUBLING)
def test_what_doubles_at_every_step_is_too_much(how: str) -> None:
    assert schema_cost(chain(3, DOUBLING[how])).problem is None
    assert schema_cost(chain(24, DOUBLING[how])).problem == "has too many alternatives to try"


def test_a_cycle_around_what_doubles_does_not_hide_it() -> None:
    schema = chain(24, DOUBLING["alternatives with one property"])
    schema["$defs"]["d24"] = {"type": "string", "properties": {"b": named("d0")}}
    assert schema_cost(schema).branches == UNBOUNDED


def test_properties_do_not_add_up() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(9):
        nested = {"type": "object", "properties": {"a": nested, "b": nested}}
    assert schema_cost(nested).branches == 1


def test_recursive_alternatives_are_as_cheap_as_the_validator_makes_them() -> None:
    group = {"type": "object", "properties": {"op": {"type": "string"}, "of": named("filter")}, "required": ["op"]}
    schema = {
        "properties": {"filter": named("filter")},
        "$defs": {"filter": {"anyOf": [group, {**group, "minProperties": 1}]}},
    }
    assert schema_cost(schema).branches < 20
    value: Any = 1
    for _ in range(100):
        value = {"op": "and", "of": value}
    validator = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions())
    began = time.process_time()
    assert not validator.is_valid({"filter": value})
    assert time.process_time() - began < MAX_CPU_SECONDS


def test_definitions_that_all_refer_to_each_other_are_too_much() -> None:
    names = [f"d{n}" for n in range(12)]
    defs = {name: {"properties": {"a": {"anyOf": [named(other) for other in names if other != name]}}} for name in names}
    assert schema_cost({**named("d0"), "$defs": defs}).branches == UNBOUNDED


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": named("a")}, **named("a")},
        {"$defs": {"a": {"anyOf": [named("b")]}, "b": {"allOf": [named("a")]}}, **named("a")},
    ],
)
def test_a_schema_that_refers_to_itself_for_the_same_value_is_too_much(schema: dict[str, Any]) -> None:
    assert schema_cost(schema).branches == UNBOUNDED


@pytest.mark.parametrize(
    "schema",
    [
        {"$anchor": "/$defs/a"},
        {"$anchor": 7},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$id": "https://example.com/"},
        {"$dynamicRef": "#a"},
        {"$recursiveRef": "#"},
        {"definitions": {}},
        {"properties": {"a": {"$defs": {}}}},
        {"$ref": "#"},
        {"$ref": "#/$defs/%61", "$defs": {"a": {}, "%61": {}}},
        {"$ref": "#/$defs/missing", "$defs": {}},
        {"$ref": "#/$defs/a/anyOf/0", "$defs": {"a": {"anyOf": [{}]}}},
        {"dependencies": {"a": {}}},
        {"anyOf": {"a": 1}},
        {"pattern": 7},
        {"dependentRequired": {"a": 7}},
        {"$defs": [], "type": "object"},
    ],
)  # fmt: skip
def test_what_is_not_in_the_normal_form_has_no_bound(schema: dict[str, Any]) -> None:
    assert schema_cost(schema).problem


@pytest.mark.parametrize("pattern", [r"(?:x{1,50}){1,50}y", r"^\p{L}{60}$", "a{100000}", "(?=a)b", r"(a)\1", "(", "a" * 1001, r"(?i)" + r"\p{L}" * 21])  # fmt: skip
def test_a_pattern_that_is_large_or_not_linear_has_no_bound(pattern: str) -> None:
    began = time.process_time()
    assert pattern_states(pattern) is None
    assert schema_cost({"pattern": pattern}).problem
    assert time.process_time() - began < MAX_CPU_SECONDS


def test_patterns_for_one_string_add_up_and_those_for_different_strings_do_not() -> None:
    pattern = r"^[a-z]{1,60}\d$"
    one = schema_cost({"pattern": pattern}).pattern_states
    assert 64 <= one <= 256
    apart = {"properties": {f"p{n}": {"pattern": pattern} for n in range(50)}}
    assert schema_cost(apart).pattern_states == one
    together = schema_cost({"allOf": [{"pattern": pattern}] * 50})
    assert together.problem
    assert schema_cost({"patternProperties": {f"{pattern}{n}": {} for n in range(50)}}).problem


def test_every_pattern_adds_to_the_size() -> None:
    many = {"properties": {f"p{n}": {"pattern": rf"^\p{{L}}{n}$"} for n in range(200)}}
    assert schema_cost(many).size > MAX_SCHEMA_SIZE


def test_values_to_compare_and_names_to_look_up_count() -> None:
    assert schema_cost({"enum": [{"a": n} for n in range(MAX_BRANCHES)]}).problem
    assert schema_cost({"enum": [str(n) for n in range(MAX_BRANCHES)]}).problem is None
    assert schema_cost({"required": [str(n) for n in range(MAX_BRANCHES * 9)]}).problem


def test_what_is_at_the_limit_is_validated_in_time() -> None:
    schema = chain(8, DOUBLING["alternatives with one property"])
    assert MAX_BRANCHES / 8 < schema_cost(schema).branches <= MAX_BRANCHES
    value: Any = 5
    for _ in range(8):
        value = {"a": value}
    validator = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions())
    began = time.process_time()
    assert not validator.is_valid({"p": value})
    assert time.process_time() - began < MAX_CPU_SECONDS


def test_recursive_definitions_are_found() -> None:
    def of(*names: str) -> dict[str, Any]:
        return {"anyOf": [named(name) for name in names]}

    defs = {"a": of("b"), "b": of("c"), "c": of("b", "d"), "d": of("e"), "e": {}, "s": of("s"), "t": of("s", "a")}
    assert recursive_names(defs) == ["b", "c", "s"]
