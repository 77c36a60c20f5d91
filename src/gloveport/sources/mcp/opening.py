"""Opens an MCP server over stdio or HTTP, as its settings say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.credentials import Attachment, renew_attachments
from gloveport.policy.credentials.configured import TOKEN_SLOT
from gloveport.policy.egress import Reach
from gloveport.sources.context import SourceContext
from gloveport.sources.mcp.connection import ServerConnection
from gloveport.sources.mcp.elicitation import OnElicit, OnProgress
from gloveport.sources.mcp.http import HttpConnection
from gloveport.sources.mcp.source import McpSource
from gloveport.sources.mcp.stdio import StdioConnection, command_environment
from gloveport.sources.trust import needs_trust, untrusted_error

# The stream on which a server announces changes stays open; calls have deadlines of their own.
STREAM_SECONDS = 24 * 3600.0


async def open_mcp(
    config: SourceConfig,
    context: SourceContext,
    *,
    on_progress: OnProgress | None = None,
    on_elicit: OnElicit | None = None,
) -> McpSource:
    """Return the server's tools, ready to be called; raise SourceError.

    `on_progress` gets the progress of calls that take long. `on_elicit` puts a server's question to a person; without it
    the server learns that there is nobody to ask, and a call that needs an answer fails.
    """
    if isinstance(config.location, str):
        connect = _over_http(config, config.location, context)
    else:
        connect = await _on_stdio(config, config.location, context)
    return await McpSource(config, connect, context.tasks, on_progress=on_progress, on_elicit=on_elicit).open()


async def _on_stdio(config: SourceConfig, argv: tuple[str, ...], context: SourceContext) -> Callable[[], ServerConnection]:
    if not argv or not argv[0]:
        raise SourceError(f"the source {config.name} has no command", hint='write mcp = ["command", "argument", …]')
    if needs_trust(config):
        raise untrusted_error(config)
    variables, redaction = await command_environment(config, context.credentials)
    folder = os.path.dirname(config.settings) or None  # relative paths in a project's file are relative to it
    return lambda: StdioConnection(argv, variables, redaction, folder=folder, max_bytes=config.max_response_bytes)


def _over_http(config: SourceConfig, url: str, context: SourceContext) -> Callable[[], ServerConnection]:
    origin = _origin(config.name, url)
    reach = Reach(
        origins=frozenset({origin}),
        allow_private=config.allow_private,
        verify_tls=config.verify_tls,
        total_seconds=STREAM_SECONDS,
        max_bytes=config.max_response_bytes,
    )
    credentials = context.credentials

    async def attach() -> tuple[Attachment, ...]:
        secret = await credentials.find(config.name, TOKEN_SLOT, origin)
        return (Attachment("header", "Authorization", secret, frozenset({origin}), "Bearer {}"),) if secret else ()

    async def renew(refused: Sequence[Attachment]) -> tuple[Attachment, ...]:
        return await renew_attachments(credentials, refused)

    async def wanted(scopes: Sequence[str]) -> str:
        if scopes:
            options = " ".join(f"--more-scope {scope}" for scope in scopes)
            return f"run `gloveport auth login {config.name} {options}`"
        found = await credentials.find(config.name, TOKEN_SLOT, origin)
        way = credentials.wanted(config.name, TOKEN_SLOT)
        return f"give it another credential: {way}" if found else f"run `gloveport auth login {config.name}`, or {way}"

    transport = context.egress.transport(reach, attach, renew)
    return lambda: HttpConnection(url, transport, headers=config.headers, wanted_credential=wanted)


def _origin(name: str, url: str) -> str:
    try:
        return urls.parse(url).origin
    except ToolError as error:
        raise SourceError(f"the source {name} has no usable URL: {error.message}", hint="write https://host/path") from None
