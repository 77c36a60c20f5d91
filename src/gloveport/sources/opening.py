"""A source's settings → the source, of whatever kind it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gloveport.config import SourceConfig, SourceKind
from gloveport.errors import GloveportError, OptionError, SourceError
from gloveport.sources import Source
from gloveport.sources.context import Outside
from gloveport.sources.trust import needs_approval, refusal


async def open_source(config: SourceConfig, outside: Outside) -> Source:
    """The source, ready to be called; raises SourceError that names it when its definition can't be had or used."""
    try:
        if needs_approval(config):
            raise refusal(config)
        # Its libraries take half a second to load: not of its own time, and not while others wait for the event loop.
        opener = await asyncio.to_thread(_opener, config.kind)
        async with asyncio.timeout(config.timeout_seconds):
            return await opener(config, outside)
    except TimeoutError:
        message = f"the source {config.name} took longer than {config.timeout_seconds:g} s to open"
        raise SourceError(message, hint="check that it is up, or raise its timeout_seconds") from None
    except GloveportError as error:
        message = error.message if config.name in error.message else f"the source {config.name}: {error.message}"
        raise SourceError(message, hint=error.hint) from error


def _opener(kind: SourceKind) -> Callable[[SourceConfig, Outside], Awaitable[Source]]:
    if kind == "openapi":
        from gloveport.sources.openapi.opening import open_openapi

        return open_openapi
    if kind == "graphql":
        from gloveport.sources.graphql import open_graphql

        return open_graphql
    if kind == "mcp":
        from gloveport.sources.mcp import open_mcp

        return open_mcp
    return _open_functions


async def _open_functions(config: SourceConfig, outside: Outside) -> Source:
    from gloveport.sources.functions import functions
    from gloveport.sources.functions.modules import load_module

    if not isinstance(config.location, str):
        raise OptionError(f"functions of [sources.{config.name}] must be a file or a module")
    return functions(load_module(config.location), name=config.name)
