"""The values of egress: `Reach`, what a source's requests may do; `Request`, `Hop` and `Reply`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from gloveport.policy.credentials import Attachment
from gloveport.urls import Url

Attach = Callable[[], Awaitable[Sequence[Attachment]]]
"""Returns the attachments of one request."""

Renew = Callable[[Sequence[Attachment]], Awaitable[Sequence[Attachment]]]
"""Returns other attachments in place of those that a service refused; none when there are no others."""


TRACE_PARENT: ContextVar[str | None] = ContextVar("gloveport.trace_parent", default=None)
"""The W3C `traceparent` of the run that sends requests. It is set only where traces are wanted."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The egress policy of one source: where its requests may go, and their limits.

    Origins are `scheme://host[:port]`, lower-case, without a default port. No `origins` means any public one.
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
    """A request as it will be sent: the URL is complete and encoded, and it contains no credentials.

    Without `follow`, a redirect is the reply.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    follow: bool = True


@dataclass(frozen=True, slots=True)
class Hop:
    """One request in a chain of redirects: a Request that was parsed and checked."""

    method: str
    url: Url
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: header names are lower-case, the body is decompressed and bounded, secrets are redacted.

    `location` is the complete URL that a redirect names, where the request does not follow it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    location: str | None = None
