"""Compile the responses of an operation: the media types of success, and the schema of what a call returns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.document.document import Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.media_types import is_json, kind_of
from gloveport.sources.openapi.compile.request_body import BINARY_SCHEMA
from gloveport.sources.openapi.compile.schemas import SchemaRegistry
from gloveport.sources.schemas.keywords import Schema

MAX_SUCCESS_RESPONSES = 8
EMPTY_STATUSES = frozenset({"204", "205"})


class SuccessResponse(NamedTuple):
    """What a successful call returns: its media types, the preferred one first, and its schema.

    `json` is the first JSON schema as the document has it. `linked` is True when a Link header is declared, which leads to
    the next page.
    """

    produces: tuple[str, ...]
    schema: Schema | None
    json: DocumentNode | None
    linked: bool


def success_response(responses: Any, file: str, schemas: SchemaRegistry, place: str, warn: Warn) -> SuccessResponse:
    """Return what the `responses` of an operation state about success."""
    produces: dict[str, None] = {}
    made: list[Any] = []
    first: DocumentNode | None = None
    linked = False
    for response in _successes(responses, file, schemas, partial(warn, place)):
        headers = response.value.get("headers")
        linked = linked or (isinstance(headers, dict) and any(str(name).lower() == "link" for name in headers))
        content = response.value.get("content")
        content = {str(name): entry for name, entry in content.items()} if isinstance(content, dict) else {}
        name = _preferred_type(content)
        if name is None:
            schema: Any = {"type": "null"}
        else:
            entry = content[name] if isinstance(content[name], dict) else {}
            produces |= dict.fromkeys([name, *content])
            node = DocumentNode(entry.get("schema"), response.file, "")
            kind = kind_of(name, node.value)
            schema = _returned_schema(kind, node, schemas, place)
            first = node if first is None and kind == "json" and node.value is not None else first
        if schema not in made:
            made.append(schema)
    if not made or any(schema is None for schema in made) or (not produces and _may_have_body(responses)):
        return SuccessResponse(tuple(produces), None, first, linked)
    schema = made[0] if len(made) == 1 else {"anyOf": made}
    return SuccessResponse(tuple(produces), schema if isinstance(schema, dict) else None, first, linked)


def _may_have_body(responses: dict[Any, Any]) -> bool:
    """Return True unless the statuses rule out a body. Many documents describe the body in words only."""
    good = {code for code in map(str, responses) if code.startswith("2")}
    return not good or not good <= EMPTY_STATUSES


def json_response_schema(responses: Any, file: str, schemas: SchemaRegistry) -> DocumentNode | None:
    """Return the schema of the first successful JSON response, as the document has it."""
    for response in _successes(responses, file, schemas, None):
        content = response.value.get("content")
        name = _preferred_type({str(key): None for key in content}) if isinstance(content, dict) else None
        entry = content.get(name) if isinstance(content, dict) and name and kind_of(name) == "json" else None
        if isinstance(entry, dict) and entry.get("schema") is not None:
            return DocumentNode(entry["schema"], response.file, "")
    return None


def _successes(
    responses: Any, file: str, schemas: SchemaRegistry, leave_out: Callable[[str], None] | None
) -> list[DocumentNode]:
    if not isinstance(responses, dict):
        return []
    codes = {str(code).upper(): node for code, node in responses.items()}
    good = sorted(code for code in codes if len(code) == 3 and code[0] == "2")[:MAX_SUCCESS_RESPONSES]
    # `2XX` covers the codes that are not listed. `default` covers success only when nothing else does.
    chosen = good or ["DEFAULT"]
    found: list[DocumentNode] = []
    for code in chosen:
        try:
            response = schemas.follow(codes.get(code), file)
        except DanglingReference as error:
            if leave_out:
                leave_out(f"the response {code} is left out: {error}")
            continue
        if isinstance(response.value, dict):
            found.append(response)
    return found


def _preferred_type(content: dict[str, Any]) -> str | None:
    ranked = sorted(content, key=lambda name: (kind_of(name) != "json", not is_json(name)))
    return ranked[0] if ranked else None


def _returned_schema(kind: str, node: DocumentNode, schemas: SchemaRegistry, place: str) -> Any:
    if kind == "json":
        return None if node.value is None else schemas.normalise(node.value, "output", node.file, place)
    return BINARY_SCHEMA if kind == "bytes" else {"type": "string"}
