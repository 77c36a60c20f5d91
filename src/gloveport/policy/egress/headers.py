"""Headers: how they are written on the wire, and what a caller may not write into them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gloveport.errors import ToolError

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# C1 controls, line separators and lone surrogates too: some servers split lines at them, and some decoders make them.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_METHOD = re.compile(r"[A-Z]{1,32}")
# TRACE sends a request's credentials back; CONNECT opens a tunnel that nobody judges.
_REFUSED_METHODS = frozenset({"CONNECT", "TRACE"})
# What frames a message, names its receiver or belongs to one hop is written by egress alone.
OURS = frozenset(
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
# What may follow a redirect to another origin: nothing in which a caller could have put a credential.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent"})

Pair = tuple[bytes, bytes]


def encode(name: str, value: str) -> Pair:
    """A header as bytes; raises ToolError `egress-denied` when it would be more than one header. Never shows the value."""
    if not _TOKEN.fullmatch(name):
        raise ToolError(f"{name[:60]!r} is no name of a header", code="egress-denied")
    if _FORBIDDEN.search(value):
        raise ToolError(f"the value of the header {name} has control characters in it", code="egress-denied")
    return name.encode(), value.strip(" ").encode()


def check(method: str, headers: Iterable[tuple[str, str]]) -> list[Pair]:
    """A caller's headers as bytes; refuses methods and headers that are not for callers to choose."""
    if not _METHOD.fullmatch(method) or method in _REFUSED_METHODS:
        raise ToolError(f"{method[:32]!r} is no method that may be sent", code="egress-denied")
    out: list[Pair] = []
    for name, value in headers:
        if name.lower() in _DROPPED:
            continue
        if name.lower() in OURS:
            raise ToolError(f"the header {name} can't be set by a caller", code="egress-denied")
        out.append(encode(name, value))
    return out


def harmless(headers: Iterable[Pair]) -> list[Pair]:
    """The headers that may go to another origin than the one they were meant for."""
    return [pair for pair in headers if pair[0].lower().decode() in _HARMLESS]
