"""Network errors as ToolErrors that show no secret, no header and no text of a library."""

from __future__ import annotations

import ssl
import zlib

import httpcore2

from gloveport.errors import ToolError
from gloveport.policy.egress.values import Reach

FAILURES = (OSError, zlib.error, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError)

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def explain(error: BaseException, host: str, method: str, reach: Reach) -> ToolError:
    """Return the ToolError for a failed exchange. It is retryable when nothing was sent, or the method is safe."""
    if isinstance(error, httpcore2.ConnectTimeout):
        message = f"{host} accepted no connection within {reach.connect_seconds:g} s"
        return ToolError(message, code="source-timeout", retryable=True)
    if isinstance(error, (TimeoutError, httpcore2.TimeoutException)):
        message = f"{host} did not answer in full within {reach.total_seconds:g} s"
        setting = "raise timeout_seconds in [sources.NAME]"
        return ToolError(message, code="source-timeout", retryable=method in _SAFE, setting=setting)
    if isinstance(error, httpcore2.ConnectError):
        return _unconnected(error, host)
    damaged = isinstance(error, zlib.error)
    what = "sent a damaged compressed body" if damaged else "closed the connection, or does not speak HTTP/1.1"
    return ToolError(f"{host} {what}", code="source-unreachable", retryable=method in _SAFE)


def _unconnected(error: BaseException, host: str) -> ToolError:
    causes = [error]
    while deeper := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(deeper)
    untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        message = f"the certificate of {host} is not trusted: {untrusted.verify_message}"
        hint = "ask the user to look at the certificate"
        setting = (
            "add it to this machine's trust store or SSL_CERT_FILE; verify_tls = false in [sources.NAME] trusts anyone"
        )
        return ToolError(message, code="source-unreachable", hint=hint, setting=setting)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return ToolError(f"the TLS handshake with {host} failed", code="source-unreachable")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    why = "connection refused" if refused else "no connection"
    return ToolError(f"{host} can't be reached: {why}", code="source-unreachable", retryable=True)
