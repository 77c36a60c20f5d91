"""The task that normalises the schemas of a caller's tools: it runs in a jailed process, because they are hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from gloveport.sources.schemas.normaliser import normalise


def normalise_schemas(parts: list[bytes], _ask: Callable[[bytes], bytes | None]) -> Iterator[bytes]:
    """Yield each schema of JSON lists of them in the normal form, as JSON; `null` for one that is nested too deeply."""
    for part in parts:
        for schema in msgspec.json.decode(part):
            try:
                yield msgspec.json.encode(normalise(schema).schema)
            except RecursionError:
                yield b"null"


def rehearse() -> None:
    """Normalise a schema, so that the modules are loaded and warm when a process is forked."""
    parts = {"a": {"type": "string", "pattern": "^a+$"}, "b": {"$ref": "#/$defs/B"}}
    schema = {"type": "object", "properties": parts, "$defs": {"B": {"anyOf": [{"type": "null"}]}}}
    list(normalise_schemas([msgspec.json.encode([schema])], lambda _: None))
