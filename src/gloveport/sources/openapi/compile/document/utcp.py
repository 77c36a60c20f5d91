"""UTCP: a manual of the Universal Tool Calling Protocol → an OpenAPI document, and why tools are left out.

A manual lists tools with the HTTP request of each. Only the source's own credentials are used, never what a manual says.
Tools that are not called by HTTP are left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gloveport.errors import SourceError
from gloveport.sources.texts import clean

MAX_MANUAL_BYTES = 4 * 1024 * 1024
MAX_TOOLS = 5000
MAX_WARNINGS = 20
METHODS = ("get", "post", "put", "delete", "patch")
PLAIN_HEADERS = ("accept", "content-type")  # egress and the body decide on these
_URL = re.compile(r"(https?://[^/?#{}\s@]+)(/[^?#\s]*)?")


def as_openapi(manual: Any, what: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a manual as an OpenAPI document, and why tools are left out; raise SourceError for what is no manual.

    Messages call it `what`.
    """
    tools = manual.get("tools") if isinstance(manual, dict) else None
    if not isinstance(tools, list) or "utcp_version" not in manual:
        raise SourceError(f"{what} has no `utcp_version` and `tools`", hint="give a UTCP manual of version 1")
    made = _OpenApiDocument()
    left_out: list[str] = []
    for tool in tools[:MAX_TOOLS]:
        name = clean(str(tool.get("name")))[:100] if isinstance(tool, dict) else "without a name"
        try:
            made.add(name, _table(tool))
        except ValueError as problem:
            left_out.append(f"the tool {name} is left out: {problem}")
    if len(tools) > MAX_TOOLS:
        left_out.append(f"the tools after the first {MAX_TOOLS:,} are left out")
    if not made.paths:
        why = f": {left_out[0]}" if left_out else ""
        raise SourceError(f"{what} has no tool that can be called{why}", hint="only tools that are called by HTTP can be")
    more = [f"and {len(left_out) - MAX_WARNINGS:,} more tools are left out"] if len(left_out) > MAX_WARNINGS else []
    return made.document(manual.get("manual_version")), (*left_out[:MAX_WARNINGS], *more)


@dataclass
class _OpenApiDocument:
    """The OpenAPI document that a manual becomes."""

    paths: dict[str, dict[str, Any]] = field(default_factory=dict)
    schemes: dict[str, dict[str, Any]] = field(default_factory=dict)
    server: str = ""

    def document(self, version: Any) -> dict[str, Any]:
        about = {"title": "UTCP manual", "version": str(version or "1")[:40]}
        return {
            "openapi": "3.1.0",
            "info": about,
            "servers": [{"url": self.server}],
            "paths": self.paths,
            "components": {"securitySchemes": self.schemes},
        }

    def add(self, name: str, tool: Mapping[str, Any]) -> None:
        """Add a tool; raise ValueError for one that can't be called."""
        call = _table(tool.get("tool_call_template"))
        if (way := call.get("call_template_type")) != "http":
            raise ValueError(f"it is called by {str(way)[:40]!r}, and only `http` is supported")
        url, method = _URL.fullmatch(str(call.get("url"))), str(call.get("http_method", "GET")).lower()
        if url is None or method not in METHODS:
            raise ValueError("its URL or its method is none that Gloveport can call")
        if fixed := [key for key in _table(call.get("headers")) if str(key).lower() not in PLAIN_HEADERS]:
            raise ValueError(f"it sends the fixed header {str(fixed[0])[:40]!r}; set headers of the source instead")
        path, self.server = url[2] or "/", self.server or url[1]
        if method in self.paths.get(path, {}):
            raise ValueError(f"another tool has the same request, {method.upper()} {path[:100]}")
        operation: dict[str, Any] = {
            "operationId": name,
            "description": clean(str(tool.get("description", ""))),
            "servers": [{"url": url[1]}],
            "parameters": [],
            "responses": {"200": {"description": "The result."}},
        }
        if outputs := _table(_stated(tool.get("outputs"))):
            operation["responses"]["200"]["content"] = {"application/json": {"schema": outputs}}
        self._take_inputs(operation, _table(_stated(tool.get("inputs"))), call, path)
        if auth := _table(call.get("auth")):
            operation["security"] = [{self._scheme(auth): []}]
        self.paths.setdefault(path, {})[method] = operation

    @staticmethod
    def _take_inputs(operation: dict[str, Any], inputs: Mapping[str, Any], call: Mapping[str, Any], path: str) -> None:
        """Say where each argument goes: the path, a header, the body, or else the query."""
        in_path = dict.fromkeys(re.findall(r"\{([^{}]*)\}", path))
        in_headers = _texts(call.get("header_fields"))
        body, needed = call.get("body_field", "body"), _texts(inputs.get("required"))
        properties = _table(inputs.get("properties"))
        for name in in_path:
            if name not in properties:
                raise ValueError(f"its inputs lack {name[:40]!r}, which is in its URL")
        for name, schema in properties.items():
            if name == body and name not in in_path and name not in in_headers:
                media = str(call.get("content_type", "application/json"))
                operation["requestBody"] = {"content": {media: {"schema": schema}}, "required": name in needed}
            else:
                place = "path" if name in in_path else "header" if name in in_headers else "query"
                required = place == "path" or name in needed
                operation["parameters"].append({"name": name, "in": place, "required": required, "schema": schema})

    def _scheme(self, auth: Mapping[str, Any]) -> str:
        """Return the name of a scheme. What a manual says of the secret itself is not used: the user gives it."""
        kind = auth.get("auth_type")
        scheme: dict[str, Any]
        if kind == "api_key":
            place, header = auth.get("location", "header"), str(auth.get("var_name", "X-Api-Key"))
            scheme = {"type": "apiKey", "in": place, "name": header}
        elif kind == "basic":
            scheme = {"type": "http", "scheme": "basic"}
        elif kind == "oauth2":
            scopes = dict.fromkeys(str(auth.get("scope") or "").split(), "")
            flow = {"tokenUrl": str(auth.get("token_url")), "scopes": scopes}
            scheme = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        else:
            raise ValueError(f"its auth_type {str(kind)[:40]!r} is unknown")
        same = [name for name, known in self.schemes.items() if known == scheme]
        name = same[0] if same else f"{kind}{len(self.schemes) + 1 if kind in self.schemes else ''}"
        self.schemes[name] = scheme
        return name


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _stated(schema: Any) -> Any:
    """Return a schema without the keywords that are null: the library of UTCP writes all that it knows."""
    if isinstance(schema, list):
        return [_stated(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _stated(value) for name, value in schema.items() if value is not None}


def _texts(value: Any) -> frozenset[str]:
    found: Iterable[Any] = value if isinstance(value, list) else ()
    return frozenset(text for text in found if isinstance(text, str))
