"""The OpenAPI document of the API, made from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import gloveport
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import EVERYBODY, ApiCall, ApiEndpoint, ApiReply

PATH = "/v1/openapi.json"
# The parts of paths that need a form; any other name is one that is there or not.
_PATH_PARTS: Mapping[str, schemas.Schema] = {"session": schemas.SESSION_NAME}
_PROBLEM = {
    "description": "what is wrong",
    "content": {"application/json": {"schema": schemas.ref("Problem")}},
}


def openapi_endpoint(endpoints: Iterable[ApiEndpoint]) -> ApiEndpoint:
    """Return the endpoint that describes the others, and itself."""
    answers = {200: {"type": "object"}}

    async def show(call: ApiCall) -> ApiReply:
        return ApiReply(document)

    own = ApiEndpoint("GET", PATH, EVERYBODY, "Describe this API.", show, answers)
    document = openapi_document([*endpoints, own])
    return own


def openapi_document(endpoints: Iterable[ApiEndpoint]) -> dict[str, Any]:
    """Return the description of the endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gloveport", "version": gloveport.__version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": dict(schemas.COMPONENTS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: ApiEndpoint) -> Mapping[str, Any]:
    inside = [
        {"name": name, "in": "path", "required": True, "schema": _PATH_PARTS.get(name, {"type": "string", "minLength": 1})}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    asked = [_parameter(name, schema, is_needed=name in endpoint.needs) for name, schema in endpoint.query.items()]
    answers = {str(status): _answer(endpoint, schema) for status, schema in endpoint.answers.items()}
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "description": f"For the roles {', '.join(sorted(endpoint.roles))}.",
        "parameters": [*inside, *asked],
        "responses": answers | {"4XX": _PROBLEM, "5XX": _PROBLEM},
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": endpoint.body}}
        operation["requestBody"] = {"required": bool(endpoint.body.get("required")), "content": content}
    return operation


def _parameter(name: str, schema: Mapping[str, Any], *, is_needed: bool) -> dict[str, Any]:
    found = {"name": name, "in": "query", "schema": {key: value for key, value in schema.items() if key != "description"}}
    found |= {"required": True} if is_needed else {}
    return found | ({"description": schema["description"]} if "description" in schema else {})


def _answer(endpoint: ApiEndpoint, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if schema is None:
        return {"description": "It has not changed since the version that the request names."}
    return {"description": endpoint.summary, "content": {endpoint.media: {"schema": schema}}}


def _operation_id(endpoint: ApiEndpoint) -> str:
    words = [word for word in re.split(r"[^a-z]+", endpoint.path.removeprefix("/v1/")) if word]
    return "_".join([endpoint.method.lower(), *words])
