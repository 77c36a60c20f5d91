"""APIs that an OpenAPI document describes: document → operations → tools, and calls → requests → values.

document ─► compile ─► shelf ─► source ─► requests (styles, bodies, servers, keys) ─► egress
                                   ▲                                                    │
                                   └────────── replies, paging ◄────── retries ◄────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gloveport.config import SourceConfig
    from gloveport.sources.context import Outside
    from gloveport.sources.openapi.source import OpenApiSource

__all__ = ["open_openapi"]


async def open_openapi(config: SourceConfig, outside: Outside) -> OpenApiSource:
    """The operations of a definition as tools; raises SourceError when the definition can't be used."""
    # The shelf imports from this package, so this package imports nothing that needs the shelf until it is called.
    from gloveport.sources.openapi.opening import open_definition
    from gloveport.sources.openapi.source import OpenApiSource

    shelf, warnings = await open_definition(config, outside)
    return OpenApiSource(config, outside, shelf, warnings)
