"""The kinds of sources: how each is recognised and opened. Plugins add kinds to the same registry."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from gloveport.errors import OptionError
from gloveport.plugins.extension_point import ExtensionPoint

if TYPE_CHECKING:
    from gloveport.config import SourceConfig
    from gloveport.policy.egress import Reply
    from gloveport.sources.context import SourceContext
    from gloveport.sources.source import Source

_DEFINITION_KEY = re.compile(rb"""^[ \t{,]*["']?(openapi|swagger|discoveryVersion|__schema)["']?\s*:""", re.MULTILINE)
_SDL = re.compile(rb"^[ \t]*(type|schema|extend|interface)[ \t]++\w++[^:{]{0,200}+\{", re.MULTILINE)


class SourceKind(Protocol):
    """A kind of source. Its name is that of its entry in the registry."""

    def recognises_location(self, location: str) -> bool:
        """Return whether a URL or the path of a file is enough to tell that it is one."""
        ...

    def recognises_text(self, start: bytes) -> bool:
        """Return whether a definition begins like one."""
        ...

    def load(self) -> None:
        """Import the libraries that opening one takes. Called in a thread."""
        ...

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        """Return the open source; raise SourceError. `download` is the reply with its definition, where there is one."""
        ...


class _OpenApiKind:
    def recognises_location(self, location: str) -> bool:
        return False

    def recognises_text(self, start: bytes) -> bool:
        found = _DEFINITION_KEY.search(start)
        return found is not None and found[1] != b"__schema"

    def load(self) -> None:
        importlib.import_module("gloveport.sources.openapi.opening")

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        from gloveport.sources.openapi.opening import LoadedDefinition, open_openapi

        loaded = LoadedDefinition(download.body, download.url) if download else None
        return await open_openapi(config, context, definition=loaded)


class _GraphQLKind:
    def recognises_location(self, location: str) -> bool:
        path = _path(location)
        at_endpoint = "://" in location and path.endswith("/graphql")
        return at_endpoint or Path(path).suffix in (".graphql", ".gql", ".graphqls")

    def recognises_text(self, start: bytes) -> bool:
        found = _DEFINITION_KEY.search(start)
        return found[1] == b"__schema" if found else _SDL.search(start) is not None

    def load(self) -> None:
        importlib.import_module("gloveport.sources.graphql.opening")

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        from gloveport.sources.graphql.opening import open_graphql

        return await open_graphql(config, context)


class _McpKind:
    def recognises_location(self, location: str) -> bool:
        return "://" in location and _path(location).endswith(("/mcp", "/sse"))

    def recognises_text(self, start: bytes) -> bool:
        return False

    def load(self) -> None:
        importlib.import_module("gloveport.sources.mcp.opening")

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        from gloveport.sources.mcp.opening import open_mcp

        return await open_mcp(config, context)


class _FunctionsKind:
    def recognises_location(self, location: str) -> bool:
        return "://" not in location and location.lower().endswith(".py")

    def recognises_text(self, start: bytes) -> bool:
        return False

    def load(self) -> None:
        importlib.import_module("gloveport.sources.functions.modules")

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        from gloveport.sources.functions import functions
        from gloveport.sources.functions.modules import load_module
        from gloveport.sources.trust import trusted_files

        if not isinstance(config.location, str):
            raise OptionError(f"functions of [sources.{config.name}] must be a file or a module")
        return functions(load_module(config.location, trusted_files(config)), name=config.name, leave_out=True)


KINDS: ExtensionPoint[SourceKind] = ExtensionPoint(
    "kind of source",
    {"openapi": _OpenApiKind(), "graphql": _GraphQLKind(), "mcp": _McpKind(), "functions": _FunctionsKind()},
)
"""The kinds that Gloveport itself has."""


def _path(location: str) -> str:
    return (urlsplit(location).path if "://" in location else location).rstrip("/").lower()
