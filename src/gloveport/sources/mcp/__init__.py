"""MCP servers as sources: over stdio and streamable HTTP, protocol 2026-07-28 and 2025-11-25.

settings ─► approvals (may this command be started?) ─► stdio | http (the way to the server)
    ─► session (one task owns it) ─► listing (its tools, cleaned and named) ─► source (calls, restarts, changes)
"""

from __future__ import annotations

from collections.abc import Callable

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import Reach, urls
from gloveport.sources.context import Outside
from gloveport.sources.mcp.connection import Connection
from gloveport.sources.mcp.elicitation import Answer, OnElicit, OnProgress, Progress, Question
from gloveport.sources.mcp.environment import environment
from gloveport.sources.mcp.http import HttpConnection
from gloveport.sources.mcp.source import McpSource
from gloveport.sources.mcp.stdio import StdioConnection
from gloveport.sources.trust import needs_approval, refusal

__all__ = ["Answer", "McpSource", "OnElicit", "OnProgress", "Progress", "Question", "open_mcp"]

TOKEN = "token"
# A stream on which a server tells of changes stays open; calls have deadlines of their own.
STREAM_SECONDS = 24 * 3600.0


async def open_mcp(
    config: SourceConfig,
    outside: Outside,
    *,
    on_progress: OnProgress | None = None,
    on_elicit: OnElicit | None = None,
) -> McpSource:
    """The server's tools, ready to be called; raises SourceError.

    `on_progress` hears of calls that take long. `on_elicit` puts a server's question to a person; without it the server is
    told that there is none, and a call that can't do without fails.
    """
    if isinstance(config.location, str):
        connect = _over_http(config, config.location, outside)
    else:
        connect = _on_stdio(config, config.location, outside)
    return await McpSource(config, connect, on_progress=on_progress, on_elicit=on_elicit).open()


def _on_stdio(config: SourceConfig, argv: tuple[str, ...], outside: Outside) -> Callable[[], Connection]:
    if not argv or not argv[0]:
        raise SourceError(f"the source {config.name} has no command", hint='write mcp = ["command", "argument", …]')
    if needs_approval(config):
        raise refusal(config)
    variables, redaction = environment(config, outside.credentials)
    return lambda: StdioConnection(argv, variables, redaction, max_bytes=config.max_response_bytes)


def _over_http(config: SourceConfig, url: str, outside: Outside) -> Callable[[], Connection]:
    origin = _origin(config.name, url)
    reach = Reach(
        origins=frozenset({origin}),
        allow_private=config.allow_private,
        verify_tls=config.verify_tls,
        total_seconds=STREAM_SECONDS,
        max_bytes=config.max_response_bytes,
    )
    secret = outside.credentials.find(config.name, TOKEN)
    attachments = (
        [Attachment("header", "Authorization", secret, frozenset({origin}), template="Bearer {}")] if secret else []
    )
    return lambda: HttpConnection(
        url,
        outside.egress.transport(reach, attachments),
        headers=config.headers,
        missing="" if secret else outside.credentials.wanted(config.name, TOKEN),
    )


def _origin(name: str, url: str) -> str:
    try:
        return urls.parse(url).origin
    except ToolError as error:
        raise SourceError(f"the source {name} has no usable URL: {error.message}", hint="write https://host/path") from None
