"""A source's settings → the open source, of whatever kind it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, SandboxError, SourceError
from gloveport.sources.context import SourceContext
from gloveport.sources.kinds import SourceKind
from gloveport.sources.source import OpenedSource, Source
from gloveport.sources.trust import needs_trust, untrusted_error
from gloveport.suggestions import did_you_mean

if TYPE_CHECKING:
    from gloveport.policy.egress import Reply


async def open_source(config: SourceConfig, context: SourceContext, download: Reply | None = None) -> OpenedSource:
    """Open a source; raise a SourceError that names it when its definition can't be read or used.

    `download` is the reply with an OpenAPI definition that detection already has, so that it is not downloaded again.
    """
    try:
        if needs_trust(config):
            raise untrusted_error(config)
        kind = _kind(config, context)
        # The libraries take half a second to load: neither in the source's own time nor in the event loop's thread.
        await asyncio.to_thread(kind.load)
        async with asyncio.timeout(config.timeout_seconds):
            return await _resolve(await kind.open(config, context, download), config)
    except TimeoutError:
        message = f"the source {config.name} took longer than {config.timeout_seconds:g} s to open"
        raise SourceError(message, hint="check that it is up, or raise its timeout_seconds") from None
    except GloveportError as error:
        message = error.message if config.name in error.message else f"the source {config.name}: {error.message}"
        kept = isinstance(error, SourceError | SandboxError) or error.code == "auth-required"
        code = error.code if kept else None
        raise SourceError(message, code=code, hint=error.advice) from error


def _kind(config: SourceConfig, context: SourceContext) -> SourceKind:
    found = context.kinds.get(config.kind)
    if found is None:
        meant = did_you_mean(config.kind, context.kinds) or f"the kinds are {', '.join(context.kinds)}"
        hint = f"{meant}; `gloveport plugins` shows which plugins are on"
        raise SourceError(f"the source {config.name} is of the kind {config.kind}, which no plugin adds", hint=hint)
    return found


async def _resolve(source: Source, config: SourceConfig) -> OpenedSource:
    try:
        return OpenedSource.of(source, config)
    except BaseException:
        await source.close()
        raise
