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
from gloveport.sources.context import SourceContext
from gloveport.tool_names import RESERVED_ROOT_NAMES, ROOT_SOURCE, problem_with

ENDINGS: dict[str, SourceKind] = {".py": "functions", ".graphql": "graphql", ".gql": "graphql", ".graphqls": "graphql"}
DOCUMENTS = (".json", ".yaml", ".yml")
PEEKED = 64 * 1024
NAMELESS = "source"
INFO = re.compile(rb"""\binfo["']?\s*:""")
TITLE = re.compile(rb"""\btitle["']?\s*:\s*["']?([^"'\n,{}\[\]]{1,60})""")
# What a host's or a file's name has around the word that people know the service by.
COMMON = frozenset(
    {"api", "www", "com", "org", "net", "io", "dev", "app", "co", "openapi", "swagger", "spec", "schema", "v1"}
)
COMMON_OF_DOCUMENTS = COMMON | {"docs", "v2", "v3"}
NAMED = {"openapi": "openapi", "swagger": "openapi", "discoveryVersion": "openapi", "__schema": "graphql"}
KEY = re.compile(rb"""^[ \t{,]*["']?(openapi|swagger|discoveryVersion|__schema)["']?\s*:""", re.MULTILINE)


async def detect(
    text: str,
    outside: SourceContext,
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
        return SourceConfig(name or name_for(text, title), kind, text, allow_private=allow_private)
    if (found := _file(text, kind)) is not None:
        kind, path, title = found
        return SourceConfig(name or name_for(text, title), kind, path, allow_private=allow_private and kind != "functions")
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
    elif _file(text, None) is None:
        _check_command(text, words)


def likely_name(text: str) -> str | None:
    """What a source will be called, as far as its text and its file tell; None where only a title from elsewhere will."""
    try:
        words = shlex.split(text)
        is_url = "://" in text and len(words) == 1
        if not is_url and (found := _file(text, None)) is not None:
            return name_for(text, found[2])
        name = name_for(text if is_url or not _is_command(words) else _telling(words))
    except (ValueError, OptionError):
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


def _file(text: str, known: SourceKind | None) -> tuple[SourceKind, str, str] | None:
    """The kind of a file, its path, and its title if it says one; None if there is no such file."""
    try:
        path = Path(text).expanduser()
        if not path.is_file():
            return None
    except (OSError, RuntimeError):  # the name is too long for a file's, as a command's may be, or of nobody's folder
        return None
    try:
        with path.open("rb") as file:
            start = file.read(PEEKED)
    except OSError as error:
        raise OptionError(f"{text} can't be read: {error.strerror}") from None
    kind = known or ENDINGS.get(path.suffix.lower()) or _kind_of(start)
    if kind is None:
        raise OptionError(
            f"{text} is neither an OpenAPI document, a GraphQL schema nor a Python file",
            hint="give a document with `openapi:`, an introspection result, SDL, or a .py file",
        )
    return kind, str(path.resolve()), _title(start) if kind == "openapi" else ""


def name_for(text: str, title: str = "") -> str:
    """A name for a source: the telling word of its host, file or command, or that of its title where they have none."""
    parts = urlsplit(text) if "://" in text else None
    host = parts.hostname or "" if parts else ""
    spoken = host if host and not re.fullmatch(r"[\d.:]+|localhost", host) else Path(parts.path if parts else text).stem
    common = COMMON_OF_DOCUMENTS if parts or Path(text).suffix.lower() in DOCUMENTS else COMMON
    found = _telling_words(spoken, common)[-1 if spoken == host else 0 :] or _telling_words(title, COMMON_OF_DOCUMENTS)
    word = "_".join(found).lower()
    word = word if word[:1].isalpha() else f"{NAMELESS}{'_' if word else ''}{word}"
    return f"{word}_" if word in RESERVED_ROOT_NAMES or word == ROOT_SOURCE or problem_with(word) else word


def _telling_words(text: str, common: frozenset[str]) -> list[str]:
    return [word for word in re.split(r"[^A-Za-z0-9]+", text) if word and word.lower() not in common]


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


async def _kind_of_url(url: str, outside: SourceContext, allow_private: bool) -> tuple[SourceKind, str]:
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
    return kind, _title(reply.body[:PEEKED]) if kind == "openapi" else ""


def _title(start: bytes) -> str:
    """What a definition calls itself, as far as its beginning tells: the title of its `info`, or the first one."""
    info = INFO.search(start)
    found = TITLE.search(start, info.end() if info else 0)
    return found[1].decode(errors="replace") if found else ""
