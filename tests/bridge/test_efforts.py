"""What is wrong with arguments is told at once, however much of it there is."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gloveport.bridge.schema_effort import takes_long
from gloveport.errors import ToolError
from gloveport.types import Tool
from tests.bridge.support import FakeSource, port, refused

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


def names(values: list[str] | None = None) -> int:
    return len(values or [])


def filters(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = {"op": "and", "of": value}
    return {"filter": value}


async def soon(tool: str, args: dict[str, Any]) -> ToolError:
    began = time.monotonic()
    error = await refused(port(names, sources=[FakeSource("far", [Tool("far.find", "", FILTERS)])]), tool, args)
    assert time.monotonic() - began < 3
    return error


async def test_a_million_wrong_items_are_refused_at_once_and_the_first_are_named() -> None:
    error = await soon("names", {"values": [1] * 1_000_000})
    assert error.code == "bad-arguments"
    assert "`values[0]` must be a string, not a number" in error.message


async def test_a_wrong_item_far_behind_is_refused_with_where_to_look_and_what_the_tool_takes() -> None:
    error = await soon("names", {"values": ["a"] * 100_000 + [1]})
    assert "the first 5 items of each list are right: see the others, and how many there may be" in error.message
    assert "; it takes values?: " in error.message


async def test_a_short_list_beside_a_long_one_is_told_to_be_too_short() -> None:
    few = {"type": "array", "minItems": 2}
    batch = {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "string"}}, "of": few}}
    many = port(sources=[FakeSource("far", [Tool("far.get", "", batch)])])
    error = await refused(many, "far.get", {"ids": ["a"] * 5000, "of": [1]})
    assert "`of`: [1] has less than 2 items" in error.message


@pytest.mark.parametrize("depth", [16, 100])
async def test_alternatives_inside_of_each_other_are_not_all_gone_down(depth: int) -> None:
    error = await soon("far.find", filters(depth))
    assert "do not fit the schema; it takes filter?: " in error.message


async def test_a_few_levels_are_gone_down() -> None:
    error = await soon("far.find", filters(2))
    assert "`filter.of.of` must be an object, not a number" in error.message


def test_many_unknown_keys_are_as_much_work_as_many_items() -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    assert takes_long(closed, {f"k{n}": n for n in range(5000)})
    assert not takes_long(closed, {f"k{n}": n for n in range(50)})
