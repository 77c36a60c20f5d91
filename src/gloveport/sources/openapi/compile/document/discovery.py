"""The OpenAPI 3 view of Google's discovery documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gloveport.sources.openapi.compile.document.document import OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.operations import METHODS, DocumentView, RawOperation

MAX_RESOURCE_LEVELS = 20
JSON = "application/json"
UPLOAD_NOTE = "The content of files can't be uploaded with this tool, only what describes them."
OAUTH_SCHEME, KEY_SCHEME = "oauth2", "api_key"
# The common parameters that change what a program gets. The others carry credentials or concern the encoding.
COMMON_PARAMETERS = ("fields",)
_EXPANSION = re.compile(r"\{[+/#.;?&]?([^{}*]+)\*?\}")


def discovery_view(document: OpenApiDocument, warn: Warn) -> DocumentView:
    """Return the view of a discovery document."""
    root = document.root
    info = {"title": root.get("title"), "version": root.get("version"), "description": root.get("description")}
    schemes: dict[str, Any] = {}
    oauth = _object_at(_object_at(root, "auth"), "oauth2")
    if oauth:
        schemes[OAUTH_SCHEME] = {"type": "oauth2", "scopes": oauth.get("scopes")}
    if "key" in _object_at(root, "parameters"):
        schemes[KEY_SCHEME] = {"type": "apiKey", "in": "query", "name": "key"}
    return DocumentView(info, _servers(root), schemes, None, _methods(root, schemes, warn))


def _servers(root: dict[str, Any]) -> list[dict[str, str]]:
    top, path = root.get("rootUrl"), root.get("servicePath")
    url = f"{top.rstrip('/')}/{path.strip('/')}" if isinstance(top, str) and isinstance(path, str) else root.get("baseUrl")
    return [{"url": str(url or "/").rstrip("/") or "/"}]


def _methods(root: dict[str, Any], schemes: dict[str, Any], warn: Warn) -> Iterator[RawOperation]:
    common = {name: node for name, node in _object_at(root, "parameters").items() if name in COMMON_PARAMETERS}
    waiting: list[tuple[dict[str, Any], int]] = [(root, 0)]
    while waiting:
        resource, level = waiting.pop()
        for name, node in _object_at(resource, "methods").items():
            method = str(node.get("httpMethod", "")).lower() if isinstance(node, dict) else ""
            path = node.get("path") if isinstance(node, dict) else None
            if method not in METHODS or not isinstance(path, str):
                warn(f"method {str(name)[:60]!a}", "it has no usable HTTP method or path")
                continue
            plain = _EXPANSION.sub(r"{\1}", path.lstrip("/"))
            yield RawOperation(method, f"/{plain}", _operation(node, path, common, schemes), "")
        below = [node for node in _object_at(resource, "resources").values() if isinstance(node, dict)]
        if level < MAX_RESOURCE_LEVELS:
            waiting += [(node, level + 1) for node in reversed(below)]


def _operation(node: dict[str, Any], path: str, common: dict[str, Any], schemes: dict[str, Any]) -> dict[str, Any]:
    description = str(node.get("description") or "")
    if node.get("supportsMediaUpload") is True:
        description = f"{description}\n\n{UPLOAD_NOTE}".strip()
    name = str(node.get("id") or "").partition(".")[2] or node.get("id")
    parameters = common | _object_at(node, "parameters")
    response = node.get("response")
    out: dict[str, Any] = {
        "operationId": name,
        "description": description,
        "deprecated": node.get("deprecated"),
        "parameters": [_parameter(name, part, path) for name, part in parameters.items() if isinstance(part, dict)],
        "responses": {"200": {"content": {JSON: {"schema": response}}} if isinstance(response, dict) else {}},
        "security": [{name: []} for name in schemes if name != OAUTH_SCHEME or node.get("scopes")],
    }
    if isinstance(request := node.get("request"), dict):
        out["requestBody"] = {"content": {JSON: {"schema": {"$ref": request.get("$ref")}}}}
    return out


def _parameter(name: str, node: dict[str, Any], path: str) -> dict[str, Any]:
    schema = {key: node[key] for key in ("type", "format", "enum", "pattern", "$ref") if key in node}
    for key in ("minimum", "maximum", "default"):
        if (value := _typed(node.get(key), str(node.get("type")))) is not None:
            schema[key] = value
    if node.get("repeated") is True:
        default = schema.pop("default", None)
        schema = {"type": "array", "items": schema} | ({} if default is None else {"default": [default]})
    return {
        "name": name,
        "in": "path" if node.get("location") == "path" else "query",
        "required": node.get("required"),
        "description": node.get("description"),
        "deprecated": node.get("deprecated"),
        "schema": schema,
        "allowReserved": f"{{+{name}}}" in path,
    }


def _typed(value: Any, kind: str) -> Any:
    """Convert a value that discovery documents write as text to its type; None when the text does not fit the type."""
    if not isinstance(value, str):
        return None
    if kind == "boolean":
        return {"true": True, "false": False}.get(value)
    if kind in ("integer", "number"):
        try:
            return int(value) if kind == "integer" else float(value)
        except ValueError:
            return None
    return value


def _object_at(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}
