"""A server over streamable HTTP. Every request goes out through egress, and a failed request fails its own call alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp_types import JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from gloveport.errors import ToolError
from gloveport.large_values import LARGE_BYTES
from gloveport.policy.egress.response import EVENT_END
from gloveport.policy.oauth.discovery import challenged_scopes
from gloveport.sources.mcp.connection import CURRENT_CALL, ActiveCall
from gloveport.sources.mcp.messages import KeptResults, MessageLimitError

RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
INSUFFICIENT_SCOPE = 'error="insufficient_scope"'
MAX_SHOWN_BODY_BYTES = 4000
MAX_EVENT_LINES = 10_000
# Calls have deadlines of their own; these are for streams on which a server writes only when something happens.
TIMEOUTS = httpx2.Timeout(30, read=300)

WantedCredential = Callable[[Sequence[str]], Awaitable[str]]
"""Returns what a person must do so that the server gets a credential, or one with more scopes."""


class HttpConnection:
    """The HTTP requests of one session with the server at a URL."""

    def __init__(
        self,
        url: str,
        transport: httpx2.AsyncBaseTransport,
        *,
        headers: Mapping[str, str],
        wanted_credential: WantedCredential,
    ) -> None:
        self._url = url
        self._transport = transport
        self._headers = headers
        self._wanted_credential = wanted_credential
        self._kept = KeptResults()
        self.claim = self._kept.claim
        self.lost = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Open the streams; on leaving, tell the server that the session is over."""
        contained = _ContainedTransport(self._transport, self._url, self.lost, self._wanted_credential, self._kept)
        # The libraries log the URL that they are given, so it has no query: keys may stand there.
        bare = self._url.partition("?")[0]
        async with httpx2.AsyncClient(
            transport=contained, headers=self._headers, trust_env=False, timeout=TIMEOUTS
        ) as client:
            async with streamable_http_client(bare, http_client=client, max_sse_event_size=None) as streams:
                yield streams

    def exit_report(self) -> str:
        """Return nothing: a server over HTTP does not end with its session."""
        return ""


class _ContainedTransport(httpx2.AsyncBaseTransport):
    """Keeps a failed request from ending the session, as it would in the library: only its own call fails."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        url: str,
        lost: asyncio.Event,
        wanted_credential: WantedCredential,
        kept: KeptResults,
    ) -> None:
        self._inner = inner
        self._url = url
        self._lost = lost
        self._wanted_credential = wanted_credential
        self._kept = kept

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response; for a request that failed, one that the library takes for a refusal by the server."""
        call = CURRENT_CALL.get() or ActiveCall("")
        call.problem = None
        try:
            response = await self._inner.handle_async_request(self._with_query(request))
            if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                stream: Any = response.stream
                events = _whole_events(stream, self._kept)
                response.stream = (
                    _NotificationStream(events, stream.aclose)
                    if request.method == "GET"
                    else _ReplyStream(events, stream.aclose, call)
                )
                return response
            async with aclosing(response):
                body = await _shortened(await response.aread(), self._kept)
        except ToolError as error:
            call.problem = error
            return httpx2.Response(502 if request.method == "POST" else 405, request=request)
        await self._note_problem(request, response, body, call)
        return httpx2.Response(
            response.status_code, headers=_decoded_headers(response.headers), content=body, request=request
        )

    def _with_query(self, request: httpx2.Request) -> httpx2.Request:
        about = {"headers": request.headers, "extensions": request.extensions}
        return httpx2.Request(request.method, self._url, stream=request.stream, **about)

    async def _note_problem(
        self, request: httpx2.Request, response: httpx2.Response, body: bytes, call: ActiveCall
    ) -> None:
        status = response.status_code
        if status == 404 and "mcp-session-id" in request.headers:
            # The server has restarted, or ended the session. It knew no session, so it has done nothing.
            call.session_unknown = True
            call.problem = ToolError(
                "the server does not know the session any more", code="source-unreachable", retryable=True
            )
            self._lost.set()
        elif status >= 400 and not _is_rpc_error(body):
            call.problem = await self._status_error(response, body, request.url.host)

    async def _status_error(self, response: httpx2.Response, body: bytes, host: str) -> ToolError:
        status, challenge = response.status_code, response.headers.get("www-authenticate", "")
        if status == 401:
            setting = await self._wanted_credential(())
            return ToolError(f"{host} wants a credential", code="auth-required", status=status, setting=setting)
        if status == 403 and INSUFFICIENT_SCOPE in challenge and (scopes := challenged_scopes(challenge)):
            setting = await self._wanted_credential(scopes)
            message = f"{host} wants a sign-in with the scope {' '.join(scopes)}"
            return ToolError(message, code="auth-required", status=status, setting=setting)
        message = f"{host} answered with status {status}"
        about = {"status": status, "data": _excerpt(body), "retryable": status in RETRYABLE_STATUSES}
        return ToolError(message, code="http-error", origin="tool", **about)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _ReplyStream(httpx2.AsyncByteStream):
    """The events in reply to one call. When the stream fails or ends before the answer, its call gets the problem."""

    def __init__(self, events: AsyncIterator[bytes], aclose: Callable[[], Awaitable[None]], call: ActiveCall) -> None:
        self._events = events
        self._aclose = aclose
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._events:
                yield event
        except ToolError as error:
            self._call.problem = error
            raise httpx2.ReadError("the stream failed") from None
        message = "the connection closed before the answer came; whether the call was made is not known"
        self._call.problem = ToolError(message, code="source-unreachable")

    async def aclose(self) -> None:
        """Close the stream."""
        await self._aclose()


class _NotificationStream(httpx2.AsyncByteStream):
    """The stream for a server's own notifications. It ends and never fails: the library gives it up after two failures."""

    def __init__(self, events: AsyncIterator[bytes], aclose: Callable[[], Awaitable[None]]) -> None:
        self._events = events
        self._aclose = aclose

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(ToolError):
            async for event in self._events:
                yield event

    async def aclose(self) -> None:
        """Close the stream."""
        await self._aclose()


async def _whole_events(chunks: Any, kept: KeptResults) -> AsyncIterator[bytes]:
    """Yield the bytes in chunks that cut no event in two, without large events; raise ToolError for too much JSON."""
    held, tail = [], b""
    async for chunk in chunks:
        ends = list(EVENT_END.finditer(tail + chunk))
        if not ends:
            held.append(chunk)
            tail = (tail + chunk)[-3:]
            continue
        end = ends[0].end() - len(tail)
        yield await _small_event(b"".join([*held, chunk[:end]]), kept)
        last = ends[-1].end() - len(tail)
        if last > end:
            for event in _split(chunk[end:last]):
                yield await _small_event(event, kept)
        held, tail = [chunk[last:]], chunk[last:][-3:]
    if rest := b"".join(held):
        yield await _small_event(rest, kept)


def _split(events: bytes) -> Iterator[bytes]:
    """Yield the events: those that are large one by one, the others together."""
    if len(events) <= LARGE_BYTES:
        yield events
        return
    start = 0
    for found in EVENT_END.finditer(events):
        yield events[start : found.end()]
        start = found.end()


async def _small_event(event: bytes, kept: KeptResults) -> bytes:
    """Return the event, with a reference to its result in place of a large message."""
    if len(event) <= LARGE_BYTES:
        return event
    if event.count(b"\n") + event.count(b"\r") > MAX_EVENT_LINES:
        raise ToolError(f"an event of the reply has more than {MAX_EVENT_LINES:,} lines", code="reply-too-large")
    lines = event.splitlines()
    data = [line.removeprefix(b"data:").removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    others = [line for line in lines if line and not line.startswith(b"data:")]
    message = await _shortened(b"\n".join(data), kept)
    return b"\n".join([*others, b"data: " + message.replace(b"\n", b"\ndata: "), b"", b""])


async def _shortened(data: bytes, kept: KeptResults) -> bytes:
    """Return a message that the library may decode; the beginning of what is no JSON."""
    try:
        return await kept.shortened(data)
    except MessageLimitError as problem:
        raise ToolError(f"the reply {problem}", code="reply-too-large", hint="ask for less") from None
    except ValueError:
        return data[:LARGE_BYTES]


def _decoded_headers(headers: httpx2.Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers for a body that was read whole and decompressed; as bytes, because redactions are not ASCII."""
    left_out = {b"content-encoding", b"content-length", b"transfer-encoding"}
    return [(name, value) for name, value in headers.raw if name.lower() not in left_out]


def _is_rpc_error(body: bytes) -> bool:
    try:
        return isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError)
    except ValidationError:
        return False


def _excerpt(body: bytes) -> Any:
    try:
        if len(body) <= MAX_SHOWN_BODY_BYTES:
            return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    return body[:MAX_SHOWN_BODY_BYTES].decode("utf-8", "replace") or None
