"""What a URL, a file or a command is a source of: its kind, and a name for it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from gloveport.config import SourceConfig, SourceKind
from gloveport.errors import GloveportError, OptionError, SourceError, ToolError
from gloveport.policy.egress import Reach, Request, urls
from gloveport.policy.egress.urls import shown
from gloveport.sources.names import RESERVED, ROOT, problem_with
from gloveport.sources.outside import Outside

ENDINGS: dict[str, SourceKind] = {".py": "functions", ".graphql": "graphql", ".gql": "graphql", ".graphqls": "graphql"}
DOCUMENTS = (".json", ".yaml", ".yml")
PEEKED = 64 * 1024
NAMELESS = "source"
TITLE = re.compile(rb"""["']?title["']?\s*:\s*["']?([^"'\n,}]{1,60})""")
# What a host's or a file's name has around the word that people know the service by.
COMMON = frozenset(
    {"api", "www", "com", "org", "net", "io", "dev", "app", "co", "openapi", "swagger", "spec", "schema", "v1"}
)
NAMED = {"openapi": "openapi", "swagger": "openapi", "discoveryVersion": "openapi", "__schema": "graphql"}
KEY = re.compile(rb"""^[ \t{,]*["']?(openapi|swagger|discoveryVersion|__schema)["']?\s*:""", re.MULTILINE)


async def detect(
    text: str,
    outside: Outside,
    *,
    name: str | None = None,
    kind: SourceKind | None = None,
    allow_private: bool = False,
) -> SourceConfig:
    """The settings for what the text points at; raises OptionError as `check` does, and SourceError that says why not."""
    words = _words(text)
    if "://" in text and len(words) == 1:
        title = ""
        kind = kind or _kind_by_name(urlsplit(text).path)
        if kind is None:
            kind, title = await _kind_of_url(text, outside, allow_private)
        found = name_for(text)
        name = name or (found if found != NAMELESS or not title else name_for(title))
        return SourceConfig(name, kind, text, allow_private=allow_private)
    if (found := _kind_of_file(text, kind)) is not None:
        kind, path = found
        return SourceConfig(name or name_for(text), kind, path, allow_private=allow_private and kind != "functions")
    _check_command(text, words)
    return SourceConfig(name or name_for(_telling(words)), "mcp", tuple(words))


def check(text: str) -> None:
    """Raises OptionError for a text that can be no source, whatever is up or down elsewhere."""
    words = _words(text)
    if "://" in text and len(words) == 1:
        try:
            urls.parse(text)
        except ToolError as error:
            raise OptionError(error.message, hint="write https://host/path") from None
    elif _kind_of_file(text, None) is None:
        _check_command(text, words)


def likely_name(text: str) -> str | None:
    """What a source will be called, as far as its text alone tells; None where only its own title will."""
    try:
        words = shlex.split(text)
        is_url = "://" in text and len(words) == 1
        name = name_for(_telling(words) if not is_url and not Path(text).is_file() and _is_command(words) else text)
    except ValueError:
        return None
    return None if name == NAMELESS else name


def _check_command(text: str, words: list[str]) -> None:
    hint = "give a URL, a file, or the command of an MCP server in quotes"
    if not _is_command(words):
        raise OptionError(f"there is no file {text}", hint=hint)
    if len(words) == 1 and shutil.which(words[0]) is None:  # with arguments it can be nothing else: opening it says more
        raise OptionError(f"there is no file and no command {text}", hint=hint)


def _is_command(words: list[str]) -> bool:
    return len(words) > 1 or (bool(words) and "." not in words[0])


def _kind_of_file(text: str, known: SourceKind | None) -> tuple[SourceKind, str] | None:
    path = Path(text).expanduser()
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            kind = known or ENDINGS.get(path.suffix.lower()) or _kind_of(file.read(PEEKED))
    except OSError as error:
        raise OptionError(f"{text} can't be read: {error.strerror}") from None
    if kind is None:
        raise OptionError(
            f"{text} is neither an OpenAPI document, a GraphQL schema nor a Python file",
            hint="give a document with `openapi:`, an introspection result, SDL, or a .py file",
        )
    return kind, str(path.resolve())


def name_for(text: str) -> str:
    """A name for a source: the telling word of its host, file or command."""
    parts = urlsplit(text) if "://" in text else None
    host = parts.hostname or "" if parts else ""
    spoken = host if host and not re.fullmatch(r"[\d.:]+|localhost", host) else Path(parts.path if parts else text).stem
    found = [word for word in re.split(r"[^A-Za-z0-9]+", spoken) if word and word.lower() not in COMMON]
    word = (found[-1] if host and spoken == host else "_".join(found)).lower() if found else ""
    word = word if word[:1].isalpha() else f"{NAMELESS}{'_' if word else ''}{word}"
    return f"{word}_" if word in RESERVED or word == ROOT or problem_with(word) else word


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise OptionError(f"{text} can't be read as a command: {error}", hint="close the quotes") from None


def _telling(words: list[str]) -> str:
    """The word of a command that says which server it is: `npx -y @modelcontextprotocol/server-memory` → `memory`."""
    spoken = [word for word in words[1:] if not word.startswith("-") and "=" not in word] or words[:1]
    last = re.sub(r"@[\d.]+$|@latest$", "", spoken[0]).rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"^(mcp[-_])?server[-_]|[-_]mcp([-_]server)?$|^mcp[-_]", "", Path(last).stem) or last


def _kind_by_name(path: str) -> SourceKind | None:
    stripped = path.rstrip("/").lower()
    if stripped.endswith("/graphql"):
        return "graphql"
    if stripped.endswith(("/mcp", "/sse")):
        return "mcp"
    return ENDINGS.get(Path(stripped).suffix) if not stripped.endswith(".py") else None


def _kind_of(start: bytes) -> SourceKind | None:
    found = KEY.search(start)
    if found:
        return NAMED[found[1].decode()]  # pyright: ignore[reportReturnType]
    return (
        "graphql"
        if re.search(rb"^[ \t]*(type|schema|extend|interface)[ \t]+\w+[^:{]{0,200}\{", start, re.MULTILINE)
        else None
    )


async def _kind_of_url(url: str, outside: Outside, allow_private: bool) -> tuple[SourceKind, str]:
    """What is at an address, and its title if it says one."""
    reach = Reach(allow_private=allow_private, max_bytes=64 * 1024 * 1024)
    try:
        reply = await outside.egress.send(
            Request("GET", url, (("accept", "application/json, application/yaml, */*"),)), reach
        )
    except GloveportError as error:
        raise SourceError(f"{shown(url)} can't be read: {error.message}", hint=error.hint) from error
    kind = _kind_of(reply.body[:PEEKED]) if reply.status < 300 else None
    if kind is None and reply.status in (400, 405, 406, 415):
        kind = "mcp"  # an endpoint that wants POST and says nothing to GET
    if kind is None:
        raise SourceError(
            f"{shown(url)} is neither an OpenAPI document, a GraphQL endpoint nor an MCP server (status {reply.status})",
            hint="give the address of the definition itself, or say what it is with --kind",
        )
    titled = TITLE.search(reply.body[:PEEKED])
    return kind, titled[1].decode(errors="replace") if titled else ""
