"""Dialing: a host's addresses are looked up once, all judged, and only a judged one is connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

import httpcore2

from gloveport.errors import ToolError
from gloveport.policy.egress.addresses import refusal

GRANT = "if it is meant, set allow_private = true in [sources.NAME]; --private for what the command line names"

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Dial = Callable[[str, int, float | None], Awaitable[httpcore2.AsyncNetworkStream]]


class Dialer(httpcore2.AsyncNetworkBackend):
    """Connects to judged addresses. The pool keeps the host's name for the Host header and for TLS."""

    def __init__(self, allow_private: bool, resolve: Resolve, dial: Dial) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._dial = dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first judged address that takes one; each gets its share of the time."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await find(host, port, allow_private=self._allow_private, resolve=self._resolve)
                for address in addresses[:-1]:
                    try:
                        return await self._dial(address, port, timeout and timeout / len(addresses))
                    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        continue
                return await self._dial(addresses[-1], port, timeout)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None


async def dial(address: str, port: int, seconds: float | None) -> httpcore2.AsyncNetworkStream:
    """A connection to an address, which must not be a name."""
    backend: Any = httpcore2.AnyIOBackend()  # its type is a union with a stand-in for when anyio is missing
    return await backend.connect_tcp(address, port, seconds)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Every address that the system's resolver gives for a host, in its order."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def find(host: str, port: int, *, allow_private: bool, resolve: Resolve) -> Sequence[str]:
    """The addresses that may be dialled for a host; one forbidden answer refuses them all (ToolError `egress-denied`)."""
    addresses = await _addresses(host, port, resolve)
    for address in addresses:
        rule = refusal(address, allow_private=allow_private)
        if rule is not None:
            hint = GRANT if rule.kind == "private" else None
            place = host if host == address else f"{host} ({address})"
            raise ToolError(f"{place} may not be reached: {rule}", code="egress-denied", hint=hint)
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
