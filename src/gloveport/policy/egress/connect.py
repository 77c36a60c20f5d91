"""Connect to a host: resolve it once, check all addresses, and connect to a checked one (N1-N4)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

import httpcore2

from gloveport.errors import ToolError
from gloveport.policy.egress.addresses import refusal
from gloveport.policy.egress.stream import TcpStream

PRIVATE_HINT = "ask the user whether this source may reach private addresses"
PRIVATE_SETTING = (
    "to allow it, set allow_private = true in [sources.NAME], or use --private for a source on the command line"
)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Connect = Callable[[str, int, float | None], Awaitable[httpcore2.AsyncNetworkStream]]
connect: Connect = TcpStream.connect


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only. The pool keeps the host's name for the Host header and for TLS."""

    def __init__(self, allow_private: bool, resolve: Resolve, connect: Connect) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._connect = connect

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to the first checked address that accepts one. Each address gets a share of the time."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await allowed_addresses(host, port, allow_private=self._allow_private, resolve=self._resolve)
                for address in addresses[:-1]:
                    try:
                        return await self._connect(address, port, timeout and timeout / len(addresses))
                    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        continue
                return await self._connect(addresses[-1], port, timeout)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return every address that the system's resolver gives for a host, in its order."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def allowed_addresses(host: str, port: int, *, allow_private: bool, resolve: Resolve) -> Sequence[str]:
    """Return the addresses of a host. Raise ToolError `egress-denied` when one of them is forbidden."""
    addresses = await _addresses(host, port, resolve)
    for address in addresses:
        rule = refusal(address, allow_private=allow_private)
        if rule is not None:
            hint, setting = (PRIVATE_HINT, PRIVATE_SETTING) if rule.kind == "private" else (None, None)
            place = host if host == address else f"{host} ({address})"
            raise ToolError(f"{place} may not be reached: {rule}", code="egress-denied", hint=hint, setting=setting)
    return addresses


async def _addresses(host: str, port: int, resolve: Resolve) -> Sequence[str]:
    try:
        return [str(ip_address(host))]
    except ValueError:
        pass
    try:
        addresses = await resolve(host, port)
    except socket.gaierror as error:
        again = error.errno == socket.EAI_AGAIN
        raise ToolError(f"the host {host} can't be found", code="source-unreachable", retryable=again) from None
    except UnicodeError:
        addresses = []
    if not addresses:
        raise ToolError(f"the host {host} can't be found", code="source-unreachable")
    return addresses
