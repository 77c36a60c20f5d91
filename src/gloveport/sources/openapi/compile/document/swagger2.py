"""The OpenAPI 3 view of Swagger 2.0: bodies and forms become request bodies, response schemas get media types.

The other parameters keep the form of Swagger 2.0; `compile/parameters.py` reads both forms.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from gloveport.sources.openapi.compile.document.document import OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.operations import DocumentView, RawOperation, raw_operations
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.media_types import is_binary
from gloveport.sources.openapi.frames import is_url

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# `collectionFormat` → style and explode. OpenAPI 3 has no style that joins with tabs.
COLLECTION_FORMATS = {
    "csv": (None, False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_PARAMETER_KEYWORDS = frozenset({"name", "in", "required", "description", "collectionFormat", "schema", "allowEmptyValue"})


def swagger_view(document: OpenApiDocument, warn: Warn) -> DocumentView:
    """Return the view of a Swagger 2.0 document."""
    root = document.root
    operations = _operations(document, warn)
    schemes, security = root.get("securityDefinitions"), root.get("security")
    return DocumentView(root.get("info"), _servers(document), schemes, security, operations)


def _servers(document: OpenApiDocument) -> list[dict[str, str]]:
    root, base = document.root, document.base
    host, path = root.get("host"), root.get("basePath")
    path = path if isinstance(path, str) and path.startswith("/") else "/"
    own = urlsplit(base) if is_url(base) else None
    if not isinstance(host, str) or not host:
        return [{"url": path}]
    listed = root.get("schemes")
    schemes = [scheme for scheme in listed if scheme in ("https", "http")] if isinstance(listed, list) else []
    schemes = schemes or [own.scheme if own else "https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in sorted(schemes, reverse=True)]


def _operations(document: OpenApiDocument, warn: Warn) -> Iterator[RawOperation]:
    for raw in raw_operations(document, warn):
        parameters = _Parameters(raw, document, warn)
        out = raw.node | {"parameters": parameters.own, "responses": _responses(raw, document, warn)}
        consumes = _texts(raw.node.get("consumes", document.root.get("consumes")))
        if parameters.body is not None:
            out["requestBody"] = _body(parameters.body, consumes, raw)
            if parameters.fields:
                warn(raw.place, "the fields of a form are left out: it has a body too")
        elif parameters.fields:
            out["requestBody"] = _form(parameters.fields, consumes)
        yield raw._replace(node=out, shared=parameters.shared, servers=None)


class _Parameters:
    """The parameters of an operation: a body, the fields of a form, and the others, of its path item and of its own."""

    def __init__(self, raw: RawOperation, document: OpenApiDocument, warn: Warn) -> None:
        self._references = document.references
        self._leave_out = partial(warn, raw.place)
        self.body: DocumentNode | None = None
        self.fields: dict[str, DocumentNode] = {}
        self.shared = self._others(raw.shared, raw.item_file)
        self.own = self._others(raw.node.get("parameters"), raw.file)

    def _others(self, nodes: Any, file: str) -> list[Any]:
        others: list[Any] = []
        bodies = 0
        for node in _list(nodes):
            try:
                found = self._references.follow(node, file)
            except DanglingReference as error:
                self._leave_out(f"a parameter is left out: {error}")
                continue
            where = found.value.get("in") if isinstance(found.value, dict) else None
            if where == "body":
                self.body, bodies = found, bodies + 1
            elif where == "formData" and isinstance(found.value.get("name"), str):
                self.fields[found.value["name"]] = found
            else:
                others.append(node)
        if bodies > 1:
            self._leave_out("it has several bodies, of which only the last is sent")
        return others


def _body(body: DocumentNode, consumes: list[str], raw: RawOperation) -> dict[str, Any]:
    schema = body.value.get("schema", {})
    if body.file and body.pointer and body.file != raw.file:
        schema = {"$ref": _relative(body, raw)}
    content = {name: {"schema": schema} for name in consumes or [JSON] if name not in (FORM, MULTIPART)}
    required, description = body.value.get("required"), body.value.get("description")
    return {"content": content or {JSON: {"schema": schema}}, "required": required, "description": description}


def _form(fields: dict[str, DocumentNode], consumes: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    for name, field in fields.items():
        properties[name] = schema = inline_schema(field.value)
        if description := field.value.get("description"):
            schema["description"] = description
        if schema.get("type") == "array":
            style, explode = COLLECTION_FORMATS.get(str(field.value.get("collectionFormat")), (None, False))
            encoding[name] = {"style": style or "form", "explode": explode}
    required = [name for name, field in fields.items() if field.value.get("required") is True]
    schema = {"type": "object", "properties": properties, "required": required}
    files = any(is_binary(part) or is_binary(part.get("items")) for part in properties.values())
    names = [MULTIPART] if files else [name for name in consumes if name in (FORM, MULTIPART)] or [FORM]
    return {"content": {name: {"schema": schema, "encoding": encoding} for name in names}, "required": bool(required)}


def inline_schema(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without `schema`: all keywords that don't describe the parameter itself."""
    return {key: value for key, value in parameter.items() if key not in _PARAMETER_KEYWORDS}


def _responses(raw: RawOperation, document: OpenApiDocument, warn: Warn) -> dict[str, Any]:
    produces = _texts(raw.node.get("produces", document.root.get("produces"))) or [JSON]
    out: dict[str, Any] = {}
    nodes = raw.node.get("responses")
    for code, node in nodes.items() if isinstance(nodes, dict) else ():
        try:
            response = document.references.follow(node, raw.file)
        except DanglingReference as error:
            if str(code).startswith("2"):
                warn(raw.place, f"the response {code} is left out: {error}")
            continue
        if isinstance(response.value, dict):
            schema = response.value.get("schema")
            if response.file and response.pointer and response.file != raw.file and schema is not None:
                schema = {"$ref": _relative(response, raw)}
            content = {} if schema is None else {name: {"schema": schema} for name in produces}
            out[code] = {"content": content, "headers": response.value.get("headers")}
    return out


def _relative(found: DocumentNode, raw: RawOperation) -> str:
    """Return a reference, in the file of the operation, to the schema of a node in another file."""
    return f"{quote(posixpath.relpath(found.file, posixpath.dirname(raw.file) or '.'))}#{quote(found.pointer)}/schema"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [text for text in _list(value) if isinstance(text, str) and "/" in text]
