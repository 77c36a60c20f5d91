"""A source's settings → the source, of whatever kind it is."""

from __future__ import annotations

import asyncio

from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError, SourceError
from gloveport.sources import Source
from gloveport.sources.approvals import needs_approval, refusal
from gloveport.sources.outside import Outside


async def open_source(config: SourceConfig, outside: Outside) -> Source:
    """The source, ready to be called; raises SourceError that names it when its definition can't be had or used."""
    try:
        async with asyncio.timeout(config.timeout_seconds):
            return await _open(config, outside)
    except TimeoutError:
        message = f"the source {config.name} took longer than {config.timeout_seconds:g} s to open"
        raise SourceError(message, hint="check that it is up, or raise its timeout_seconds") from None
    except GloveportError as error:
        message = error.message if config.name in error.message else f"the source {config.name}: {error.message}"
        raise SourceError(message, hint=error.hint) from error


async def _open(config: SourceConfig, outside: Outside) -> Source:
    if needs_approval(config):
        raise refusal(config)
    if config.kind == "openapi":
        from gloveport.sources.openapi import open_openapi

        return await open_openapi(config, outside)
    if config.kind == "graphql":
        from gloveport.sources.graphql import open_graphql

        return await open_graphql(config, outside)
    if config.kind == "mcp":
        from gloveport.sources.mcp import open_mcp

        return await open_mcp(config, outside)
    return _open_functions(config)


def _open_functions(config: SourceConfig) -> Source:
    from gloveport.sources.functions import functions
    from gloveport.sources.modules import load_module

    if not isinstance(config.location, str):
        raise OptionError(f"functions of [sources.{config.name}] must be a file or a module")
    return functions(load_module(config.location), name=config.name)
