"""What goes into egress and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gloveport.policy.egress.urls import Url


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
class Hop:
    """One request of the chain that redirects make: a Request that was parsed and checked."""

    method: str
    url: Url
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: names of headers are lower-case, the body is decompressed and bounded, secrets are blacked out."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
