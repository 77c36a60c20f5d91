"""The arguments of an operation: which there are, where each goes, and which are optional."""

from typing import Any

import jsonschema_rs
import msgspec
import pytest

from gloveport.sources.openapi.call.request import RequestBuilder
from gloveport.sources.openapi.operation import FieldEncoding, Parameter
from tests.sources.openapi.compiled import Compiled, openapi, operation, returning, sending

OBJECT = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
FILE = {"type": "string", "format": "binary"}


def parameter(name: str, place: str = "query", **rest: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {"type": "string"}} | rest


def description(compiled: Compiled) -> str:
    return next(iter(compiled.heads.values())).description


def accepts(schema: dict[str, Any], args: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(schema).is_valid(args)


def test_parameters_and_the_properties_of_a_body_are_flat_and_what_is_required_comes_first() -> None:
    document = operation(
        "post", "/a/{id}", parameters=[parameter("q"), parameter("id", "path"), parameter("r", required=True)], requestBody=sending(OBJECT)
    )  # fmt: skip
    compiled = Compiled(document)
    made, schema, _ = compiled.only()
    assert list(schema["properties"]) == ["id", "r", "name", "q", "age"]
    assert schema["required"] == ["id", "r", "name"] and schema["additionalProperties"] is False
    assert not made.grouped and made.body is not None and made.body.argument is None
    assert next(iter(compiled.heads.values())).parameters == ("id", "r", "name", "q", "age")


def test_names_that_clash_put_the_arguments_in_groups() -> None:
    document = operation(
        "put", "/a/{name}", parameters=[parameter("name", "path"), parameter("q")], requestBody=sending(OBJECT)
    )
    made, schema, _ = Compiled(document).only()
    assert made.grouped and made.body is not None and made.body.argument == "body"
    assert list(schema["properties"]) == ["path", "body", "query"] and schema["required"] == ["path", "body"]
    assert accepts(schema, {"path": {"name": "a"}, "body": {"name": "b"}})
    assert not accepts(schema, {"path": {"name": "a", "x": 1}, "body": {"name": "b"}})


def test_operation_parameters_replace_those_of_their_path() -> None:
    paths = {"/a": {"parameters": [parameter("q", description="old"), parameter("p")], "get": {"parameters": [parameter("q", description="new")]}}}  # fmt: skip
    _, schema, _ = Compiled(openapi(paths)).only()
    assert schema["properties"]["q"]["description"] == "new" and set(schema["properties"]) == {"p", "q"}


def test_header_parameters_that_something_else_decides_are_no_arguments() -> None:
    names = ["Accept", "content-type", "AUTHORIZATION", "X-Trace", "Host"]
    compiled = Compiled(operation(parameters=[parameter(name, "header") for name in names]))
    assert [one.name for one in compiled.only()[0].parameters] == ["X-Trace"] and not compiled.warnings
    compiled = Compiled(operation(parameters=[parameter("Cookie", "header")]))
    assert "the header cookie is left out" in description(compiled) and compiled.only()[0].parameters == ()


def test_a_parameter_in_the_query_of_a_path_is_an_argument_once() -> None:
    path = "/alerts?lat={lat}&unit={unit}&open={open}"
    declared = [parameter("lat", "path", schema={"type": "number"}), parameter("unit", style="pipeDelimited")]
    made, schema, _ = Compiled(operation(path=path, parameters=declared)).only()
    assert [(one.name, one.place, one.required) for one in made.parameters] == [
        ("lat", "path", True),
        ("open", "path", True),
        ("unit", "query", False),
    ]
    assert not made.grouped and schema["required"] == ["lat", "open"]
    assert schema["properties"]["lat"] == {"type": "number"}
    url = RequestBuilder(made, "https://a.example", {}).build({"lat": 1.5, "open": "x", "unit": "m"}).url
    assert url == "https://a.example/alerts?lat=1.5&open=x&unit=m"


AUTHORIZATION = parameter("Authorization", "header", required=True, description="The key of the shop.")
BEARER = {"type": "http", "scheme": "bearer"}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}


@pytest.mark.parametrize(
    ("schemes", "security", "required", "expected", "slots"),
    [
        ({}, None, True, [["authorization"]], ["authorization"]),
        ({}, None, False, [["authorization"], []], ["authorization"]),
        ({"k": KEY}, [{"k": []}], True, [["k", "authorization"]], ["k", "authorization"]),
        ({"k": KEY}, [{"k": []}], False, [["k", "authorization"], ["k"]], ["k", "authorization"]),
        ({"b": BEARER}, None, True, [["b"]], ["b"]),
        ({"b": BEARER, "k": KEY}, [{"b": []}, {"k": []}], True, [["b"], ["k"]], ["b", "k"]),
        ({"authorization": KEY}, None, True, [["authorization_2"]], ["authorization", "authorization_2"]),
    ],
)
def test_the_header_authorization_as_a_parameter_is_a_credential(
    schemes: Any, security: Any, required: bool, expected: Any, slots: Any
) -> None:
    node = {"parameters": [{**AUTHORIZATION, "required": required}]} | ({} if security is None else {"security": security})
    compiled = Compiled(operation(**node, components={"securitySchemes": schemes}))
    made, schema, _ = compiled.only()
    assert [list(names) for names in made.security] == expected and schema["properties"] == {}
    assert [slot["name"] for slot in compiled.facts["slots"]] == slots
    added = compiled.facts["slots"][-1]
    if len(slots) > len(schemes):
        assert (added["kind"], added["parameter"]) == ("header", "Authorization")
        assert "whole header" in added["description"] and "key of the shop" in added["description"]


def test_styles_have_the_defaults_of_their_place() -> None:
    listed = [
        parameter("a"),
        parameter("b", style="deepObject"),
        parameter("c", style="pipeDelimited", explode=False),
        parameter("d", "header"),
        parameter("e", "cookie"),
        parameter("id", "path", style="matrix"),
        parameter("f", style="matrix"),
    ]
    made, _, _ = Compiled(operation(path="/x/{id}", parameters=listed)).only()
    found = {one.name: (one.style, one.explode) for one in made.parameters}
    assert found == {
        "id": ("matrix", False), "a": ("form", True), "b": ("deepObject", True), "c": ("pipeDelimited", False),
        "d": ("simple", False), "e": ("form", True), "f": ("form", True),
    }  # fmt: skip


def test_a_parameter_with_content_is_sent_as_that() -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    made, schema, _ = Compiled(operation(parameters=[{"name": "filter", "in": "query", "content": content}])).only()
    assert made.parameters[0].content == "application/json" and schema["properties"]["filter"] == {"type": "object"}


def test_an_undeclared_path_parameter_is_a_string_and_one_that_the_path_lacks_is_left_out() -> None:
    compiled = Compiled(operation(path="/x/{id}", parameters=[parameter("gone", "path")]))
    made, schema, _ = compiled.only()
    assert [one.name for one in made.parameters] == ["id"] and schema["required"] == ["id"]
    assert "Incomplete: the parameter 'gone' is left out" in description(compiled)


def test_a_bad_parameter_is_left_out_and_named() -> None:
    compiled = Compiled(
        operation(parameters=[{"in": "query"}, parameter("x", "body2"), {"$ref": "#/gone"}, 7, parameter("q")])
    )
    assert [one.name for one in compiled.only()[0].parameters] == ["q"]
    assert len(compiled.warnings) == 4 and all("GET /things" in warning for warning in compiled.warnings)
    assert "Incomplete: " in description(compiled) and "'#/gone' points to nothing" in description(compiled)


@pytest.mark.parametrize(
    ("node", "part"),
    [
        ({"requestBody": {"content": {}}}, "its body is left out"),
        ({"requestBody": {"content": {f"text/x{n}": {"schema": {"maxLength": n}} for n in range(25)}}}, "only 20 of the media types"),
        ({"security": [{"odd": []}]}, "it needs a credential of a kind that is not supported"),
        ({"responses": {"200": {"$ref": "#/gone"}}}, "the response 200 is left out"),
        ({"parameters": [{"$ref": "#/gone"}], "description": "long " * 1000}, "'#/gone' points to nothing"),
    ],
)  # fmt: skip
def test_a_tool_whose_definition_could_not_be_read_completely_says_so(node: Any, part: str) -> None:
    compiled = Compiled(
        operation("post", **node, components={"securitySchemes": {"odd": {"type": "http", "scheme": "odd"}}})
    )
    assert "\n\nIncomplete: " in description(compiled) and part in description(compiled)
    assert any(part in warning for warning in compiled.warnings)


def test_a_tool_whose_schemas_are_too_large_says_so() -> None:
    large = {"type": "object", "properties": {f"property_{n}": {"enum": ["x" * 900]} for n in range(1200)}}
    compiled = Compiled(operation("post", requestBody=sending(large)))
    assert "it accepts more than the document says" in description(compiled)
    compiled = Compiled(operation("post", responses=returning(large)))
    assert "its schemas are too large" in description(compiled)


def test_references_to_parameters_bodies_and_answers_are_followed() -> None:
    components = {
        "parameters": {"q": {"$ref": "#/components/parameters/real"}, "real": parameter("q", required=True)},
        "requestBodies": {"b": sending(OBJECT)},
        "responses": {"r": {"content": {"application/json": {"schema": {"type": "string"}}}}},
    }
    document = operation("post", parameters=[{"$ref": "#/components/parameters/q"}], requestBody={"$ref": "#/components/requestBodies/b"}, responses={"201": {"$ref": "#/components/responses/r"}}, components=components)  # fmt: skip
    _, schema, output = Compiled(document).only()
    assert list(schema["properties"]) == ["q", "name", "age"] and output == {"type": "string"}


def test_an_operation_with_a_circular_body_is_left_out_and_the_others_work() -> None:
    loop = {"requestBodies": {"a": {"$ref": "#/components/requestBodies/b"}, "b": {"$ref": "#/components/requestBodies/a"}}}
    paths = {"/a": {"post": {"operationId": "bad", "requestBody": {"$ref": "#/components/requestBodies/a"}}}, "/b": {"get": {"operationId": "good"}}}  # fmt: skip
    compiled = Compiled(openapi(paths, components=loop))
    assert compiled.addresses == ["b.good"] and "POST /a" in compiled.warnings[0] and "circular" in compiled.warnings[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"oneOf": [OBJECT, {"type": "object", "properties": {"id": {"type": "string"}}}]},
        {"type": "string"},
        {"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}},
    ],
)
def test_a_body_without_known_properties_is_one_argument(schema: dict[str, Any]) -> None:
    made, found, _ = Compiled(operation("post", requestBody=sending(schema))).only()
    assert list(found["properties"]) == ["body"] and found["required"] == ["body"]
    assert made.body is not None and made.body.argument == "body"


def test_an_optional_body_with_required_properties_is_one_argument() -> None:
    _, schema, _ = Compiled(operation("post", requestBody=sending(OBJECT, required=False))).only()
    assert accepts(schema, {}) and accepts(schema, {"body": {"name": "a"}}) and not accepts(schema, {"body": {}})


def test_parts_of_a_body_are_put_together() -> None:
    schemas = {"Base": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}
    body = {"allOf": [{"$ref": "#/components/schemas/Base"}, OBJECT]}
    _, schema, _ = Compiled(operation("post", requestBody=sending(body), components={"schemas": schemas})).only()
    assert list(schema["properties"]) == ["id", "name", "age"] and schema["required"] == ["id", "name"]


def test_choices_between_properties_are_kept() -> None:
    body = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    _, schema, _ = Compiled(operation("post", requestBody=sending(body))).only()
    assert accepts(schema, {"a": 1}) and accepts(schema, {"b": 1}) and not accepts(schema, {})


@pytest.mark.parametrize(
    ("rest", "expected"), [(True, True), ({"type": "string"}, {"type": "string"}), (False, False), (None, False)]
)
def test_more_properties_are_allowed_only_where_the_body_says_so(rest: Any, expected: Any) -> None:
    body = OBJECT if rest is None else OBJECT | {"additionalProperties": rest}
    _, schema, _ = Compiled(operation("post", requestBody=sending(body))).only()
    assert schema["additionalProperties"] == expected


def test_several_media_types_are_a_choice() -> None:
    content = {"application/x-www-form-urlencoded": {"schema": OBJECT}, "application/json": {"schema": OBJECT}}
    made, schema, _ = Compiled(operation("post", requestBody={"required": True, "content": content})).only()
    assert schema["properties"]["content_type"]["enum"] == ["application/json", "application/x-www-form-urlencoded"]
    assert made.body is not None and [one.kind for one in made.body.contents] == ["json", "form"]
    assert list(schema["properties"]) == ["name", "age", "content_type"]


@pytest.mark.parametrize("parameters", [[], [{"name": "content_type", "in": "query", "schema": {"type": "string"}}]])
def test_a_media_type_without_an_optional_body_does_not_fit(parameters: list[Any]) -> None:
    content = {"text/plain": {"schema": {"type": "string"}}, "text/x-markdown": {"schema": {"type": "string"}}}
    _, schema, _ = Compiled(operation("post", parameters=parameters, requestBody={"content": content})).only()
    assert not accepts(schema, {"content_type": "text/plain"})
    assert accepts(schema, {}) and accepts(schema, {"body": "a", "content_type": "text/plain"})


def test_equivalent_media_types_are_offered_once() -> None:
    names = ["text/json", "application/json", "application/*+json", "application/xml"]
    made, schema, _ = Compiled(operation("post", requestBody={"required": True, "content": {name: {"schema": OBJECT} for name in names}})).only()  # fmt: skip
    assert made.body is not None and [one.media_type for one in made.body.contents] == ["application/json"]
    assert "content_type" not in schema["properties"]


def test_kinds_of_patches_are_a_choice() -> None:
    names = ["application/merge-patch+json", "application/json-patch+json"]
    _, schema, _ = Compiled(operation("patch", requestBody={"required": True, "content": {name: {"schema": {}} for name in names}})).only()  # fmt: skip
    assert schema["properties"]["content_type"]["enum"] == names


def chosen(content: dict[str, Any], args: dict[str, Any]) -> tuple[str, bytes]:
    """Return the media type and the body that a call with these arguments sends; they must fit the tool's schema."""
    made, schema, _ = Compiled(operation("post", requestBody={"required": True, "content": content})).only()
    assert accepts(schema, msgspec.to_builtins(args))
    request = RequestBuilder(made, "https://a.example", {}).build(args)
    return dict(request.headers)["Content-Type"].partition(";")[0], request.body or b""


def test_bytes_in_a_body_are_sent_as_multipart_where_the_definition_has_it() -> None:
    image = {"type": "object", "required": ["image"], "properties": {"image": FILE, "prompt": {"type": "string"}}}
    urls = {"type": "object", "required": ["urls"], "properties": {"urls": {"type": "array", "items": {"type": "string"}}}}
    for other in (urls, image):
        content = {"application/json": {"schema": other}, "multipart/form-data": {"schema": image}}
        args: dict[str, Any] = {"image": b"\x89PNG", "prompt": "x"}
        name, body = chosen(content, args if other is image else {"body": args})
        assert name == "multipart/form-data" and b"\x89PNG" in body
        name, body = chosen(
            content, {"body": {"image": {"data": b"\x89PNG"}}} if other is urls else {"image": {"data": b"\x89PNG"}}
        )
        assert name == "multipart/form-data" and b"\x89PNG" in body
    content = {"application/json": {"schema": urls}, "multipart/form-data": {"schema": image}}
    assert chosen(content, {"body": {"urls": ["u"]}}) == ("application/json", b'{"urls":["u"]}')
    assert chosen(content, {"body": {"image": "text"}})[0] == "multipart/form-data"
    assert chosen(content, {"body": {"urls": ["u"]}, "content_type": "multipart/form-data"})[0] == "multipart/form-data"
    assert chosen({"application/json": {"schema": urls}, "a/b": {"schema": FILE}}, {"body": b"raw"}) == ("a/b", b"raw")


@pytest.mark.parametrize("schema", [{"type": "object", "description": "Kubernetes"}, {}])
def test_an_object_is_a_merge_patch_and_a_list_a_json_patch(schema: dict[str, Any]) -> None:
    names = [f"application/{kind}+json" for kind in ("json-patch", "merge-patch", "strategic-merge-patch")]
    content = {"application/apply-patch+yaml": {"schema": schema}} | {name: {"schema": schema} for name in names}
    assert chosen(content, {"body": {"a": None}}) == ("application/merge-patch+json", b'{"a":null}')
    assert chosen(content, {"body": [{"op": "remove", "path": "/a"}]})[0] == "application/json-patch+json"
    assert chosen(content, {"body": {"a": 1}, "content_type": names[2]})[0] == names[2]


def test_files_in_a_multipart_body_are_bytes_or_bytes_with_a_name() -> None:
    body = {"type": "object", "required": ["file"], "properties": {"file": FILE, "more": {"type": "array", "items": FILE}, "note": {"type": "string"}}}  # fmt: skip
    content = {"multipart/form-data": {"schema": body, "encoding": {"note": {"contentType": "text/plain"}}}}
    made, schema, _ = Compiled(operation("post", requestBody={"required": True, "content": content})).only()
    assert made.body is not None
    (part,) = made.body.contents
    assert part.kind == "multipart" and part.binary == ("file", "more")
    assert part.encodings == {"note": FieldEncoding(content_type="text/plain")}
    assert accepts(schema, {"file": "raw", "more": [{"data": "raw", "filename": "a.txt"}]})
    assert not accepts(schema, {"file": {"filename": "a.txt"}})


@pytest.mark.parametrize(
    ("media_type", "schema", "kind", "expected"),
    [
        ("application/octet-stream", {}, "bytes", FILE),
        ("image/*", FILE, "bytes", FILE),
        ("text/plain", {"type": "string"}, "text", {"type": "string"}),
        ("application/xml", OBJECT, "text", {"type": "string"}),
        ("*/*", {"type": "array"}, "json", {"type": "array"}),
    ],
)
def test_other_bodies_are_one_argument(media_type: str, schema: Any, kind: str, expected: Any) -> None:
    made, found, _ = Compiled(operation("post", requestBody=sending(schema, media_type))).only()
    assert found["properties"]["body"] == expected
    assert made.body is not None and made.body.contents[0].kind == kind and "*" not in made.body.contents[0].media_type


def test_an_empty_body_is_no_argument() -> None:
    body = sending({"type": "object", "properties": {}}, "application/x-www-form-urlencoded", required=False)
    made, schema, _ = Compiled(operation("delete", requestBody=body)).only()
    assert made.body is None and schema["properties"] == {}


def test_a_secret_that_is_also_listed_as_a_parameter_is_no_argument() -> None:
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    document = operation(parameters=[parameter("x-key", "header", required=True), parameter("q")], security=[{"key": []}], components={"securitySchemes": schemes})  # fmt: skip
    made, schema, _ = Compiled(document).only()
    assert list(schema["properties"]) == ["q"] and made.security == (("key",),)
    assert made.parameters == (Parameter("q", "q", "query"),)


@pytest.mark.parametrize("place", [["query"], {"in": "query"}, None, 5, "cookies"])
def test_a_parameter_at_an_unknown_place_is_left_out_with_a_warning(place: Any) -> None:
    compiled = Compiled(operation("get", "/a", parameters=[parameter("q", place), parameter("r")]))
    assert list(compiled.only()[1]["properties"]) == ["r"]
    assert any("the parameter 'q'" in warning for warning in compiled.warnings)
