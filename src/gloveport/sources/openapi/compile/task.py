"""The task that compiles a definition. It runs in a jailed process, because the definition is hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import TOO_LARGE_SCHEMA
from gloveport.sources.openapi.compile.compiler import OpenApiCompiler
from gloveport.sources.openapi.compile.document.document import parse_document
from gloveport.sources.openapi.frames import FACTS, MAX_PIECE_BYTES, SHARED_SCHEMA, TOOL, CompileRequest, is_url

TOO_LARGE = msgspec.json.encode(TOO_LARGE_SCHEMA)
Ask = Callable[[bytes], bytes | None]


def compile_definition(parts: list[bytes], ask: Ask) -> Iterator[bytes]:
    """Yield the frames of a compiled definition; `ask` returns the content of a file beside it.

    `parts` are a CompileRequest as JSON, and the document.
    """
    request = msgspec.json.decode(parts[0], type=CompileRequest)

    def read_sibling(file: str, max_bytes: int) -> bytes | None:
        raw = ask(file.encode("utf-8", "surrogateescape"))
        return raw if raw is not None and len(raw) <= max_bytes else None

    try:
        siblings = None if is_url(request.base) else read_sibling
        document = parse_document(parts[1], request.base, request.name, siblings, is_manual=request.is_manual)
        tools, shared, facts = OpenApiCompiler(document).compile()
        for head, text in tools:
            yield TOOL + msgspec.json.encode(head) + b"\n" + text
        for name, text in shared.items():
            yield SHARED_SCHEMA + name.encode() + b"\n" + (text if len(text) <= MAX_PIECE_BYTES else TOO_LARGE)
        yield FACTS + msgspec.json.encode(facts)
    except RecursionError as error:
        raise SourceError(f"{request.name} is nested too deep") from error


def rehearse() -> None:
    """Compile a small document in JSON and in YAML, so that every module is loaded: a process can load none itself."""
    schema = {"type": "object", "properties": {"b": {"type": "string", "pattern": "^b$"}}}
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    operation = {"requestBody": content, "responses": {"200": content}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "A", "version": "1"},
        "paths": {"/a/{b}": {"post": operation, "get": {"responses": {"200": content}}}},
        "components": {"schemas": {"A": schema}},
    }
    request = msgspec.json.encode(CompileRequest("https://a.example/", "a"))
    text = json.dumps(document)
    for raw in (text, text.replace('{"openapi"', "{openapi", 1)):  # YAML's flow style looks like JSON
        for _ in compile_definition([request, raw.encode()], lambda _: None):
            pass
