"""Egress: the one HTTP client. Where a request may go is judged here, and credentials are attached here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

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
        raise NotImplementedError

    def transport(self, reach: Reach, attachments: Sequence[Attachment] = ()) -> httpx2.AsyncBaseTransport:
        """The same judgement as a transport, for libraries that bring their own client."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.aclose()
