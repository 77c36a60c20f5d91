"""A source's settings → the open source, of whatever kind it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from gloveport.config import SourceConfig, SourceKind
from gloveport.errors import GloveportError, OptionError, SandboxError, SourceError
from gloveport.sources.context import SourceContext
from gloveport.sources.source import OpenedSource, Source
from gloveport.sources.trust import needs_trust, trusted_files, untrusted_error

if TYPE_CHECKING:
    from gloveport.policy.egress import Reply


async def open_source(config: SourceConfig, context: SourceContext, download: Reply | None = None) -> OpenedSource:
    """Open a source; raise a SourceError that names it when its definition can't be read or used.

    `download` is the reply with an OpenAPI definition that detection already has, so that it is not downloaded again.
    """
    try:
        if needs_trust(config):
            raise untrusted_error(config)
        # The libraries take half a second to load: neither in the source's own time nor in the event loop's thread.
        opener = await asyncio.to_thread(_opener, config.kind, download)
        async with asyncio.timeout(config.timeout_seconds):
            return await _resolve(await opener(config, context), config)
    except TimeoutError:
        message = f"the source {config.name} took longer than {config.timeout_seconds:g} s to open"
        raise SourceError(message, hint="check that it is up, or raise its timeout_seconds") from None
    except GloveportError as error:
        message = error.message if config.name in error.message else f"the source {config.name}: {error.message}"
        kept = isinstance(error, SourceError | SandboxError) or error.code == "auth-required"
        code = error.code if kept else None
        raise SourceError(message, code=code, hint=error.advice) from error


async def _resolve(source: Source, config: SourceConfig) -> OpenedSource:
    try:
        return OpenedSource.of(source, config)
    except BaseException:
        await source.close()
        raise


def _opener(kind: SourceKind, download: Reply | None) -> Callable[[SourceConfig, SourceContext], Awaitable[Source]]:
    if kind == "openapi":
        from gloveport.sources.openapi.loading import LoadedDefinition
        from gloveport.sources.openapi.opening import open_openapi

        return partial(open_openapi, definition=LoadedDefinition(download.body, download.url) if download else None)
    if kind == "graphql":
        from gloveport.sources.graphql.opening import open_graphql

        return open_graphql
    if kind == "mcp":
        from gloveport.sources.mcp.opening import open_mcp

        return open_mcp
    return _open_functions


async def _open_functions(config: SourceConfig, context: SourceContext) -> Source:
    from gloveport.sources.functions import functions
    from gloveport.sources.functions.modules import load_module

    if not isinstance(config.location, str):
        raise OptionError(f"functions of [sources.{config.name}] must be a file or a module")
    return functions(load_module(config.location, trusted_files(config)), name=config.name, leave_out=True)
