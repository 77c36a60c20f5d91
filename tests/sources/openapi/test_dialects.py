"""Swagger 2.0 and discovery documents compile to the same tools as OpenAPI 3."""

from typing import Any

from gloveport.sources.openapi.operation import FieldEncoding, Paging
from tests.sources.openapi.compiled import Compiled

FILE = {"type": "string", "format": "binary"}


def swagger(paths: dict[str, Any], **rest: Any) -> dict[str, Any]:
    given = {
        "swagger": "2.0",
        "info": {"title": "Pets"},
        "host": "api.example.com",
        "basePath": "/v1",
        "schemes": ["http", "https"],
    }
    return given | {"paths": paths} | rest


def test_a_swagger_body_and_its_definitions() -> None:
    pet = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "tag": {"$ref": "#/definitions/Tag"}},
    }
    node = {
        "operationId": "addPet",
        "tags": ["pets"],
        "parameters": [{"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}],
        "responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/Pet"}}},
    }
    compiled = Compiled(
        swagger({"/pets": {"post": node}}, definitions={"Pet": pet, "Tag": {"type": "string", "x-nullable": True}})
    )
    made, schema, output = compiled.only()
    assert compiled.addresses == ["pets.addPet"]
    assert compiled.facts["servers"] == ["https://api.example.com/v1", "http://api.example.com/v1"]
    assert list(schema["properties"]) == ["name", "tag"] and schema["$defs"]["Tag"]["type"] == ["string", "null"]
    assert made.body is not None and made.body.contents[0].media_type == "application/json"
    assert output is not None and output["$ref"] == "#/$defs/Pet"


def test_a_swagger_operation_may_be_a_reference_and_says_what_it_lacks() -> None:
    query = {"name": "q", "in": "query", "type": "string", "required": True}
    body = {"name": "b", "in": "body", "schema": {"type": "object", "properties": {"x": {"type": "string"}}}}
    field = {"name": "f", "in": "formData", "type": "string"}
    compiled = Compiled(
        swagger(
            {"/pets": {"parameters": [query], "post": {"$ref": "#/x-operations/add"}}},
            **{"x-operations": {"add": {"operationId": "addPet", "parameters": [body, {**body, "name": "c"}, field]}}},
        )
    )
    made, schema, _ = compiled.only()
    assert compiled.addresses == ["pets.addPet"] and list(schema["properties"]) == ["q", "x"] and made.body is not None
    (head,) = compiled.heads.values()
    assert "several bodies" in head.description and "the fields of a form are left out" in head.description


def test_swagger_lists_are_joined_as_their_collection_format_says() -> None:
    def listed(name: str, place: str = "query", form: str | None = None) -> dict[str, Any]:
        return {"name": name, "in": place, "type": "array", "items": {"type": "string"}} | (
            {"collectionFormat": form} if form else {}
        )

    parameters = [
        listed("a"),
        listed("b", form="multi"),
        listed("c", form="pipes"),
        listed("d", form="ssv"),
        listed("h", "header"),
    ]
    made, schema, _ = Compiled(swagger({"/x": {"get": {"parameters": parameters}}})).only()
    assert {one.name: (one.style, one.explode) for one in made.parameters} == {
        "a": ("form", False), "b": ("form", True), "c": ("pipeDelimited", False), "d": ("spaceDelimited", False), "h": ("simple", False),
    }  # fmt: skip
    assert schema["properties"]["a"] == {"type": "array", "items": {"type": "string"}}


def test_swagger_forms_and_files() -> None:
    fields = [
        {"name": "note", "in": "formData", "type": "string", "required": True, "description": "A note"},
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
    ]
    made, schema, _ = Compiled(swagger({"/x": {"post": {"parameters": fields}}})).only()
    assert made.body is not None
    assert made.body.contents[0].kind == "form" and made.body.contents[0].encodings == {
        "tags": FieldEncoding(style="form", explode=True)
    }
    assert schema["properties"]["note"] == {"type": "string", "description": "A note"} and schema["required"] == ["note"]
    file = [{"name": "file", "in": "formData", "type": "file", "required": True}]
    made, schema, _ = Compiled(swagger({"/x": {"post": {"parameters": file}}})).only()
    assert made.body is not None
    assert made.body.contents[0].kind == "multipart" and made.body.contents[0].binary == ("file",)
    assert schema["properties"]["file"]["anyOf"][0] == FILE


def test_swagger_media_types_and_security() -> None:
    node = {"produces": ["image/png"], "responses": {"200": {"schema": {"type": "file"}}}, "security": [{"key": []}]}
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "b": {"type": "basic"},
        "o": {"type": "oauth2", "scopes": {"s": ""}},
    }
    compiled = Compiled(swagger({"/x": {"get": node}}, securityDefinitions=schemes, produces=["application/json"]))
    made, _, output = compiled.only()
    assert made.produces == ("image/png",) and output == FILE and made.security == (("key",),)
    assert [slot["kind"] for slot in compiled.facts["slots"]] == ["header", "basic", "oauth2"]


def test_a_swagger_document_without_a_host_is_served_from_where_it_was_read() -> None:
    document = swagger({"/x": {"get": {}}})
    del document["host"]
    assert Compiled(document, "http://127.0.0.1:9/swagger.json").facts["servers"] == ["http://127.0.0.1:9/v1"]


DISCOVERY = {
    "kind": "discovery#restDescription",
    "title": "Files API",
    "version": "v3",
    "rootUrl": "https://www.googleapis.com/",
    "servicePath": "files/v3/",
    "parameters": {"key": {"type": "string", "location": "query"}, "fields": {"type": "string", "location": "query"}},
    "auth": {"oauth2": {"scopes": {"https://www.googleapis.com/auth/files": {"description": "all"}}}},
    "schemas": {
        "File": {"id": "File", "type": "object", "properties": {"name": {"type": "string"}, "parent": {"$ref": "File"}}},
        "FileList": {"type": "object", "properties": {"files": {"type": "array", "items": {"$ref": "File"}}, "nextPageToken": {"type": "string"}}},
    },
    "resources": {
        "files": {
            "methods": {
                "list": {
                    "id": "files.files.list", "path": "files", "httpMethod": "GET", "response": {"$ref": "FileList"},
                    "parameters": {
                        "pageToken": {"type": "string", "location": "query"},
                        "pageSize": {"type": "integer", "location": "query", "default": "100", "minimum": "1"},
                        "labels": {"type": "string", "location": "query", "repeated": True},
                    },
                },
                "create": {
                    "id": "files.files.create", "path": "{+parent}/files", "httpMethod": "POST", "supportsMediaUpload": True,
                    "request": {"$ref": "File"}, "response": {"$ref": "File"}, "description": "Creates a file.",
                    "scopes": ["https://www.googleapis.com/auth/files"],
                    "parameters": {"parent": {"type": "string", "location": "path", "required": True, "pattern": "^folders/[^/]+$"}},
                },
            },
            "resources": {"labels": {"methods": {"get": {"id": "files.files.labels.get", "path": "labels", "httpMethod": "GET"}, "bad": {"path": 1}}}},
        }
    },
}  # fmt: skip


def test_a_discovery_document() -> None:
    compiled = Compiled(DISCOVERY, "/tmp")
    assert compiled.addresses == ["files.create", "files.labels.get", "files.list"]
    assert compiled.facts["servers"] == ["https://www.googleapis.com/files/v3"]
    assert [(slot["name"], slot["kind"]) for slot in compiled.facts["slots"]] == [
        ("oauth2", "oauth2"),
        ("api_key", "query"),
    ]
    listing = compiled.definitions["files.list"].operation
    assert listing.paging == Paging(cursor="pageToken", at=("nextPageToken",), items=("files",))
    assert compiled.inputs["files.list"]["properties"]["pageSize"] == {"type": "integer", "minimum": 1, "default": 100}
    assert compiled.inputs["files.list"]["properties"]["labels"] == {"type": "array", "items": {"type": "string"}}
    assert (
        "fields" in compiled.inputs["files.list"]["properties"] and "key" not in compiled.inputs["files.list"]["properties"]
    )
    assert any("'bad'" in warning for warning in compiled.warnings)


def test_a_discovery_method_with_a_reserved_path_and_media() -> None:
    compiled = Compiled(DISCOVERY)
    made = compiled.definitions["files.create"].operation
    assert (
        made.path == "/{parent}/files"
        and made.parameters[0].allow_reserved
        and made.security == (("oauth2",), ("api_key",))
    )
    assert compiled.definitions["files.create"].operation.grouped  # the body has a `parent` too
    assert "can't be uploaded" in compiled.heads["files.create"].description
    output = compiled.outputs["files.create"]
    assert output is not None and output["$defs"]["File"]["properties"]["parent"] == {"$ref": "#/$defs/File"}
