"""Open a definition as a source: load it, and have it compiled by a task unless the cache already holds the result."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, TooComplexError
from gloveport.sources.context import SourceContext, TaskRunner
from gloveport.sources.definition_cache import DefinitionCache, digest
from gloveport.sources.openapi.frame_check import CheckedFrames
from gloveport.sources.openapi.frames import (
    COMPILE_TASK,
    COMPILER_VERSION,
    MAX_DOCUMENT_BYTES,
    MAX_SIBLING_FILES,
    CompileRequest,
    is_url,
)
from gloveport.sources.openapi.loading import LoadedDefinition, load_definition, read_beneath
from gloveport.sources.openapi.source import OpenApiSource
from gloveport.urls import shown

MANUAL = b" utcp"  # in the keys of the cache


async def open_openapi(
    config: SourceConfig, context: SourceContext, definition: LoadedDefinition | None = None, *, is_manual: bool = False
) -> OpenApiSource:
    """Return the operations of a definition as tools; raises SourceError when the definition can't be used.

    `definition` holds the bytes and the final URL of a definition that was downloaded already, so that it is not fetched
    again. With `is_manual`, it is a UTCP manual.
    """
    cache, warnings = await open_definition(config, context, definition, is_manual=is_manual)
    # A source with thousands of tools takes longer to create than the event loop may stand still.
    return await asyncio.to_thread(OpenApiSource, config, context, cache, warnings)


async def open_definition(
    config: SourceConfig, context: SourceContext, definition: LoadedDefinition | None = None, *, is_manual: bool = False
) -> tuple[DefinitionCache, tuple[str, ...]]:
    """Return the compiled definition of a source, and warnings about the parts that can't be used."""
    loaded = definition or await load_definition(config, context)
    name = f"the {'manual' if is_manual else 'definition'} of the source {config.name}"
    try:
        cache = await compile_to_cache(loaded, name, context.cache, context.tasks, is_manual=is_manual)
    except TooComplexError as error:
        location = config.location if isinstance(config.location, str) else " ".join(config.location)
        place = shown(location) if is_url(loaded.base) else location
        hint = "use a part of the definition, or get it again from where it came from"
        message = f"{name}, {place}, is too complex: {error.message}"
        raise SourceError(message, code="definition-too-complex", hint=hint) from None
    warnings = [str(warning) for warning in cache.facts["warnings"]]
    if not cache.facts["servers"] and config.base_url is None:
        warnings.insert(0, f"the source {config.name} names no server that can be called: set its base_url")
    return cache, tuple(warnings)


async def compile_to_cache(
    definition: LoadedDefinition, name: str, folder: Path, tasks: TaskRunner, *, is_manual: bool = False
) -> DefinitionCache:
    """Return the compiled form of a definition: from the cache when nothing has changed, else compiled anew.

    `name` is what messages call the definition.
    """
    raw, base = definition
    key, cache = await asyncio.to_thread(_find, definition, folder, MANUAL if is_manual else b"")
    if cache is not None:
        return cache
    # The process learns the folder's name, for references such as `../api/pet.yaml`, and not where the folder is.
    own = base if is_url(base) else f"/{Path(base).name}".encode(errors="replace").decode()
    siblings = SiblingReader(None if is_url(base) else Path(base), MAX_DOCUMENT_BYTES - len(raw))
    request = msgspec.json.encode(CompileRequest(own, name, is_manual))
    frames = await tasks.run(COMPILE_TASK, [request, raw], answer=siblings.answer)
    return await asyncio.to_thread(_build, folder, key, frames, name, siblings.digests)


class SiblingReader:
    """Reads the files beside a definition that its compiler asks for, and remembers what they were.

    Without a folder there are none. `max_bytes` bounds all of them together.
    """

    def __init__(self, folder: Path | None, max_bytes: int) -> None:
        self._folder = folder
        self._bytes_left = max_bytes
        self.digests: dict[str, str] = {}
        """The SHA-256 of every file that was asked for, by its path; "" for one that can't be read."""

    async def answer(self, question: bytes) -> bytes | None:
        """Return the content of the file with this path below the folder; None when there is no such file."""
        try:
            file = question.decode()
        except UnicodeDecodeError:
            return None
        if self._folder is None or (file not in self.digests and len(self.digests) >= MAX_SIBLING_FILES):
            return None
        return await asyncio.to_thread(self._read, self._folder, file)

    def _read(self, folder: Path, file: str) -> bytes | None:
        raw = read_beneath(folder, file, self._bytes_left)
        self._bytes_left -= len(raw or b"")
        self.digests[file] = _digest(raw)
        return raw


def _find(definition: LoadedDefinition, folder: Path, format: bytes) -> tuple[str, DefinitionCache | None]:
    # Servers and sibling files are resolved against the base, so it is part of the key.
    raw, base = definition
    key = digest(COMPILER_VERSION + format, base.encode("utf-8", "surrogateescape"), raw)
    cache = DefinitionCache.open(folder, key)
    if cache is None or is_url(base) or _siblings_unchanged(cache, Path(base)):
        return key, cache
    cache.close()
    return key, None


def _siblings_unchanged(cache: DefinitionCache, folder: Path) -> bool:
    known: dict[str, str] = cache.facts["siblings"]
    return all(_digest(read_beneath(folder, file, MAX_DOCUMENT_BYTES)) == each for file, each in known.items())


def _digest(raw: bytes | None) -> str:
    return "" if raw is None else hashlib.sha256(raw).hexdigest()


def _build(folder: Path, key: str, frames: Sequence[bytes], name: str, siblings: dict[str, str]) -> DefinitionCache:
    checked = CheckedFrames(frames, name)

    def facts() -> dict[str, Any]:
        return {**checked.facts(), "siblings": siblings}

    return DefinitionCache.build(folder, key, checked.heads(), checked.definitions(), checked.defs(), facts)
