"""Arguments can't be smuggled past a schema (B2): what reaches a source is valid, and is what the guest passed."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.bridge import Bridge
from gloveport.catalog import Catalog
from gloveport.errors import ToolError
from gloveport.types import Limits, Tool, ToolCall

from .support import FakeSource

NAMES = st.sampled_from(["a", "b", "city", "__proto__", "constructor", "é"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=4)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", 1]},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: {"anyOf": members})
        | st.dictionaries(NAMES, inner, max_size=3).map(
            lambda found: {"type": "object", "properties": found, "additionalProperties": False}
        )
    ),
    max_leaves=6,
)
TOOLS = st.dictionaries(NAMES, SCHEMAS, max_size=4).flatmap(
    lambda properties: st.sets(st.sampled_from(sorted(properties)) if properties else st.nothing()).map(
        lambda required: {
            "type": "object",
            "properties": properties,
            "required": sorted(required),
            "additionalProperties": False,
        }
    )
)


def outcome(schema: dict[str, Any], args: list[Any]) -> tuple[list[dict[str, Any]], ToolError | None]:
    """Return what reached the source, and the error that the guest saw."""
    source = FakeSource("far", [Tool("far.away", "", schema)])
    run = Bridge(Catalog([source])).for_run(Limits())
    try:
        asyncio.run(run.call(ToolCall(1, "far.away", args)))
    except ToolError as error:
        return source.sent, error
    return source.sent, None


def as_json(value: Any) -> Any:
    """Return the JSON form, by an independent implementation."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value if isinstance(value, (str, int, float, type(None))) else "text"


@settings(max_examples=300, deadline=None)
@given(TOOLS, st.lists(VALUES, max_size=4))
def test_only_arguments_that_fit_the_schema_are_sent(schema: dict[str, Any], args: list[Any]) -> None:
    sent, error = outcome(schema, args)
    if error is not None:
        assert error.code == "bad-arguments"
        assert sent == []
        assert type(error.message) is str
        assert len(error.message) < 5000
    else:
        (arrived,) = sent
        assert jsonschema_rs.is_valid(schema, as_json(arrived))
        assert set(arrived) <= set(schema["properties"])


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries({"city": st.text(max_size=5), "n": st.integers()}),
    st.text(max_size=8).filter(lambda name: name not in ("city", "n")),
    VALUES,
)
def test_an_extra_field_is_refused(args: dict[str, Any], extra: str, value: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    sent, error = outcome(schema, [args])
    assert error is None
    assert sent == [args]
    sent, error = outcome(schema, [{**args, extra: value}])
    assert error is not None
    assert error.code == "bad-arguments"
    assert sent == []
