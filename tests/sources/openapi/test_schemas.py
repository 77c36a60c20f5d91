"""Schemas of every dialect become valid JSON Schema 2020-12; an invalid keyword alone is left out."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.sources.schemas.keywords import COMMON_RULES
from tests.sources.openapi.compiled import Compiled, is_incomplete, operation, returning, sending


def output(schema: Any, **components: Any) -> Any:
    return Compiled(operation(responses=returning(schema), components={"schemas": components})).only()[2]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"nullable": True, "allOf": [{"type": "string"}]}, {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "exclusiveMinimum": 0}),
        ({"type": "string", "example": "x", "examples": ["y"], "xml": {}, "x-y": 1}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"oneOf": [{"type": "string"}], "discriminator": {"propertyName": "k"}}, {"anyOf": [{"type": "string"}]}),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "string"}]}),
        ({"type": ["string", "null"], "const": "a"}, {"type": ["string", "null"], "const": "a"}),
        ({"type": "object", "properties": {"$ref": {"type": "string"}}}, {"type": "object", "properties": {"$ref": {"type": "string"}}}),
        # nonsense, part by part
        ({"type": "object", "required": True, "properties": {"a": {"required": "yes"}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "strnig", "minLength": "3", "maxLength": -1, "multipleOf": 0, "pattern": "("}, {}),
        ({"type": "string", "enum": []}, {"type": "string"}),
        ({"required": ["a", "a", 7]}, {"required": ["a"]}),
        ({"allOf": []}, {}),
        ({"minLength": 2.0}, {"minLength": 2}),
    ],
)  # fmt: skip
def test_dialects_become_one(schema: Any, expected: Any) -> None:
    assert output(schema) == expected


def test_properties_that_only_one_side_sees_are_dropped_from_the_other() -> None:
    pet = {
        "type": "object",
        "required": ["id", "name", "secret"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string"},
            "secret": {"type": "string", "writeOnly": True},
            "friend": {"$ref": "#/components/schemas/Pet"},
        },
    }
    document = operation("post", requestBody=sending({"$ref": "#/components/schemas/Pet"}), responses=returning({"$ref": "#/components/schemas/Pet"}), components={"schemas": {"Pet": pet}})  # fmt: skip
    _, sent, received = Compiled(document).only()
    assert list(sent["properties"]) == ["name", "secret", "friend"] and sent["required"] == ["name", "secret"]
    assert received is not None and received["$ref"] == "#/$defs/PetOutput"
    assert list(received["$defs"]["PetOutput"]["properties"]) == ["id", "name", "friend"]
    assert received["$defs"]["PetOutput"]["properties"]["friend"] == {"$ref": "#/$defs/PetOutput"}
    assert sent["$defs"]["PetInput"]["properties"]["friend"] == {"$ref": "#/$defs/PetInput"}


@pytest.mark.parametrize(
    "pet",
    [
        {"properties": {"id": {"$ref": "#/components/schemas/Id"}, "n": {}}, "required": ["id", "n"]},
        {"properties": {"id": {"$ref": "#/components/schemas/Again"}, "n": {}}, "required": ["id", "n"]},
        {"properties": {"id": {"allOf": [{"$ref": "#/components/schemas/Id"}]}, "n": {}}, "required": ["id", "n"]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"n": {}}}], "required": ["id", "n"]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"n": {}}, "required": ["id", "n"]}], "not": {}},
        {"allOf": [{"$ref": "#/components/schemas/Base"}], "properties": {"n": {}}, "required": ["id", "n"], "not": {}},
    ],
)
@pytest.mark.parametrize("place", ["#/components/schemas/Pet", None])
def test_a_property_that_refers_to_a_hidden_one_is_hidden(pet: dict[str, Any], place: str | None) -> None:
    schemas = {
        "Id": {"type": "string", "readOnly": True},
        "Again": {"$ref": "#/components/schemas/Id"},
        "Base": {"properties": {"id": {"$ref": "#/components/schemas/Id"}}},
        "Pet": pet,
    }
    schema = pet if place is None else {"$ref": place}
    document = operation("post", requestBody=sending(schema), responses=returning(schema), components={"schemas": schemas})
    _, sent, received = Compiled(document).only()
    assert '"id"' not in json.dumps(sent) and '"n"' in json.dumps(sent)
    assert received is not None and '"id"' in json.dumps(received)


def test_a_schema_that_both_sides_see_alike_is_kept_once() -> None:
    reference = {"type": "object", "properties": {"at": {"$ref": "#/components/schemas/Point"}}, "required": ["at"]}
    document = operation("post", requestBody=sending(reference), responses=returning(reference), components={"schemas": {"Point": {"type": "object"}}})  # fmt: skip
    _, sent, received = Compiled(document).only()
    assert received is not None and list(sent["$defs"]) == list(received["$defs"]) == ["Point"]


def test_recursive_schemas_stay_references() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/a~1b%20c"}}}
    made = output({"$ref": "#/components/schemas/a~1b%20c"}, **{"a/b c": node})
    assert made["$ref"] == "#/$defs/a_b_c"
    validator = jsonschema_rs.Draft202012Validator(made)
    assert validator.is_valid({"next": {"next": {}}}) and not validator.is_valid({"next": {"next": 1}})


def test_keys_with_percent_signs_are_found() -> None:
    made = output({"$ref": "#/components/schemas/a%2520b"}, **{"a%20b": {"type": "string"}, "%": {"type": "integer"}})
    assert made["$defs"] == {"a_20b": {"type": "string"}}


def test_names_that_collide_are_made_distinct_in_any_order() -> None:
    schemas = {"a.b": {"type": "string"}, "a-b": {"type": "integer"}, "a_b": {"type": "boolean"}}
    properties = {key: {"$ref": f"#/components/schemas/{key}"} for key in schemas}
    first = output({"properties": properties}, **schemas)
    turned = output({"properties": properties}, **dict(reversed(schemas.items())))
    assert first == turned
    assert first["$defs"]["a_b"] == {"type": "boolean"} and len(first["$defs"]) == 3


@pytest.mark.parametrize(
    "reference",
    ["https://internal.example/x.json#/A", "file:///etc/passwd", "//host/x", "/etc/passwd", "other.yaml#/A", "#/nowhere", "#anchor", "http://169.254.169.254/"],
)  # fmt: skip
def test_a_reference_out_of_the_document_accepts_anything_with_a_warning(reference: str) -> None:
    compiled = Compiled(operation(responses=returning({"properties": {"a": {"$ref": reference}, "b": {"type": "string"}}})))
    made = compiled.only()[2]
    assert made is not None and is_incomplete(made["properties"].pop("a"))
    assert made == {"properties": {"b": {"type": "string"}}}
    assert "GET /things" in compiled.warnings[0] and reference in compiled.warnings[0]


def test_keywords_beside_a_reference_are_kept() -> None:
    made = output({"$ref": "#/components/schemas/A", "description": "mine", "nullable": True}, A={"type": "string"})
    assert made["description"] == "mine" and made["anyOf"] == [{"$ref": "#/$defs/A"}, {"type": "null"}]


def test_one_bad_shared_schema_affects_only_itself() -> None:
    made = output({"properties": {"a": {"$ref": "#/components/schemas/Bad"}, "b": {"$ref": "#/components/schemas/Good"}}}, Bad=7, Good={"type": "string"})  # fmt: skip
    assert is_incomplete(made["properties"]["a"]) and made["$defs"]["Good"] == {"type": "string"}


def test_a_schema_nested_too_deep_ends_where_it_is_too_deep() -> None:
    deep: Any = {"type": "string"}
    for _ in range(100):
        deep = {"items": deep}
    compiled = Compiled(operation(responses=returning(deep)))
    assert any("deeper" in warning for warning in compiled.warnings)


def test_descriptions_are_cleaned_and_capped() -> None:
    made = output({"type": "string", "description": "seen\u202e\u200b " + "x" * 5000})
    assert made["description"].startswith("seen x") and len(made["description"]) <= 600


KEYS = st.text(max_size=4) | st.sampled_from([*COMMON_RULES, "$ref", "nullable", "readOnly"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_every_schema_is_normalised_to_one_that_compiles(schema: Any) -> None:
    Compiled(
        operation(
            "post",
            requestBody=sending(schema),
            responses=returning(schema),
            parameters=[{"name": "q", "in": "query", "schema": schema}],
        )
    )
