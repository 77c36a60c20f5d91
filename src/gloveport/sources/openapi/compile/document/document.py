"""A document: where it was read from, what dialect it is in, and how its references are followed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.egress import Reach, Request
from gloveport.sources.context import Outside
from gloveport.sources.openapi.compile.document.notation import MOST_BYTES, parse
from gloveport.sources.openapi.compile.document.references import References, Siblings, read_beneath

Dialect = Literal["openapi", "swagger", "discovery"]
SCHEMAS = {"openapi": "/components/schemas", "swagger": "/definitions", "discovery": "/schemas"}


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed definition. `base` is the URL it came from, or the folder it stands in."""

    name: str
    root: dict[str, Any]
    dialect: Dialect
    base: str
    references: References


async def read_document(config: SourceConfig, outside: Outside) -> tuple[bytes, str]:
    """The bytes of a source's definition, and its base: the URL, or the folder of the file."""
    location = config.location if isinstance(config.location, str) else " ".join(config.location)
    if re.match(r"https?://", location, re.IGNORECASE):
        return await _fetch(config, location, outside)
    return await asyncio.to_thread(_read, config.name, location)


def _read(source: str, location: str) -> tuple[bytes, str]:
    what = f"the definition of the source {source}, {location},"
    try:
        path = Path(location).expanduser().resolve()
        there = path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise SourceError(f"{what} can't be read: {error}", hint="check the file's name") from error
    raw = read_beneath(path.parent, path.name, MOST_BYTES)
    if raw is None:
        problem = f"is no plain file of at most {MOST_BYTES:,} bytes" if there else "is not there"
        raise SourceError(f"{what} {problem}", hint="check the file's name")
    return raw, str(path.parent)


async def _fetch(config: SourceConfig, url: str, outside: Outside) -> tuple[bytes, str]:
    reach = Reach(
        allow_private=config.allow_private,
        verify_tls=config.verify_tls,
        total_seconds=max(config.timeout_seconds, 60),
        max_bytes=MOST_BYTES,
    )
    accepted = (("accept", "application/json, application/yaml;q=0.9, */*;q=0.5"),)
    try:
        reply = await outside.egress.send(Request("GET", url, accepted), reach)
    except ToolError as error:
        raise SourceError(
            f"the definition of the source {config.name} can't be fetched: {error}", hint=error.hint
        ) from error
    if reply.status != 200:
        hint = "check the URL; a definition behind a login has to be saved to a file"
        raise SourceError(f"the definition of the source {config.name} answered with status {reply.status}", hint=hint)
    return reply.body, reply.url


def understand(raw: bytes, base: str, name: str) -> Document:
    """The document that the bytes hold, or a SourceError that says why it is none."""
    root = parse(raw, name)
    if not isinstance(root, dict):
        raise SourceError(f"{name} is no definition: it holds no object", hint="give an OpenAPI or discovery document")
    dialect = _dialect(root, name)
    folder = None if is_url(base) else Path(base)
    siblings = Siblings(folder, parse, MOST_BYTES - len(raw))
    references = References(root, siblings, SCHEMAS["discovery"] if dialect == "discovery" else None)
    return Document(name, root, dialect, base, references)


def is_url(base: str) -> bool:
    """True when a base is a URL, false when it is a folder."""
    return base.startswith(("http://", "https://"))


def absolute(url: str, base: str) -> str | None:
    """A server's URL, made whole with the base of its document; None when it can't be."""
    if re.match(r"https?://", url, re.IGNORECASE):
        return url
    # A server that begins with a variable (`{scheme}://…`) is whole once that is filled.
    if re.match(r"\{[^{}]+\}(://|$|[./:])", url):
        return url
    if not is_url(base) or "://" in url:
        return None
    joined = urljoin(base, url)
    return joined if urlsplit(joined).scheme in ("http", "https") else None


def _dialect(root: dict[str, Any], name: str) -> Dialect:
    version = str(root.get("openapi") or "")
    if re.match(r"3\.\d", version):
        return "openapi"
    if str(root.get("swagger") or "").startswith("2"):
        return "swagger"
    if root.get("kind") == "discovery#restDescription" or ("discoveryVersion" in root and "resources" in root):
        return "discovery"
    said = version or root.get("swagger") or root.get("swaggerVersion")
    problem = f"is of version {str(said)[:40]!a}" if said else "is neither an OpenAPI nor a discovery document"
    hint = "OpenAPI 3.1 and 3.0, Swagger 2.0 and Google's discovery documents can be read"
    raise SourceError(f"{name} {problem}", hint=hint)
