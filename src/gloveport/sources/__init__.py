"""Where a call goes: Python functions, OpenAPI and GraphQL services, MCP servers.

source              the `Source` Protocol, its optional abilities, and `OpenedSource`
kinds               the kinds of sources, built-in ones and those of plugins
detection           a URL, file or command → settings
trust, pins         which sources of a project may be opened; which definitions were accepted
opening             settings → an open source, of any kind
context             what a source is given: HTTP client, credentials, cache folder, runner of jailed tasks
compiled_definition what compiled definitions of every kind share
definition_cache    compiled definitions on disk
schemas/            schemas that others wrote → the normal form, which costs the validator a bounded amount of work
texts               cleaning of text that others wrote
functions/, openapi/, graphql/, mcp/    the kinds
"""

from __future__ import annotations

from gloveport.sources.source import (
    AttributingSource,
    KeyedSource,
    OpenedSource,
    PageDescribingSource,
    PagedSource,
    Source,
    SourceInfo,
)

__all__ = [
    "AttributingSource",
    "KeyedSource",
    "OpenedSource",
    "PageDescribingSource",
    "PagedSource",
    "Source",
    "SourceInfo",
]
