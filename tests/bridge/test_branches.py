"""A definition can't make the host try a million alternatives."""

from __future__ import annotations

from typing import Any

import pytest

from gloveport.bridge.schema_cost import ENDLESS, branches_of
from gloveport.errors import ToolError
from gloveport.types import Tool
from tests.bridge.test_calls import FakeSource, call, port


def tree(depth: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    last = {f"d{depth}": {"type": "string"}}
    return {"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, **last}}


def test_alternatives_multiply_and_objects_do_not() -> None:
    assert branches_of({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}) == 3
    assert branches_of(tree(3)) < 100
    assert branches_of(tree(24)) > 10**7
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        nested = {"type": "object", "properties": {"a": nested, "b": nested}}
    assert branches_of(nested) == 1
    assert branches_of({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}) >= ENDLESS
    deeper = {"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/n"}}}]}
    assert branches_of({"$defs": {"n": deeper}, "$ref": "#/$defs/n"}) < 20


async def test_a_tool_with_too_many_is_refused_and_the_others_work() -> None:
    good = {"type": "object", "properties": {"p": {"type": "string"}}}
    run = port(sources=[FakeSource("far", [Tool("far.bad", "", tree(30)), Tool("far.good", "", good)])])
    with pytest.raises(ToolError, match="too many alternatives"):
        await call(run, "far.bad", {"p": 5})
    await call(run, "far.good", {"p": "x"})
