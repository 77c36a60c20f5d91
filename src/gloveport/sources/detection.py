"""Detects which kind of source a URL, a file or a command is, and proposes a name for it."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError, SourceError, ToolError
from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.policy.egress import Reach, Reply, Request
from gloveport.sources.context import SourceContext
from gloveport.sources.kinds import KINDS, SourceKind
from gloveport.tool_names import RESERVED_SOURCE_NAMES, ROOT_SOURCE, problem_with
from gloveport.urls import shown

Kinds = ExtensionPoint[SourceKind]
DOCUMENT_SUFFIXES = (".json", ".yaml", ".yml")
MAX_PEEK_BYTES = 64 * 1024
MAX_DOWNLOAD_BYTES = 50_000_000  # as much as an OpenAPI definition may have
DEFAULT_NAME = "source"
INFO_KEY = re.compile(rb"""\binfo["']?\s*:""")
TITLE = re.compile(rb"""\btitle["']?\s*:\s*["']?([^"'\n,{}\[\]]{1,60})""")
_ADDRESS_WITHOUT_SCHEME = re.compile(r"[\w-]+(?:\.[\w-]+)+/|[\w.-]+:\d+(?:/|\Z)")
# Words in the name of a host or a file that do not tell which service it is.
COMMON_WORDS = frozenset(
    {"api", "www", "com", "org", "net", "io", "dev", "app", "co", "openapi", "swagger", "spec", "schema", "v1"}
)
COMMON_DOCUMENT_WORDS = COMMON_WORDS | {"docs", "v2", "v3"}


@dataclass(frozen=True, slots=True)
class DetectedSource:
    """The settings of a source, and the reply with its definition where that was downloaded to detect the kind."""

    config: SourceConfig
    download: Reply | None = None


async def detect(
    text: str,
    context: SourceContext,
    *,
    name: str | None = None,
    kind: str | None = None,
    allow_private: bool = False,
) -> DetectedSource:
    """Return the source that the text names; raise OptionError as `check` does, and SourceError if it can't be read."""
    words = _words(text)
    if "://" in text and len(words) == 1:
        _check_url(text)
        kind = kind or _kind_of_location(text, context.kinds)
        if kind is not None:
            return DetectedSource(SourceConfig(name or name_for(text), kind, text, allow_private=allow_private))
        reply = await _download(text, context, allow_private)
        kind = _kind_of_reply(text, reply, context.kinds)
        title = _title(reply.body[:MAX_PEEK_BYTES]) if kind == "openapi" else ""
        config = SourceConfig(name or name_for(text, title), kind, text, allow_private=allow_private)
        return DetectedSource(config, reply if reply.status == 200 and kind not in ("graphql", "mcp") else None)
    if kind != "mcp" and (found := _file(text, kind, context.kinds)) is not None:
        kind, path, title = found
        private = allow_private and kind != "functions"
        return DetectedSource(SourceConfig(name or name_for(text, title), kind, path, allow_private=private))
    if kind != "mcp":
        _check_command(text, words)
    return DetectedSource(SourceConfig(name or name_for(_server_word(words)), "mcp", tuple(words)))


def check(text: str, kinds: Kinds = KINDS) -> None:
    """Raise OptionError for a text that can't be a source, without reaching any server."""
    words = _words(text)
    if "://" in text and len(words) == 1:
        _check_url(text)
    elif _file(text, None, kinds) is None:
        _check_command(text, words)


def likely_name(text: str, kinds: Kinds = KINDS) -> str | None:
    """Return the name that `detect` will give, from the text and its file alone; None where it takes a download to know."""
    try:
        words = shlex.split(text)
        is_url = "://" in text and len(words) == 1
        if not is_url and (found := _file(text, None, kinds)) is not None:
            return name_for(text, found[2])
        name = name_for(text if is_url or not _is_command(words) else _server_word(words))
    except (ValueError, OptionError):
        return None
    return None if name == DEFAULT_NAME else name


def _check_url(text: str) -> None:
    try:
        urls.parse(text)
    except ToolError as error:
        raise OptionError(error.message, hint="write https://host/path") from None


def _check_command(text: str, words: list[str]) -> None:
    hint = "give a URL, a file, or the command of an MCP server in quotes"
    if not _is_command(words):
        if _ADDRESS_WITHOUT_SCHEME.match(text):
            hint = f"if it is an address, write https://{text}"
        raise OptionError(f"there is no file {text}", code="not-found", hint=hint)
    if len(words) == 1 and shutil.which(words[0]) is None:  # with arguments it is a command; opening it reports more
        raise OptionError(f"there is no file and no command {text}", code="not-found", hint=hint)


def _is_command(words: list[str]) -> bool:
    return len(words) > 1 or (bool(words) and "." not in words[0])


def _file(text: str, known: str | None, kinds: Kinds) -> tuple[str, str, str] | None:
    """Return the kind of a file, its path, and its title if it has one; None if there is no such file."""
    try:
        path = Path(text).expanduser()
        if not path.is_file():
            return None
    except (OSError, RuntimeError):  # too long for a file name, as a command may be, or `~` of an unknown user
        return None
    try:
        with path.open("rb") as file:
            start = file.read(MAX_PEEK_BYTES)
    except OSError as error:
        raise OptionError(f"{text} can't be read: {error.strerror}") from None
    kind = known or _kind_of_location(str(path), kinds) or _kind_of_text(start, kinds)
    if kind is None:
        raise OptionError(
            f"{text} is neither an OpenAPI document, a GraphQL schema nor a Python file",
            hint="give a document with `openapi:`, an introspection result, SDL, or a .py file",
        )
    return kind, str(path.resolve()), _title(start) if kind == "openapi" else ""


def name_for(text: str, title: str = "") -> str:
    """Return a name for a source: the distinctive word of its host, file or command, or else of its title."""
    parts = urlsplit(text) if "://" in text else None
    host = parts.hostname or "" if parts else ""
    label = host if host and not re.fullmatch(r"[\d.:]+|localhost", host) else Path(parts.path if parts else text).stem
    is_document = parts or Path(text).suffix.lower() in DOCUMENT_SUFFIXES
    found = _distinctive_words(label, COMMON_DOCUMENT_WORDS if is_document else COMMON_WORDS)
    found = found[-1 if label == host else 0 :] or _distinctive_words(title, COMMON_DOCUMENT_WORDS)
    word = "_".join(found).lower()
    word = word if word[:1].isalpha() else f"{DEFAULT_NAME}{'_' if word else ''}{word}"
    return f"{word}_" if word in RESERVED_SOURCE_NAMES or word == ROOT_SOURCE or problem_with(word) else word


def _distinctive_words(text: str, common: frozenset[str]) -> list[str]:
    return [word for word in re.split(r"[^A-Za-z0-9]+", text) if word and word.lower() not in common]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise OptionError(f"{text} can't be read as a command: {error}", hint="close the quotes") from None


def _server_word(words: list[str]) -> str:
    """Return the word of a command that names the server: `npx -y @modelcontextprotocol/server-memory` → `memory`."""
    candidates = [word for word in words[1:] if not word.startswith("-") and "=" not in word] or words[:1]
    last = re.sub(r"@[\d.]+$|@latest$", "", candidates[0]).rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"^(mcp[-_])?server[-_]|[-_]mcp([-_]server)?$|^mcp[-_]", "", Path(last).stem) or last


def _kind_of_location(location: str, kinds: Kinds) -> str | None:
    return next((name for name, kind in kinds.items() if kind.recognises_location(location)), None)


def _kind_of_text(start: bytes, kinds: Kinds) -> str | None:
    return next((name for name, kind in kinds.items() if kind.recognises_text(start)), None)


async def _download(url: str, context: SourceContext, allow_private: bool) -> Reply:
    reach = Reach(allow_private=allow_private, max_bytes=MAX_DOWNLOAD_BYTES)
    request = Request("GET", url, (("accept", "application/json, application/yaml, */*"),))
    try:
        return await context.egress.send(request, reach)
    except GloveportError as error:
        raise SourceError(f"{shown(url)} can't be read: {error.message}", hint=error.advice) from error


def _kind_of_reply(url: str, reply: Reply, kinds: Kinds) -> str:
    kind = _kind_of_text(reply.body[:MAX_PEEK_BYTES], kinds) if reply.status < 300 else None
    if kind is None and reply.status in (400, 405, 406, 415):
        kind = "mcp"  # an endpoint that wants POST and refuses GET
    if kind is None:
        raise SourceError(
            f"{shown(url)} is neither an OpenAPI document, a GraphQL endpoint nor an MCP server (status {reply.status})",
            hint="give the address of the definition itself, or say what it is with --kind",
        )
    return kind


def _title(start: bytes) -> str:
    """Return the title in the first bytes of a definition: that of its `info`, or the first one."""
    info = INFO_KEY.search(start)
    found = TITLE.search(start, info.end() if info else 0)
    return found[1].decode(errors="replace") if found else ""
