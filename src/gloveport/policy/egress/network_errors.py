"""Failures: what went wrong on the network, as a ToolError that shows no secret, no header and no library's text."""

from __future__ import annotations

import ssl
import zlib

import httpcore2

from gloveport.errors import ToolError
from gloveport.policy.egress.values import Reach

FAILURES = (OSError, zlib.error, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError)

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def explain(error: BaseException, host: str, method: str, reach: Reach) -> ToolError:
    """The ToolError for a failed exchange. It is retryable when nothing was sent, or when sending it again harms nobody."""
    if isinstance(error, httpcore2.ConnectTimeout):
        message = f"{host} took no connection within {reach.connect_seconds:g} s"
        return ToolError(message, code="source-timeout", retryable=True)
    if isinstance(error, (TimeoutError, httpcore2.TimeoutException)):
        message = f"{host} did not answer in full within {reach.total_seconds:g} s"
        return ToolError(message, code="source-timeout", retryable=method in _SAFE)
    if isinstance(error, httpcore2.ConnectError):
        return _unconnected(error, host)
    what = "sent a damaged compressed body" if isinstance(error, zlib.error) else "broke off, or does not speak HTTP/1.1"
    return ToolError(f"{host} {what}", code="source-unreachable", retryable=method in _SAFE)


def _unconnected(error: BaseException, host: str) -> ToolError:
    causes = [error]
    while deeper := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(deeper)
    untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        message = f"the certificate of {host} is not trusted: {untrusted.verify_message}"
        hint = "have it trusted by this machine (or by SSL_CERT_FILE); verify_tls = false in [sources.NAME] trusts anyone"
        return ToolError(message, code="source-unreachable", hint=hint)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return ToolError(f"{host} speaks no TLS that is accepted here", code="source-unreachable")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    why = "it refuses connections" if refused else "no connection to it can be made"
    return ToolError(f"{host} can't be reached: {why}", code="source-unreachable", retryable=True)
