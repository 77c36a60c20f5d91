"""Load the bytes of a definition: download a URL, or read a file and the files that it refers to."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.egress import Reach, Request
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.frames import MAX_DOCUMENT_BYTES

MIN_DOWNLOAD_SECONDS = 60


class LoadedDefinition(NamedTuple):
    """The bytes of a definition. `base` is the URL that they came from after redirects, or the folder of the file."""

    raw: bytes
    base: str


async def load_definition(config: SourceConfig, context: SourceContext) -> LoadedDefinition:
    """Return the definition that a source's location points to; raises SourceError when it can't be loaded."""
    location = config.location if isinstance(config.location, str) else " ".join(config.location)
    if re.match(r"https?://", location, re.IGNORECASE):
        return await _download(config, location, context)
    return await asyncio.to_thread(_read, config.name, location)


def read_beneath(folder: Path, file: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a regular file below a folder, or None.

    None stands for a file that is missing, too large, not a regular file, or outside of the folder by a link (N10).
    """
    try:
        path = (folder / file).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()) or not path.is_file() or path.stat().st_size > max_bytes:
            return None
        with path.open("rb") as opened:
            raw = opened.read(max_bytes + 1)
    except (OSError, RuntimeError, ValueError):
        return None
    return raw if len(raw) <= max_bytes else None


def _read(source: str, location: str) -> LoadedDefinition:
    what = f"the definition of the source {source}, {location},"
    try:
        path = Path(location).expanduser().resolve()
        exists = path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise SourceError(f"{what} can't be read: {error}", hint="check the file's name") from error
    raw = read_beneath(path.parent, path.name, MAX_DOCUMENT_BYTES)
    if raw is None:
        problem = f"is not a regular file of at most {MAX_DOCUMENT_BYTES:,} bytes" if exists else "does not exist"
        raise SourceError(f"{what} {problem}", hint="check the file's name")
    return LoadedDefinition(raw, str(path.parent))


async def _download(config: SourceConfig, url: str, context: SourceContext) -> LoadedDefinition:
    reach = Reach(
        allow_private=config.allow_private,
        verify_tls=config.verify_tls,
        total_seconds=max(config.timeout_seconds, MIN_DOWNLOAD_SECONDS),
        max_bytes=MAX_DOCUMENT_BYTES,
    )
    accepted = (("accept", "application/json, application/yaml;q=0.9, */*;q=0.5"),)
    try:
        reply = await context.egress.send(Request("GET", url, accepted), reach)
    except ToolError as error:
        raise SourceError(
            f"the definition of the source {config.name} can't be downloaded: {error}", hint=error.advice
        ) from error
    if reply.status != 200:
        hint = "check the URL; save a definition that needs a login to a file"
        raise SourceError(
            f"the definition of the source {config.name} can't be downloaded: status {reply.status}", hint=hint
        )
    return LoadedDefinition(reply.body, reply.url)
