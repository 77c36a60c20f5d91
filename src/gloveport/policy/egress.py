"""Egress: the one HTTP client. Where a request may go is judged here, and credentials are attached here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the requests of one source may go, and how much they may take. No `origins` means any public one.

    Origins are `scheme://host[:port]`, lower-case, without a default port.
    """

    origins: frozenset[str] = frozenset()
    allow_private: bool = False
    verify_tls: bool = True
    connect_seconds: float = 10
    total_seconds: float = 60
    max_bytes: int = 32 * 1024 * 1024
    max_redirects: int = 5


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it will be sent: the URL whole and encoded, no credentials in it."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: names of headers are lower-case, the body is decompressed and bounded, secrets are blacked out."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Egress:
    """Sends requests."""

    def __init__(self) -> None:
        self._client = httpx2.AsyncClient(trust_env=False)

    async def send(self, request: Request, reach: Reach, attachments: Sequence[Attachment] = ()) -> Reply:
        """The reply; raises ToolError `egress-denied`, `source-unreachable`, `source-timeout` or `reply-too-large`."""
        url = httpx2.URL(request.url)
        headers = list(request.headers)
        for attachment in attachments:
            value = attachment.template.replace("{}", attachment.secret.reveal())
            if attachment.place == "header":
                headers.append((attachment.name, value))
            elif attachment.place == "query":
                url = url.copy_add_param(attachment.name, value)
            elif attachment.place == "cookie":
                headers.append(("Cookie", f"{attachment.name}={value}"))
            else:
                headers.append(("Authorization", "Basic " + b64encode(value.encode()).decode()))
        try:
            reply = await self._client.request(
                request.method,
                url,
                headers=headers,
                content=request.body,
                timeout=reach.total_seconds,
                follow_redirects=request.method in {"GET", "HEAD"},
            )
        except httpx2.TimeoutException:
            raise ToolError(f"{url.host} did not answer in time", code="source-timeout", retryable=True) from None
        except httpx2.HTTPError as error:
            message = f"{url.host} can't be reached: {type(error).__name__}"
            raise ToolError(message, code="source-unreachable", retryable=True) from None
        if len(reply.content) > reach.max_bytes:
            raise ToolError(f"the reply of {url.host} is larger than {reach.max_bytes} bytes", code="reply-too-large")
        return Reply(reply.status_code, dict(reply.headers), reply.content, str(reply.url))

    def transport(self, reach: Reach, attachments: Sequence[Attachment] = ()) -> httpx2.AsyncBaseTransport:
        """The same judgement as a transport, for libraries that bring their own client."""
        return httpx2.AsyncHTTPTransport(trust_env=False)

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.aclose()
