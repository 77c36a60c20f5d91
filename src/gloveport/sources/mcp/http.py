"""A server over streamable HTTP. Every request goes out through egress; what goes wrong with one, only its call hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp_types import JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from gloveport import bounded_json
from gloveport.errors import ToolError
from gloveport.policy.egress.response import EVENT_END
from gloveport.sources.mcp.connection import CURRENT, Call

RETRYABLE = frozenset({429, 502, 503, 504})
SHOWN_BODY = 4000
# Calls have deadlines of their own; these are for the streams on which a server only speaks when something happens.
TIMES = httpx2.Timeout(30, read=300)


class HttpConnection:
    """A URL, talked to with the requests that one session needs."""

    def __init__(self, url: str, transport: httpx2.AsyncBaseTransport, *, headers: Mapping[str, str], missing: str) -> None:
        self._url = url
        self._transport = transport
        self._headers = headers
        self._missing = missing
        self.lost = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """The streams; leaving tells the server that the session is over."""
        contained = _Contained(self._transport, self._url, self.lost, self._missing)
        # The libraries log the URL that they know; a query, where keys stand, is none of what they know.
        bare = self._url.partition("?")[0]
        async with httpx2.AsyncClient(transport=contained, headers=self._headers, trust_env=False, timeout=TIMES) as client:
            async with streamable_http_client(bare, http_client=client, max_sse_event_size=None) as streams:
                yield streams

    def last_words(self) -> str:
        """Nothing: a server over HTTP does not end with its session."""
        return ""


class _Contained(httpx2.AsyncBaseTransport):
    """Keeps a failed request from ending the session, as it would in the library: its call is told, others go on."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, url: str, lost: asyncio.Event, missing: str) -> None:
        self._inner = inner
        self._url = url
        self._lost = lost
        self._missing = missing

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response; for a request that failed, one that the library takes for the server's refusal."""
        call = CURRENT.get() or Call("")
        call.problem = None
        try:
            response = await self._inner.handle_async_request(self._whole(request))
            if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                response.stream = _News(response.stream) if request.method == "GET" else _Events(response.stream, call)
                return response
            async with aclosing(response):
                body = await response.aread()
            _check(body)
        except ToolError as error:
            call.problem = error
            return httpx2.Response(502 if request.method == "POST" else 405, request=request)
        self._judge(request, response, body, call)
        return httpx2.Response(response.status_code, headers=_plain(response.headers), content=body, request=request)

    def _whole(self, request: httpx2.Request) -> httpx2.Request:
        about = {"headers": request.headers, "extensions": request.extensions}
        return httpx2.Request(request.method, self._url, stream=request.stream, **about)

    def _judge(self, request: httpx2.Request, response: httpx2.Response, body: bytes, call: Call) -> None:
        status = response.status_code
        if status == 404 and "mcp-session-id" in request.headers:
            # The server has restarted or tired of us. It knew no session, so it has done nothing.
            call.forgotten = True
            call.problem = ToolError("the server has forgotten the session", code="source-unreachable", retryable=True)
            self._lost.set()
        elif status >= 400 and not _is_rpc_error(body):
            call.problem = self._refusal(status, body, request.url.host)

    def _refusal(self, status: int, body: bytes, host: str) -> ToolError:
        if status == 401 and self._missing:
            message = f"{host} wants a credential and none was given"
            return ToolError(message, code="credential-missing", status=status, hint=f"set {self._missing}")
        message = f"{host} answered with status {status}"
        return ToolError(message, code="http-error", status=status, data=_shown(body), retryable=status in RETRYABLE)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


class _Events(httpx2.AsyncByteStream):
    """A stream of events, whose failure, or whose end before the answer came, is told to its call."""

    def __init__(self, inner: Any, call: Call) -> None:
        self._inner = inner
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for events in _whole(self._inner):
                yield events
        except ToolError as error:
            self._call.problem = error
            raise httpx2.ReadError("the stream failed") from None
        message = "the connection closed before the answer came; whether the call was made is not known"
        self._call.problem = ToolError(message, code="source-unreachable")

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()


class _News(httpx2.AsyncByteStream):
    """The stream on which a server speaks unasked. It only ever ends: after two failures the library would give it up."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(ToolError):
            async for events in _whole(self._inner):
                yield events

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()


async def _whole(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The chunks with no event cut in two, none of which is more JSON than this process will build."""
    held, tail = [], b""
    async for chunk in chunks:
        ends = list(EVENT_END.finditer(tail + chunk))
        if not ends:
            held.append(chunk)
            tail = (tail + chunk)[-3:]
            continue
        end = ends[-1].end() - len(tail)
        events = b"".join([*held, chunk[:end]])
        _check(events)
        yield events
        held, tail = [chunk[end:]], chunk[end:][-3:]
    rest = b"".join(held)
    _check(rest)
    if rest:
        yield rest


def _check(data: bytes) -> None:
    try:
        bounded_json.check(data)
    except bounded_json.JsonLimitError as problem:
        raise ToolError(f"the reply is too much JSON: it {problem}", code="reply-too-large", hint="ask for less") from None


def _plain(headers: httpx2.Headers) -> list[tuple[bytes, bytes]]:
    """The headers of a body that has been read: whole and decompressed. As bytes: what stands for a secret is not ASCII."""
    left_out = {b"content-encoding", b"content-length", b"transfer-encoding"}
    return [(name, value) for name, value in headers.raw if name.lower() not in left_out]


def _is_rpc_error(body: bytes) -> bool:
    try:
        return isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError)
    except ValidationError:
        return False


def _shown(body: bytes) -> Any:
    try:
        if len(body) <= SHOWN_BODY:
            return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    return body[:SHOWN_BODY].decode("utf-8", "replace") or None
