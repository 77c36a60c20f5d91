"""Open a definition as a source: load it, and compile it unless the cache already holds the result."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from pathlib import Path

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.sources.context import SourceContext
from gloveport.sources.definition_cache import DefinitionCache, digest
from gloveport.sources.openapi.compile.compiler import COMPILER_VERSION, OpenApiCompiler
from gloveport.sources.openapi.compile.document.document import MAX_DOCUMENT_BYTES, is_url, parse_document
from gloveport.sources.openapi.loading import LoadedDefinition, load_definition, read_beneath
from gloveport.sources.openapi.source import OpenApiSource


async def open_openapi(
    config: SourceConfig, context: SourceContext, definition: LoadedDefinition | None = None
) -> OpenApiSource:
    """Return the operations of a definition as tools; raises SourceError when the definition can't be used.

    `definition` holds the bytes and the final URL of a definition that was downloaded already, so that it is not fetched
    again.
    """
    cache, warnings = await open_definition(config, context, definition)
    return OpenApiSource(config, context, cache, warnings)


async def open_definition(
    config: SourceConfig, context: SourceContext, definition: LoadedDefinition | None = None
) -> tuple[DefinitionCache, tuple[str, ...]]:
    """Return the compiled definition of a source, and warnings about the parts that can't be used."""
    raw, base = definition or await load_definition(config, context)
    name = f"the definition of the source {config.name}"
    cache = await asyncio.to_thread(compile_to_cache, raw, base, name, context.cache)
    warnings = [str(warning) for warning in cache.facts["warnings"]]
    if not cache.facts["servers"] and config.base_url is None:
        warnings.insert(0, f"the source {config.name} names no server that can be called: set its base_url")
    return cache, tuple(warnings)


def compile_to_cache(raw: bytes, base: str, name: str, folder: Path) -> DefinitionCache:
    """Return the compiled form of these bytes: from the cache when nothing has changed, else compiled anew."""
    # Servers and sibling files are resolved against the base, so it is part of the key.
    key = digest(COMPILER_VERSION, base.encode("utf-8", "surrogateescape"), raw)
    cache = DefinitionCache.open(folder, key)
    if cache is not None:
        if is_url(base) or _siblings_unchanged(cache, Path(base)):
            return cache
        cache.close()
    read_sibling = None if is_url(base) else partial(read_beneath, Path(base))
    compiler = OpenApiCompiler(parse_document(raw, base, name, read_sibling))
    try:
        return DefinitionCache.build(folder, key, compiler.heads(), compiler.definitions(), compiler.defs(), compiler.facts)
    except RecursionError as error:
        raise SourceError(f"{name} is nested too deep") from error


def _siblings_unchanged(cache: DefinitionCache, folder: Path) -> bool:
    for file, known in cache.facts["siblings"].items():
        raw = read_beneath(folder, file, MAX_DOCUMENT_BYTES)
        if ("" if raw is None else hashlib.sha256(raw).hexdigest()) != known:
            return False
    return True
