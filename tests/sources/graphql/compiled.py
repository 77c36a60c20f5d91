"""Schemas, compiled and stored as an open source has them."""

import tempfile
from pathlib import Path

import msgspec

from gloveport.sources.definition_cache import DefinitionCache, digest
from gloveport.sources.graphql.compile.task import compile_schema_text
from gloveport.sources.graphql.row_check import CheckedRows
from gloveport.sources.graphql.stored_schema import StoredSchema


def compiled(text: bytes, form: str = "file") -> list[bytes]:
    return list(compile_schema_text([msgspec.json.encode({"form": form}), text], lambda _: None))


def cached(batches: list[bytes], folder: Path) -> DefinitionCache:
    checked = CheckedRows(batches)
    return DefinitionCache.build(folder, digest(*batches), checked.heads(), checked.definitions(), (), checked.facts)


def stored(text: str) -> StoredSchema:
    with tempfile.TemporaryDirectory() as folder:
        return StoredSchema(cached(compiled(text.encode()), Path(folder)))
