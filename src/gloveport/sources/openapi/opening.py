"""Opening a definition: read, and compiled unless the shelf has it already."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.sources.context import Outside
from gloveport.sources.definition_cache import Shelf, digest
from gloveport.sources.openapi.compile.compiler import VERSION, Compiler
from gloveport.sources.openapi.compile.document.document import is_url, read_document, understand
from gloveport.sources.openapi.compile.document.notation import MOST_BYTES
from gloveport.sources.openapi.compile.document.references import read_beneath


async def open_definition(config: SourceConfig, outside: Outside) -> tuple[Shelf, tuple[str, ...]]:
    """The compiled definition of a source, and warnings about what could not be used."""
    raw, base = await read_document(config, outside)
    name = f"the definition of the source {config.name}"
    shelf = await asyncio.to_thread(shelve, raw, base, name, outside.cache)
    warnings = [str(warning) for warning in shelf.facts["warnings"]]
    if not shelf.facts["servers"] and config.base_url is None:
        warnings.insert(0, f"the source {config.name} names no server that can be called: give it a base_url")
    return shelf, tuple(warnings)


def shelve(raw: bytes, base: str, name: str, folder: Path) -> Shelf:
    """The shelf for these bytes: the one that is there when nothing has changed, else a new one."""
    # Servers and files are found relative to the base, so it is part of what the shelf is made from.
    key = digest(VERSION, base.encode("utf-8", "surrogateescape"), raw)
    shelf = Shelf.open(folder, key)
    if shelf is not None:
        if is_url(base) or _unchanged(shelf, Path(base)):
            return shelf
        shelf.close()
    compiler = Compiler(understand(raw, base, name))
    try:
        return Shelf.build(folder, key, compiler.heads(), compiler.definitions(), compiler.defs(), compiler.facts)
    except RecursionError as error:
        raise SourceError(f"{name} is nested too deep") from error


def _unchanged(shelf: Shelf, folder: Path) -> bool:
    for file, summed in shelf.facts["siblings"].items():
        raw = read_beneath(folder, file, MOST_BYTES)
        if ("" if raw is None else hashlib.sha256(raw).hexdigest()) != summed:
            return False
    return True
