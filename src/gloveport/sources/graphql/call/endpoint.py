"""The endpoint of a GraphQL source: sends documents, with headers and credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.credentials import Attachment, renew_attachments
from gloveport.policy.egress import Reach, Reply, Request
from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.context import SourceContext

TOKEN_SLOT = "token"
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
REQUEST_HEADERS = (
    ("Content-Type", "application/json"),
    ("Accept", "application/graphql-response+json, application/json;q=0.9"),
)


class Endpoint:
    """Sends documents. The slot `token` is sent as a bearer token; any other slot is sent in the header of its name."""

    def __init__(self, url: str, config: SourceConfig, context: SourceContext) -> None:
        self.url = url
        self._config = config
        self._context = context
        self._origin = _origin(url, config.name)
        self._reach = Reach(
            origins=frozenset({self._origin}),
            allow_private=config.allow_private,
            verify_tls=config.verify_tls,
            total_seconds=config.timeout_seconds,
            max_bytes=config.max_response_bytes,
        )
        for name in (*config.credentials, *config.headers):
            if not HEADER_NAME.match(name):
                raise SourceError(f"source {config.name}: {name!r} is not the name of a header", hint="correct the name")

    @property
    def slots(self) -> tuple[CredentialSlot, ...]:
        """The credentials that the endpoint takes; each may be missing."""
        others = [CredentialSlot(name, "header", name) for name in self._config.credentials if name != TOKEN_SLOT]
        return (CredentialSlot(TOKEN_SLOT, "bearer"), *others)

    @property
    def wanted(self) -> str:
        """What a person does to give the endpoint a credential."""
        slot = next(iter(self._config.credentials), TOKEN_SLOT)
        return self._context.credentials.wanted(self._config.name, slot)

    async def send(self, document: str, variables: Mapping[str, Any]) -> Reply:
        """Return the reply to a document; raise ToolError as egress does, and for a missing or refused credential."""
        body = msgspec.to_builtins({"query": document, "variables": variables}, str_keys=True)
        try:
            content = json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as error:
            raise ToolError(f"the arguments can't be sent as JSON: {error}", code="bad-arguments") from None
        attachments = await self._attachments()
        request = Request("POST", self.url, (*REQUEST_HEADERS, *self._config.headers.items()), content)
        reply = await self._context.egress.send(request, self._reach, attachments, self._renew)
        if reply.status == 401:
            raise self._unauthorized(given=bool(attachments))
        return reply

    def _unauthorized(self, *, given: bool) -> ToolError:
        wanted = f"give it another credential: {self.wanted}" if given else self.wanted
        message = "the endpoint refused the credential" if given else "the endpoint wants a credential"
        return ToolError(message, code="auth-required", status=401, setting=wanted)

    async def _renew(self, refused: Sequence[Attachment]) -> tuple[Attachment, ...]:
        return await renew_attachments(self._context.credentials, refused)

    async def _attachments(self) -> list[Attachment]:
        found = []
        for slot in self.slots:
            secret = await self._context.credentials.find(self._config.name, slot.name, self._origin)
            if secret is not None:
                name, template = ("Authorization", "Bearer {}") if slot.name == TOKEN_SLOT else (slot.name, "{}")
                found.append(Attachment("header", name, secret, frozenset({self._origin}), template))
        return found


def _origin(url: str, source: str) -> str:
    try:
        return urls.parse(url).origin
    except ToolError as error:
        raise SourceError(f"source {source}: {error.message}", hint="for example https://host/graphql") from None
