"""Compile small documents for the tests, and read the results."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.openapi.opening import compile_to_cache
from gloveport.sources.openapi.operation import CompiledOperation, Operation

URL = "https://api.example.com/openapi.json"


class Compiled:
    """A compiled document, read completely."""

    def __init__(self, document: dict[str, Any] | bytes, base: str = URL) -> None:
        raw = document if isinstance(document, bytes) else msgspec.json.encode(document)
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(compile_to_cache(raw, base, "the definition", Path(folder))) as cache,
        ):
            self.facts = cache.facts
            self.heads: dict[str, ToolHead] = {head.address: head for head in cache.heads()}
            self.definitions: dict[str, CompiledOperation] = {}
            self.inputs: dict[str, dict[str, Any]] = {}
            self.outputs: dict[str, dict[str, Any] | None] = {}
            for address in self.heads:
                made = msgspec.json.decode(cache.definition(address), type=CompiledOperation)
                self.definitions[address] = made
                self.inputs[address] = cache.schema(msgspec.json.encode(made.input_schema))
                output = made.output_schema
                self.outputs[address] = None if output is None else cache.schema(msgspec.json.encode(output))
                for schema in (self.inputs[address], self.outputs[address] or {}):
                    jsonschema_rs.Draft202012Validator(schema)

    @property
    def addresses(self) -> list[str]:
        return list(self.heads)

    @property
    def warnings(self) -> list[str]:
        return self.facts["warnings"]

    def only(self) -> tuple[Operation, dict[str, Any], dict[str, Any] | None]:
        """Return the only operation of a document, with its input and output schemas."""
        (address,) = self.heads
        return self.definitions[address].operation, self.inputs[address], self.outputs[address]


def openapi(paths: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document."""
    given = {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://api.example.com"}],
    }
    return given | {"paths": paths} | rest


def operation(method: str = "get", path: str = "/things", **node: Any) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document with one operation."""
    components = node.pop("components", {})
    return openapi({path: {method: {"responses": {"204": {"description": ""}}} | node}}, components=components)


def returning(schema: Any) -> dict[str, Any]:
    """Return responses with one success in JSON."""
    return {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}


def sending(schema: Any, media_type: str = "application/json", required: bool = True) -> dict[str, Any]:
    """Return a request body with one media type."""
    return {"required": required, "content": {media_type: {"schema": schema}}}
