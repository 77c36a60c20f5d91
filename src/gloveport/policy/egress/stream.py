"""A connection of the HTTP client: TCP, or TLS over it."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from typing import Any

import httpcore2

MAX_HELD_BYTES = 64 * 1024


class TcpStream(httpcore2.AsyncNetworkStream):
    """A connection that sends what is written in one turn of the event loop in one piece.

    The library writes the head and the body of a request one after the other. Sent apart, they would wake the other side
    twice, the second time for a body that it could have had with the head.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._held: list[bytes] = []
        self._held_bytes = 0

    @classmethod
    async def connect(cls, address: str, port: int, seconds: float | None) -> TcpStream:
        """Return a connection to an IP address. A host name is not accepted."""
        try:
            async with asyncio.timeout(seconds):
                return cls(*await asyncio.open_connection(address, port, flags=socket.AI_NUMERICHOST))
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the library's signature
        """Return what the other side says next, and nothing once it has ended."""
        self._flush()
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError:
            raise httpcore2.ReadTimeout from None
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Send the bytes in this turn of the event loop. Wait while the other side leaves too many unread."""
        if not self._held:
            asyncio.get_running_loop().call_soon(self._flush)
        self._held.append(buffer)
        self._held_bytes += len(buffer)
        if self._held_bytes <= MAX_HELD_BYTES:
            return
        self._flush()
        try:
            async with asyncio.timeout(timeout):
                await self._writer.drain()
        except TimeoutError:
            raise httpcore2.WriteTimeout from None
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._held_bytes = self._held, [], 0
            self._writer.write(held[0] if len(held) == 1 else b"".join(held))

    async def aclose(self) -> None:
        """Close the connection, without waiting for the other side."""
        self._flush()
        self._writer.close()
        await asyncio.sleep(0)
        self._writer.transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> TcpStream:
        """Return the same connection with TLS."""
        try:
            async with asyncio.timeout(timeout):
                await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except TimeoutError:
            self._writer.transport.abort()
            raise httpcore2.ConnectTimeout from None
        except OSError as error:  # an ssl.SSLError is one
            self._writer.transport.abort()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection knows about itself; an idle one that `is_readable` was ended by the other side."""
        if info == "is_readable":
            return self._writer.is_closing() or self._reader.at_eof() or self._has_data
        return self._writer.get_extra_info(info)

    @property
    def _has_data(self) -> bool:
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))
