"""A transport with the checks of egress, for libraries that bring their own HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpx2

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.policy.egress import headers
from gloveport.policy.egress.network_errors import FAILURES, explain
from gloveport.policy.egress.response import StreamedResponse
from gloveport.policy.egress.values import Attach, Hop, Reach, Renew
from gloveport.policy.redaction import Redaction

if TYPE_CHECKING:
    from gloveport.policy.egress.client import Egress


class Transport(httpx2.AsyncBaseTransport):
    """The transport of an `httpx2.AsyncClient`. The connections belong to the egress."""

    def __init__(self, egress: Egress, reach: Reach, attach: Attach | None, renew: Renew | None) -> None:
        self._egress = egress
        self._reach = reach
        self._attach = attach
        self._renew = renew

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response before its body has arrived. Raise what `Egress.send` raises."""
        url = urls.parse(str(request.url))
        theirs = [(name, value) for name, value in request.headers.multi_items() if name not in headers.EGRESS_HEADERS]
        hop = Hop(request.method, url, headers.check(request.method, theirs), await request.aread() or None)
        attachments = await self._attach() if self._attach else ()
        redaction = Redaction(attachments)
        deadline = asyncio.get_running_loop().time() + self._reach.total_seconds
        try:
            async with asyncio.timeout_at(deadline):
                incoming, _ = await self._egress.open_renewed(hop, self._reach, attachments, redaction, self._renew)
        except FAILURES as error:
            failure = explain(error, url.host, request.method, self._reach)
        except ToolError as error:
            failure = error.with_traceback(None)
        else:
            read_seconds = request.extensions.get("timeout", {}).get("read") or self._reach.total_seconds
            answered = incoming.headers(redaction).items()
            return httpx2.Response(
                incoming.status,
                # Without cookies: the client would keep them in a jar.
                headers=[(name.encode(), value.encode()) for name, value in answered if name != "set-cookie"],
                stream=_Stream(incoming, redaction, None if incoming.is_events else deadline, read_seconds),
            )
        raise failure


class _Stream(httpx2.AsyncByteStream):
    """A body in whole lines, so that no secret is cut in two. An event ends with a line, so no event is delayed."""

    def __init__(
        self, incoming: StreamedResponse, redaction: Redaction, deadline: float | None, read_seconds: float
    ) -> None:
        self._incoming = incoming
        self._redaction = redaction
        self._deadline = deadline
        self._read_seconds = read_seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        async for piece in self._timed():
            end = _lines_end(piece) if self._redaction else len(piece)
            if end:
                yield await self._redaction.clean_body(b"".join([*held, piece[:end]]))
                held.clear()
            held.append(piece[end:])
        if rest := b"".join(held):
            yield await self._redaction.clean_body(rest)

    async def aclose(self) -> None:
        await self._incoming.close()

    async def _timed(self) -> AsyncIterator[bytes]:
        pieces = self._incoming.pieces()
        now = asyncio.get_running_loop().time
        while True:
            try:
                async with asyncio.timeout_at(self._deadline or now() + self._read_seconds):
                    piece = await anext(pieces, None)
            except FAILURES as error:
                failure = self._incoming.explain(error)
                break
            except ToolError as error:
                failure = error.with_traceback(None)
                break
            if piece is None:
                return
            yield piece
        raise failure


def _lines_end(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
