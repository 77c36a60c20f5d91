"""Documents in JSON and YAML, with files beside them. A hostile document fails quickly, with a clear error."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.errors import SourceError
from gloveport.sources.openapi.compile.document.document import MAX_DOCUMENT_BYTES, parse_text
from tests.sources.openapi.compiled import Compiled, is_incomplete, openapi, operation, returning, sending

PETS = openapi({"/pets": {"get": {"operationId": "list", "tags": ["pets"], "responses": returning({"type": "array"})}}})


def refused(raw: bytes) -> str:
    began = time.process_time()
    with pytest.raises(SourceError) as caught:
        Compiled(raw)
    assert time.process_time() - began < 30
    assert "the definition" in caught.value.message
    return caught.value.message


def test_yaml_and_json_are_the_same() -> None:
    assert Compiled(yaml.safe_dump(PETS).encode()).heads == Compiled(json.dumps(PETS, indent=2).encode()).heads


def test_yaml_of_others_with_tabs_and_characters_that_yaml_does_not_allow_is_read() -> None:
    text = (
        b"openapi: 3.1.0\npaths:\n\t\n  /a:\n \t \n    get:\n      operationId: a\n      description: |\n"
        b"        It\xc2\x92s on.\n\t\t\n        \n      parameters:\n\t\n      - {name: q, in: query}\n\t"
    )
    compiled = Compiled(text)
    (head,) = compiled.heads.values()
    assert head.description == "It\ufffds on." and head.parameters == ("q",)
    with pytest.raises(SourceError, match="line 2"):
        Compiled(b"openapi: 3.1.0\n\tpaths: {}\n")


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, -(10**19) + 1, 10**30, 1, -1])
def test_integers_of_any_size_are_read_alike_from_yaml_and_json(number: int) -> None:
    schema = {"type": "number", "maximum": number}
    text = "{paths: {/a: {get: {parameters: [{name: q, in: query, schema: {type: number, maximum: %d}}]}}}, openapi: 3.1.0, components: {schemas: {A: {maximum: %d}}}}"
    document = openapi({"/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": schema}]}}})
    found = [
        made.only()[1]["properties"]["q"]["maximum"]
        for made in (Compiled((text % (number, number)).encode()), Compiled(json.dumps(document).encode()))
    ]
    assert found[0] == found[1] and type(found[0]) is type(found[1]) and found[0] == pytest.approx(number)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_understood(encoding: str) -> None:
    assert Compiled(json.dumps(PETS).encode(encoding)).addresses == ["pets.list"]


def test_yaml_scalars_keep_their_spelling() -> None:
    text = """
openapi: 3.1.0
info: {title: Quirks, version: 1.0}
servers: [{url: https://x.example}]
paths:
  /x:
    get:
      operationId: x.on
      parameters:
        - {name: on, in: query, schema: {type: string, enum: [on, off, yes, 2020-01-01, 010, 1_0], default: 2020-01-01T00:00:00Z}}
      responses:
        200:
          description: ok
          content: {application/json: {schema: {type: object, properties: {on: {type: boolean}, 404: {type: integer}, y: {}}}}}
"""
    _, schema, output = Compiled(text.encode()).only()
    assert schema["properties"]["on"]["enum"] == ["on", "off", "yes", "2020-01-01", "010", "1_0"]
    assert schema["properties"]["on"]["default"] == "2020-01-01T00:00:00Z"
    assert output is not None and list(output["properties"]) == ["on", "404", "y"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("base: &b {x: 1, y: 2}\nmade: {<<: *b, y: 3}", {"base": {"x": 1, "y": 2}, "made": {"x": 1, "y": 3}}),
        ("a: !!python/object/apply:os.system ['x']", {"a": ["x"]}),
        ("a: [~, null, true, False, 1, -2.5, 1e3, .5, '1', 0x10, 1:30, =]", {"a": [None, None, True, False, 1, -2.5, 1000.0, 0.5, "1", "0x10", "1:30", "="]}),
        ("a: 99999999999999999999999", {"a": 1e23}),
        ("a: 1e999\nb: .nan\nc: .inf", {"a": "1e999", "b": ".nan", "c": ".inf"}),
        ("{a: 1}", {"a": 1}),
    ],
)  # fmt: skip
def test_yaml_has_no_tags_dates_or_surprises(text: str, expected: Any) -> None:
    assert parse_text(text.encode(), "it") == expected


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "stands for more than"),
        ("a: &a [*a]", "before it is complete"),
        ("a: 1\nb: 2\na: 3", "'a' twice in one object (line 3)"),
        ('{"a": 1, "b": {"c": 1, "c" : 2}}', "'c' twice"),
        ('{"a": 1, "\\u0061": 2}', "'a' twice"),
        ("? [1, 2]\n: 3", "a key that is not a string"),
        ('{"a": NaN}', "is not JSON"),
        ('{"a": Infinity}', "is not JSON"),
        ('{"a": 1', "is not JSON: "),
        ('{"a": "\\ud800"}', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested deeper"),
        ("- " * 100_000, "nested deeper"),
        ("{a: " * 100_000, "nested deeper"),
        ("a: 1\n--- \nb: 2", "more than one YAML document"),
        ("a: [1", "neither JSON nor YAML"),
        ("", "holds no object"),
        ("just words", "holds no object"),
        ("[1, 2]", "holds no object"),
        ("a: \x01", "neither JSON nor YAML"),
        ('{"openapi": "4.0.0", "paths": {}}', "is of version '4.0.0'"),
        ('{"swagger": "1.2", "apis": []}', "is of version '1.2'"),
        ('{"name": "x"}', "neither an OpenAPI nor a discovery document"),
        ('{"openapi": "3.0.0", "paths": {}}', "no operations under `paths`"),
        ('{"openapi": "3.0.0", "paths": []}', "no operations"),
        ('{"openapi": "3.0.0"}', "no operations"),
    ],
)
def test_a_document_that_can_not_be_used_says_why(text: str, reason: str) -> None:
    assert reason in refused(text.encode())


def test_bytes_that_are_not_text_are_refused() -> None:
    assert "UTF-8" in refused(b"a: \xff\xfe\x00")
    assert "UTF-16" in refused(b"\xff\xfe\x00\xd8\x00")


def test_a_document_of_fifty_megabytes_is_refused_unread() -> None:
    assert "bytes, more than" in refused(b" " * (MAX_DOCUMENT_BYTES + 1))


@pytest.mark.long
def test_a_small_document_that_compiles_to_a_huge_one_is_refused() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x" * 500} for n in range(1500)}}
    parameters = {"p": {"name": "p", "in": "query", "schema": wide}}
    paths = {f"/x{n}": {"get": {"parameters": [{"$ref": "#/components/parameters/p"}]}} for n in range(1000)}
    assert "when it is compiled" in refused(json.dumps(openapi(paths, components={"parameters": parameters})).encode())


def test_parts_that_multiply_are_cut_short() -> None:
    levels = 40
    schemas = {f"L{n}": {"allOf": [{"$ref": f"#/components/schemas/L{n + 1}"}] * 10} for n in range(levels)}
    schemas[f"L{levels}"] = {"type": "object", "properties": {"a": {}}}
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}
    began = time.process_time()
    Compiled(
        operation(
            "post",
            requestBody=body,
            responses=returning({"$ref": "#/components/schemas/L0"}),
            components={"schemas": schemas},
        )
    )
    assert time.process_time() - began < 30


def test_paths_that_are_references_or_nonsense() -> None:
    item = {"get": {"operationId": "a.one"}, "post": 7}
    paths = {
        "/a": {"$ref": "#/components/pathItems/a"},
        "/b": {"$ref": "#/paths/~1a"},
        "/c": {"$ref": "#/paths/~1c"},
        "/d": 7,
        "x-y": {},
    }
    compiled = Compiled(openapi(paths, components={"pathItems": {"a": item}}))
    assert compiled.addresses == ["a.one", "a.one_get"]
    assert {warning.partition(":")[0] for warning in compiled.warnings} == {"POST /a", "POST /b", "path '/c'", "path '/d'"}


def write(folder: Path, files: dict[str, Any]) -> bytes:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return (folder / "api.json").read_bytes()


def test_files_beside_a_document_are_part_of_it(tmp_path: Path) -> None:
    pet = {"type": "object", "properties": {"tag": {"$ref": "../common.yaml#/Tag"}, "next": {"$ref": "#"}}}
    api = operation(responses=returning({"$ref": "./schemas/my%20pet.json"}), parameters=[{"$ref": "common.yaml#/limit"}])
    common = "Tag: {type: string}\nlimit: {name: limit, in: query, schema: {$ref: '#/Tag'}}\n"
    raw = write(tmp_path, {"api.json": api, "schemas/my pet.json": pet, "common.yaml": common})
    compiled = Compiled(raw, str(tmp_path))
    _, schema, output = compiled.only()
    assert output is not None and not compiled.warnings
    root = output["$defs"][output["$ref"].rpartition("/")[2]]
    assert root["properties"]["next"] == {"$ref": output["$ref"]}
    assert output["$defs"]["TagOutput"] == schema["$defs"]["TagInput"] == {"type": "string"}
    assert schema["properties"]["limit"] == {"$ref": "#/$defs/TagInput"}
    assert sorted(compiled.facts["siblings"]) == ["common.yaml", "schemas/my pet.json"]


OPERATION = {
    "operationId": "findPets",
    "parameters": [{"$ref": "parameters.json#/q"}],
    "requestBody": {"content": {"application/json": {"schema": {"properties": {"n": {"$ref": "pet.json"}}}}}},
    "responses": {"200": {"$ref": "parameters.json#/ok"}},
}
SHARED = [{"$ref": "common.json#/tenant"}]


@pytest.mark.parametrize("dialect", ["openapi", "swagger"])
def test_an_operation_may_be_a_reference_into_another_file(tmp_path: Path, dialect: str) -> None:
    schema = {"type": "string", "description": "A pet."}
    files = {
        "common.json": {"tenant": {"name": "tenant", "in": "header", "schema": {"type": "string"}}},
        "pets/parameters.json": {
            "q": {"name": "q", "in": "query", "required": True, "schema": {"$ref": "pet.json"}},
            "ok": {"content": {"application/json": {"schema": {"$ref": "pet.json"}}}, "schema": {"$ref": "pet.json"}},
            "b": {"name": "b", "in": "body", "schema": {"properties": {"n": {"$ref": "pet.json"}}}},
        },
        "pets/pet.json": schema,
        "pets/find.json": {"get": OPERATION},
    }
    paths = {"/pets": {"parameters": SHARED, "post": {"$ref": "pets/find.json#/get"}}}
    api: dict[str, Any] = openapi(paths)
    if dialect == "swagger":
        api = {"swagger": "2.0", "info": {}, "host": "a.example", "paths": paths}
        parameters = [*OPERATION["parameters"], {"$ref": "parameters.json#/b"}]
        files["pets/find.json"] = {"get": {**OPERATION, "parameters": parameters}}
    compiled = Compiled(write(tmp_path, {"api.json": api, **files}), str(tmp_path))
    made, taken, given = compiled.only()
    assert not compiled.warnings and compiled.addresses == ["pets.findPets"]
    assert list(taken["properties"]) == ["q", "tenant", "n"] and made.body is not None
    assert "A pet." in json.dumps(taken["properties"] | taken["$defs"]) and "A pet." in json.dumps(given)


def test_a_reference_to_no_operation_is_a_warning_and_what_stands_beside_one_is_named() -> None:
    gone = {"get": {"$ref": "#/gone"}, "put": {"$ref": "#/info/title"}, "post": {"$ref": "#/x-post", "summary": "mine"}}
    compiled = Compiled(openapi({"/a": gone}, **{"x-post": {"operationId": "make", "description": "Make one."}}))
    assert compiled.addresses == ["a.make"]
    assert [warning.partition(":")[0] for warning in compiled.warnings] == ["GET /a", "PUT /a", "POST /a"]
    (head,) = compiled.heads.values()
    assert head.description == "Make one.\n\nIncomplete: what stands beside its `$ref` is left out."


def test_a_reference_may_leave_the_folder_and_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "api"
    first = {"$ref": "../api/common.json#/Tag"}
    api = operation(responses=returning({"type": "object", "properties": {"a": first, "b": {"$ref": "sub/x.json"}}}))
    raw = write(
        folder,
        {"api.json": api, "common.json": {"Tag": {"type": "string"}}, "sub/x.json": {"$ref": "../../api/common.json#/Tag"}},
    )
    compiled = Compiled(raw, str(folder))
    assert not compiled.warnings
    assert sorted(compiled.facts["siblings"]) == ["common.json", "sub/x.json"]


@pytest.mark.parametrize(
    "reference",
    [
        *("../secret.json", "link.json", "linked/secret.json", "below/../../secret.json", "%2e%2e/secret.json"),
        *("%2Fetc/passwd", "a%00", "..", ".", "dir", "missing.json", "bad.json"),
    ],
)
def test_a_reference_never_leaves_the_folder(tmp_path: Path, reference: str) -> None:
    folder = tmp_path / "api"
    raw = write(folder, {"api.json": operation(responses=returning({"$ref": reference})), "bad.json": "{", "dir/x": "1"})
    (tmp_path / "secret.json").write_text('{"type": "string", "description": "canary"}')
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "linked").symlink_to(tmp_path)
    compiled = Compiled(raw, str(folder))
    assert is_incomplete(compiled.only()[2]) and len(compiled.warnings) == 1


def test_each_side_sees_its_own_properties_of_files_beside_a_document(tmp_path: Path) -> None:
    pet = {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}}}
    schemas = {"Box": {"type": "object", "properties": {"pet": {"$ref": "pet.json"}}}}
    box = {"type": "object", "properties": {"box": {"$ref": "#/components/schemas/Box"}}}
    document = operation("post", requestBody=sending(box), responses=returning(box), components={"schemas": schemas})
    _, sent, received = Compiled(write(tmp_path, {"api.json": document, "pet.json": pet}), str(tmp_path)).only()
    assert received is not None
    assert '"id"' not in json.dumps(sent) and '"id"' in json.dumps(received)


def test_an_absolute_path_is_not_read_even_inside_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "pet.json"
    inside.write_text('{"type": "string"}')
    for reference in (str(inside), inside.as_uri()):
        assert is_incomplete(Compiled(operation(responses=returning({"$ref": reference})), str(tmp_path)).only()[2])


MUTATED = json.dumps(PETS).encode()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(MUTATED) - 1), st.binary(max_size=6), st.integers(0, 30))
def test_mutated_documents_load_or_are_refused(at: int, put: bytes, cut: int) -> None:
    try:
        Compiled(MUTATED[:at] + put + MUTATED[at + cut :])
    except SourceError as error:
        assert error.message.startswith("the definition")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@?, \n\t0.~<", max_size=60))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    try:
        parse_text(text.encode(), "it")
    except SourceError as error:
        assert error.message.startswith("it ")
