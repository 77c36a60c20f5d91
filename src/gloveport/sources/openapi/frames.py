"""What the compiler and the host send each other. The host reads what the compiler sends as untrusted data."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from gloveport.sources.compiled_definition import CredentialSlot

COMPILE_TASK = "gloveport.sources.openapi.compile.task:compile_definition"
COMPILER_VERSION = b"openapi 8"

MAX_DOCUMENT_BYTES = 50_000_000
MAX_SIBLING_FILES = 2000
MAX_OPERATIONS = 20_000
MAX_COMPILED_BYTES = 200_000_000
MAX_PIECE_BYTES = 1_000_000
"""Of one tool or one shared schema: decoding it takes a few milliseconds, and holds the interpreter lock all the while."""
MAX_DESCRIPTION_CHARS = 1000
MAX_TITLE_CHARS = 200
MAX_VERSION_CHARS = 60
MAX_WARNINGS = 50
MAX_WARNING_CHARS = 1000
MAX_SERVERS = 100
MAX_URL_CHARS = 2000
MAX_SLOTS = 500
MAX_FIT_NAMES = 200
"""Of the properties that tell whether a body fits a media type."""

SERVER_URL = re.compile(r"(?:https?://|\{)[!-~\u00a1-\U0010ffff ]*", re.IGNORECASE)
"""The URL of a server; its variables, in braces, may stand at its start."""

TOOL = b"T"
"""A frame with the head of a tool, a line feed, and its CompiledOperation; both as JSON on one line."""
SHARED_SCHEMA = b"S"
"""A frame with the name of a shared schema, a line feed, and the schema as JSON."""
FACTS = b"F"
"""The last frame: `DocumentFacts` as JSON."""

Dialect = Literal["openapi", "swagger", "discovery"]


class CompileRequest(msgspec.Struct, frozen=True):
    """What the compiler is told beside the document: the URL or the folder that it is from, and its name for messages.

    `is_manual` says that it is a UTCP manual.
    """

    base: str
    name: str
    is_manual: bool = False


class CompiledHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the compiler states about a tool; the host derives the rest of its `ToolHead` from the operation."""

    address: str
    description: str
    deprecated: bool = False
    pages: bool = False


class ServerVariable(msgspec.Struct, frozen=True, omit_defaults=True):
    """A variable in the URL of a server."""

    default: str | None = None
    enum: tuple[str, ...] = ()


class DocumentFacts(msgspec.Struct, frozen=True):
    """The facts about a whole document. `variables` are those of each server, by the server's URL."""

    title: str
    version: str
    description: str
    dialect: Dialect
    servers: tuple[str, ...]
    variables: dict[str, dict[str, ServerVariable]]
    slots: tuple[CredentialSlot, ...]
    warnings: tuple[str, ...]


def is_url(base: str) -> bool:
    """Return True when a base is a URL, False when it is a folder."""
    return base.startswith(("http://", "https://"))
