"""Types of results: within a budget, with the rest one question away."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.catalog import UnknownPart
from gloveport.catalog.descriptions import declare, describe_tool
from gloveport.catalog.result_parts import MAX_RESULT_CHARS, part_at, shortened
from gloveport.types import Tool

LONG = "A sentence that says what it is. " + "And more that nobody needs to read first. " * 10
OPEN: dict[str, Any] = {"type": "object", "properties": {}}


def fields(prefix: str, count: int, **more: Any) -> dict[str, Any]:
    texts = {f"{prefix}{n}": {"type": "string", "description": LONG} for n in range(count)}
    return {"type": "object", "properties": texts | more}


# A list of pods: small outside, large inside, and recursive.
PODS: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"type": "string"}, "items": {"type": "array", "items": {"$ref": "#/$defs/Pod"}}},
    "$defs": {
        "Pod": fields("p", 3, spec={"$ref": "#/$defs/Spec"}, status={"$ref": "#/$defs/Status"}),
        "Spec": fields("s", 60, volumes={"type": "array", "items": fields("v", 2)}, **{"node name": {"type": "string"}}),
        "Status": fields(
            "t", 2, owner={"anyOf": [{"$ref": "#/$defs/Pod"}, {"type": "null"}]}, labels={"$ref": "#/$defs/L"}
        ),
        "L": {"type": "object", "additionalProperties": fields("l", 1)},
    },
}
LIST = Tool("k8s.pods.list", "List pods.", OPEN, PODS, kind="openapi")


def test_a_small_result_is_shown_whole() -> None:
    small = Tool("a.b", "", OPEN, fields("x", 3))
    found = describe_tool("a.b", small)
    assert LONG.strip() in found.typescript and found.left_out == () and "left out" not in found.typescript + found.python


def test_a_large_result_is_cut_where_it_is_deep_and_the_places_are_named() -> None:
    found = describe_tool("k8s.pods.list", LIST)
    assert len(found.typescript) < MAX_RESULT_CHARS + 1500
    assert found.left_out[0] == "items[].spec"
    for text, mark in ((found.typescript, "//"), (found.python, "#")):
        last = text.splitlines()[-1]
        assert last.startswith(mark) and "describe them with `at`" in last and '"items[].spec"' in last
        assert "p2" in text and "labels" in text and "s59" not in text
    assert "spec?: unknown;" in found.typescript and "A sentence that says what it is. */" in found.typescript


def test_a_part_is_shown_when_it_is_asked_for() -> None:
    found = describe_tool("k8s.pods.list", LIST, "items[].spec")
    assert found.typescript.startswith("// items[].spec in the result of tools.k8s.pods.list:\ntype Part = {")
    assert "s59" in found.typescript and "s59" in found.python and found.parameters == ()
    assert "class Part(TypedDict)" in found.python or "Part = TypedDict" in found.python
    assert "v1" in describe_tool("k8s.pods.list", LIST, "items[].spec.volumes[]").typescript
    deep = describe_tool("k8s.pods.list", LIST, "items[]")
    assert deep.left_out[0] == "items[].spec"
    field = describe_tool("k8s.pods.list", LIST, "items[].p1").typescript
    assert LONG.strip()[:590] in field and field.endswith("type Part = string;\n")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("items[].status.owner.spec", "s1"),
        ("items[].status.labels[]", "l0"),
        ("items[].status.labels.app", "l0"),
        ('items[]["status"]["labels"][]', "l0"),
        ('items[].spec["node name"]', "string"),
    ],
)
def test_a_place_leads_through_references_choices_and_records(place: str, name: str) -> None:
    assert name in describe_tool("k8s.pods.list", LIST, place).typescript


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("items[].spce", "`items[]` has p0, p1, p2, spec, status"),
        ("spec", "the result has kind, items"),
        ("items.spec", "`items` has []"),
        ("kind.x", "`kind` has no known parts"),
        ("items[].spec.x", "and 42 more"),
        ("", "is not a place"),
        ("items[", "is not a place"),
        ("x" * 5000, "is not a place"),
    ],
)
def test_a_place_that_the_result_does_not_have_is_refused_with_what_it_has(place: str, problem: str) -> None:
    with pytest.raises(UnknownPart) as caught:
        describe_tool("k8s.pods.list", LIST, place)
    assert problem in str(caught.value) and len(str(caught.value)) < 1500


def test_several_tools_are_declared_together() -> None:
    text = declare([("k8s.pods.list", LIST), ("a.b", Tool("a.b", "", OPEN, fields("x", 1)))], "python")
    assert text.count("class tools:") == 1 and "x0" in text and '"items[].spec"' in text
    text = declare([("k8s.pods.list", LIST), ("a.b", LIST)], "typescript", "items[].status")
    assert text.count("type Part = {") == 2


def test_the_outermost_object_is_shown_however_large_it_is() -> None:
    wide = {"type": "array", "items": fields("w", 400)}
    short = shortened(wide, 100)
    assert len(short.schema["items"]["properties"]) == 400 and short.left_out == ()


schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#/gone"}, True, {}]),
    lambda inner: st.one_of(
        st.builds(lambda members: {"properties": members}, st.dictionaries(st.sampled_from(["a", "b c", "d"]), inner)),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, max_size=3)),
        st.builds(lambda rest: {"type": "object", "additionalProperties": rest}, inner),
    ),
    max_leaves=20,
)


@given(root=schemas, a=schemas, b=schemas, budget=st.integers(0, 300))
def test_every_place_that_is_left_out_can_be_asked_for(root: Any, a: Any, b: Any, budget: int) -> None:
    schema = {**(root if isinstance(root, dict) else {}), "$defs": {"A": a, "B": b}}
    for place in shortened(schema, budget).left_out:
        if place:
            describe_tool("x.y", Tool("x.y", "", OPEN, part_at(schema, place)))


def test_a_hostile_schema_takes_no_longer_than_the_loop_may_stand_still() -> None:
    names = [f"D{n}" for n in range(3000)]
    chain = {one: {"type": "array", "items": {"$ref": f"#/$defs/{other}"}} for one, other in itertools.pairwise(names)}
    wide = {
        "W": {"anyOf": [{"$ref": "#/$defs/W2"}] * 500},
        "W2": {"properties": {f"p{n}": {"$ref": "#/$defs/W"} for n in range(500)}},
    }
    for start in ("D0", "W"):
        schema = {"$ref": f"#/$defs/{start}", "$defs": chain | wide}
        began = time.process_time()
        shortened(schema)
        assert time.process_time() - began < 0.05
