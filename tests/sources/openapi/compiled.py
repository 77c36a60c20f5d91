"""Compile small documents for the tests, and read the results."""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi.loading import LoadedDefinition
from gloveport.sources.openapi.opening import compile_to_cache
from gloveport.sources.openapi.operation import CompiledOperation, Operation
from tests.sources.in_process_tasks import InProcessTasks

URL = "https://api.example.com/openapi.json"


def compile_here(raw: bytes, base: str, folder: Path) -> DefinitionCache:
    """Compile a document in this process, and return what the host stores of it."""
    made = compile_to_cache(LoadedDefinition(raw, base), "the definition", folder, InProcessTasks())
    with ThreadPoolExecutor(1) as thread:  # the caller's thread may have a running event loop
        return thread.submit(asyncio.run, made).result()


class Compiled:
    """A compiled document, read completely."""

    def __init__(self, document: dict[str, Any] | bytes, base: str = URL) -> None:
        raw = document if isinstance(document, bytes) else msgspec.json.encode(document)
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(compile_here(raw, base, Path(folder))) as cache,
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


def is_incomplete(schema: Any) -> bool:
    """Return True for a schema that accepts anything and says that it is not what the definition states."""
    return (
        isinstance(schema, dict) and schema.keys() == {"description"} and schema["description"].startswith("Incomplete: ")
    )


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
