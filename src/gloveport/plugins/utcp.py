"""The plugin `utcp`: manuals of the Universal Tool Calling Protocol as sources.

A jailed process writes a manual as an OpenAPI document and compiles it, so that everything that holds for an OpenAPI source
holds here: egress makes the calls, and only the source's own credentials are used, never what a manual says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gloveport.plugins.hooks import hook

if TYPE_CHECKING:
    from gloveport.config import SourceConfig
    from gloveport.policy.egress import Reply
    from gloveport.sources import Source
    from gloveport.sources.context import SourceContext
    from gloveport.sources.kinds import SourceKind

_KEY = re.compile(rb'"utcp_version"\s*:')


@hook
def sources() -> Mapping[str, SourceKind]:
    """Return the kind of source."""
    return {"utcp": UtcpKind()}


class UtcpKind:
    """UTCP manuals: files, and URLs such as https://api.example.com/utcp."""

    def recognises_location(self, location: str) -> bool:
        return "://" in location and urlsplit(location).path.rstrip("/").endswith("/utcp")

    def recognises_text(self, start: bytes) -> bool:
        return start.lstrip().startswith(b"{") and _KEY.search(start) is not None

    def load(self) -> None:
        import gloveport.sources.openapi.opening  # noqa: F401 - it takes long

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        from gloveport.sources.openapi.loading import LoadedDefinition
        from gloveport.sources.openapi.opening import open_openapi

        given = LoadedDefinition(download.body, download.url) if download else None
        return await open_openapi(config, context, given, is_manual=True)
