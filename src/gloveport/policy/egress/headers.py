"""Headers: their encoding on the wire, and which ones a caller may not set (N7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gloveport.errors import ToolError

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Also C1 controls, line separators and lone surrogates: some servers split lines there, and some decoders produce them.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_METHOD = re.compile(r"[A-Z]{1,32}")
# TRACE returns the credentials of a request; CONNECT opens a tunnel that nothing checks.
_REFUSED_METHODS = frozenset({"CONNECT", "TRACE"})
# Only egress sets headers that frame a message, name its receiver or belong to one hop.
EGRESS_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_DROPPED = frozenset({"accept-encoding"})
# Headers that follow a redirect to another origin: none that could hold a caller's credential.
_CROSS_ORIGIN = frozenset({"accept", "accept-language", "user-agent"})

Pair = tuple[bytes, bytes]


def encode(name: str, value: str) -> Pair:
    """Return a header as bytes. Raise ToolError `egress-denied`, without the value, for one that could split in two."""
    if not _TOKEN.fullmatch(name):
        raise ToolError(f"{name[:60]!r} is not a header name", code="egress-denied")
    if _FORBIDDEN.search(value):
        raise ToolError(f"the value of the header {name} contains control characters", code="egress-denied")
    return name.encode(), value.strip(" ").encode()


def check(method: str, headers: Iterable[tuple[str, str]]) -> list[Pair]:
    """Return a caller's headers as bytes. Refuse methods and headers that a caller may not choose."""
    if not _METHOD.fullmatch(method) or method in _REFUSED_METHODS:
        raise ToolError(f"the method {method[:32]!r} is not allowed", code="egress-denied")
    out: list[Pair] = []
    for name, value in headers:
        if name.lower() in _DROPPED:
            continue
        if name.lower() in EGRESS_HEADERS:
            raise ToolError(f"the header {name} can't be set by a caller", code="egress-denied")
        out.append(encode(name, value))
    return out


def cross_origin(headers: Iterable[Pair]) -> list[Pair]:
    """Return the headers that may be sent to another origin after a redirect."""
    return [pair for pair in headers if pair[0].lower().decode() in _CROSS_ORIGIN]
