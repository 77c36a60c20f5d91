"""A schema can't make the host try a million alternatives, and errors are explained at once, however many there are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from gloveport.bridge.arguments import Contract
from gloveport.bridge.validation_cost import MAX_UNITS, is_expensive_to_explain, is_too_expensive
from gloveport.errors import ToolError
from gloveport.types import Tool
from tests.bridge.support import FakeSource, call, port, refused
from tests.holding import MAX_HOLD_MS, cpu_ms, longest_hold_ms

GROUP: dict[str, Any] = {
    "type": "object",
    "properties": {"op": {"type": "string"}, "of": {"$ref": "#/$defs/filter"}},
    "required": ["op"],
}
FILTERS: dict[str, Any] = {
    "type": "object",
    "properties": {"filter": {"$ref": "#/$defs/filter"}},
    "$defs": {"filter": {"anyOf": [GROUP, {**GROUP, "description": "the same once more"}]}},
}


def tree(depth: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    last = {f"d{depth}": {"type": "string"}}
    return {"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, **last}}


async def test_a_tool_with_too_many_is_refused_and_the_others_work() -> None:
    good = {"type": "object", "properties": {"p": {"type": "string"}}}
    run = port(
        sources=[FakeSource("far", [Tool("far.bad", "", tree(30), kind="mcp"), Tool("far.good", "", good, kind="mcp")])]
    )
    with pytest.raises(ToolError, match="too many alternatives"):
        await call(run, "far.bad", {"p": 5})
    await call(run, "far.good", {"p": "x"})


def names(values: list[str] | None = None) -> int:
    return len(values or [])


def filters(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = {"op": "and", "of": value}
    return {"filter": value}


async def soon(tool: str, args: dict[str, Any]) -> ToolError:
    began = time.process_time()
    error = await refused(port(names, sources=[FakeSource("far", [Tool("far.find", "", FILTERS, kind="mcp")])]), tool, args)
    assert time.process_time() - began < 3
    return error


async def test_many_more_items_take_too_long_to_validate_and_the_error_says_what_to_do() -> None:
    error = await soon("names", {"values": [1] * 900_000})
    assert error.code == "bad-arguments"
    assert "they take too long to validate: pass fewer values at a time" in error.message


async def test_many_wrong_items_are_refused_at_once_and_the_first_are_named() -> None:
    error = await soon("names", {"values": [1] * 100_000})
    assert "`values[0]` must be a string, not a number" in error.message


async def test_a_wrong_item_at_the_end_is_refused_with_where_to_look_and_the_parameters() -> None:
    error = await soon("names", {"values": ["a"] * 100_000 + [1]})
    assert "the first 5 items of each list are valid: check the others, and how many are allowed" in error.message
    assert "; it takes values?: " in error.message


async def test_a_short_list_beside_a_long_one_is_reported_as_too_short() -> None:
    few = {"type": "array", "minItems": 2}
    batch = {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "string"}}, "of": few}}
    many = port(sources=[FakeSource("far", [Tool("far.get", "", batch)])])
    error = await refused(many, "far.get", {"ids": ["a"] * 5000, "of": [1]})
    assert "`of`: [1] has less than 2 items" in error.message


@pytest.mark.parametrize("depth", [16, 100])
async def test_nested_alternatives_are_not_all_explored(depth: int) -> None:
    error = await soon("far.find", filters(depth))
    assert "do not fit the schema; it takes filter?: " in error.message


async def test_a_few_levels_are_explored() -> None:
    error = await soon("far.find", filters(2))
    assert "`filter.of.of` must be an object, not a number" in error.message


def test_many_unknown_keys_are_as_much_work_as_many_items() -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    assert is_expensive_to_explain(closed, {f"k{n}": n for n in range(5000)})
    assert not is_expensive_to_explain(closed, {f"k{n}": n for n in range(50)})


PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?:x{1,10}){1,50}y"}}}
ANYTHING = {"type": "object", "additionalProperties": {"type": "integer"}}
ALTERNATIVES = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"anyOf": [{**ALTERNATIVES, "title": str(n)} for n in range(100)]}}},
}
HOSTILE: dict[str, tuple[dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "a million keys": (ANYTHING, lambda: {f"k{number}": number for number in range(1_200_000)}),
    "a million wrong keys": (ANYTHING, lambda: {f"k{number}": "x" for number in range(1_200_000)}),
    "many keys": (ANYTHING, lambda: {f"k{number}": number for number in range(60_000)}),
    "many wrong keys": (ANYTHING, lambda: {f"k{number}": "x" for number in range(60_000)}),
    "a long text and a large pattern": (PATTERN, lambda: {"a": "x" * 3_000_000}),
    "a text that just passes": (PATTERN, lambda: {"a": "x" * 3000}),
    "rows with many alternatives": (ROWS, lambda: {"rows": [{"k": "x"}] * 50_000}),
    "few rows with many alternatives": (ROWS, lambda: {"rows": [{"k": "x"} for _ in range(500)]}),
    "compared rows": (
        {"type": "object", "properties": {"a": {"uniqueItems": True}}},
        lambda: {"a": [[1] * 100 + [n] for n in range(3000)]},
    ),
    "a compared value": (
        {"type": "object", "properties": {"a": {"const": {}}}},
        lambda: {"a": {f"k{n}": n for n in range(300_000)}},
    ),
    "deep rows": (ROWS, lambda: {"rows": [[[[[[{}]]]]]] * 10_000}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_arguments_hold_the_interpreter_lock_for_long(name: str) -> None:
    schema, make = HOSTILE[name]
    args = make()
    contract = Contract(Tool("far.get", "", schema, kind="mcp"), FakeSource("far", []), "far.get")
    assert not contract.accepts_quickly(100_000)
    assert longest_hold_ms(contract.accept_slowly, [args]) < MAX_HOLD_MS


def test_what_is_validated_on_the_loop_takes_a_few_milliseconds() -> None:
    contract = Contract(Tool("far.get", "", ANYTHING, kind="mcp"), FakeSource("far", []), "far.get")
    size = max(size for size in range(0, 100_000, 1000) if contract.accepts_quickly(size))
    args = {f"{number}": "" for number in range(size // 8)}
    assert size > 10_000
    assert cpu_ms(contract.accept, [args]) < MAX_HOLD_MS


@pytest.mark.parametrize(("items", "is_flat"), [({"type": "object", "title": "a row"}, True), ({"minItems": 0}, False)])
def test_items_are_counted_whether_they_are_visited_or_not(items: dict[str, Any], is_flat: bool) -> None:
    schema = {"type": "array", "items": items}
    assert not is_too_expensive(schema, [{}] * ((MAX_UNITS - 1) // 2))
    too_many = [{}] * (MAX_UNITS // 2)
    assert is_too_expensive(schema, too_many)
    assert (cpu_ms(is_too_expensive, schema, too_many) < 20) == is_flat


def test_large_plain_arguments_are_not_copied_and_others_twice() -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}
    contract = Contract(Tool("far.save", "", schema), FakeSource("far", []), "far.save")
    given: list[Any] = [{"rows": [{"n": 1}]}]
    for shared in (True, False):
        sent, named = contract.accept_slowly(given, shared=shared)
        assert sent == named == given[0]
        assert (sent is named, sent["rows"][0] is named["rows"][0]) == (shared, shared)
        assert (sent["rows"][0] is given[0]["rows"][0]) == shared  # nothing else has what was decoded
