"""The HTTP client: send a request, follow its redirects, keep connections alive."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from weakref import WeakKeyDictionary

import httpcore2
import httpx2

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import connect, headers
from gloveport.policy.egress.addresses import is_metadata_name
from gloveport.policy.egress.decoding import ACCEPTED
from gloveport.policy.egress.inject import check_origins, inject_headers, inject_query
from gloveport.policy.egress.network_errors import FAILURES, explain
from gloveport.policy.egress.response import StreamedResponse
from gloveport.policy.egress.transport import Transport
from gloveport.policy.egress.values import TRACE_PARENT, Attach, Hop, Reach, Renew, Reply, Request
from gloveport.policy.egress.websocket import WebSocket, shake_hands
from gloveport.policy.redaction import Redaction
from gloveport.urls import Url

_FOLLOWED = frozenset({"GET", "HEAD"})
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_MAX_CONNECTIONS = 128  # as many as a run makes calls at once by default: none waits here while its own time runs
_MAX_IDLE_CONNECTIONS = 8
_IDLE_SECONDS = 4  # many servers close after five: a request must not meet that, because a write is not sent twice
LARGE_REPLY_BYTES = 4 * 1024 * 1024
_MAX_LARGE_REPLIES = 4


class Egress:
    """Sends requests. It keeps connections for the next request of the same reach to the same origin."""

    def __init__(
        self, *, resolve: connect.Resolve = connect.resolve, connect_address: connect.Connect = connect.connect
    ) -> None:
        self._resolve = resolve
        self._connect_address = connect_address
        self._contexts: dict[bool, ssl.SSLContext] = {}
        # A connection belongs to its event loop, and to the reach that allowed it.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Reach, str], httpcore2.AsyncConnectionPool]]
        self._pools = WeakKeyDictionary()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Reach, asyncio.Semaphore]] = WeakKeyDictionary()
        # At debug level this logger writes headers before redaction.
        logging.getLogger("httpcore2.http11").disabled = True

    async def send(
        self, request: Request, reach: Reach, attachments: Sequence[Attachment] = (), renew: Renew | None = None
    ) -> Reply:
        """Return the reply. Raise ToolError `egress-denied`, `source-unreachable`, `source-timeout` or `reply-too-large`.

        Redirects of GET and HEAD are followed, and each is checked like a first request. For other methods the 3xx
        response is the reply. When a service answers 401 to attachments, `renew` is asked for others, and the request is
        sent once more with them: a service that refuses a credential has done nothing.
        """
        url = urls.parse(request.url)
        check_origins(url.origin, attachments)
        redaction = Redaction(attachments)
        try:
            async with asyncio.timeout(reach.total_seconds):
                return await self._follow(request, url, reach, attachments, redaction, renew=renew)
        except FAILURES as error:
            failure = explain(error, url.host, request.method, reach)
        except ToolError as error:
            # A service can redirect to a host whose name contains the secret that it was sent.
            names = ("code", "tool", "status", "data", "retryable", "hint", "origin", "setting")
            failure = ToolError(redaction.clean_text(error.message), **{name: getattr(error, name) for name in names})
        # Raised here, the traceback has no frame that holds headers or an echo of them.
        raise failure

    def transport(
        self, reach: Reach, attach: Attach | None = None, renew: Renew | None = None
    ) -> httpx2.AsyncBaseTransport:
        """Return a transport with the same checks and ToolErrors, for libraries that bring their own client.

        It follows no redirects: the client may, and each of its requests is checked. `attach` gives the attachments of each
        request, which are added if it goes to their origins; `renew` is as in `send`. An event stream is passed on as it
        arrives, with `max_bytes` for each event, and with the client's read timeout (or `total_seconds`) for each wait
        instead of a total.
        """
        return Transport(self, reach, attach, renew)

    async def websocket(self, url: Url, reach: Reach, attachments: Sequence[Attachment], max_bytes: int) -> WebSocket:
        """Return a WebSocket with the checks and ToolErrors of `send`. It follows no redirect. The caller closes it."""
        check_origins(url.origin, attachments)
        _admit(url, reach)
        stream: httpcore2.AsyncNetworkStream | None = None
        try:
            async with asyncio.timeout(reach.total_seconds):
                backend = connect.CheckedBackend(reach.allow_private, self._resolve, self._connect_address)
                stream = await backend.connect_tcp(url.host, url.port, reach.connect_seconds)
                if url.scheme == "https":
                    context = await self._context(reach.verify_tls)
                    stream = await stream.start_tls(context, url.host, reach.connect_seconds)
                return await shake_hands(stream, url, attachments, max_bytes)
        except FAILURES as error:
            failure = explain(error, url.host, "GET", reach)
        except ToolError as error:
            failure = error.with_traceback(None)
        if stream is not None:
            await stream.aclose()
        raise failure

    async def close(self) -> None:
        """Close every connection of the running event loop."""
        loop = asyncio.get_running_loop()
        self._turns.pop(loop, None)
        for pool in self._pools.pop(loop, {}).values():
            await pool.aclose()

    async def open_renewed(
        self, hop: Hop, reach: Reach, attachments: Sequence[Attachment], redaction: Redaction, renew: Renew | None
    ) -> tuple[StreamedResponse, Sequence[Attachment]]:
        """Return the response, and the attachments that it is the response to: others than given after a 401."""
        incoming = await self.open(hop, reach, attachments)
        if incoming.status != 401 or not attachments or renew is None:
            return incoming, attachments
        try:
            fresh = await renew(attachments)
        except BaseException:
            await incoming.close()
            raise
        if not fresh:
            return incoming, attachments
        await incoming.close()
        check_origins(hop.url.origin, fresh)
        redaction.add(fresh)
        return await self.open(hop, reach, fresh), fresh

    async def open(self, hop: Hop, reach: Reach, attachments: Sequence[Attachment]) -> StreamedResponse:
        """Return the response to one request before its body has arrived, for `send` and the transport."""
        url = hop.url
        _admit(url, reach)
        # No local variable holds a revealed secret: a traceback could show the variables of this frame.
        pool = await self._pool(reach, url.scheme)
        response = await pool.handle_async_request(
            httpcore2.Request(
                hop.method,
                httpcore2.URL(
                    scheme=url.scheme.encode(),
                    host=url.host.encode(),
                    port=url.port,
                    target=inject_query(url, attachments),
                ),
                headers=_framing(hop) + inject_headers(url, hop.headers, attachments),
                content=hop.body,
                extensions={"timeout": {"connect": reach.connect_seconds}},
            )
        )
        return StreamedResponse(response, hop, reach)

    async def _follow(
        self,
        request: Request,
        url: Url,
        reach: Reach,
        attachments: Sequence[Attachment],
        redaction: Redaction,
        *,
        renew: Renew | None,
    ) -> Reply:
        carried = headers.check(request.method, request.headers)
        if (parent := TRACE_PARENT.get()) is not None and not any(name.lower() == b"traceparent" for name, _ in carried):
            carried.append((b"traceparent", parent.encode()))
        for _ in range(reach.max_redirects + 1):
            hop = Hop(request.method, url, carried, request.body)
            incoming, attachments = await self.open_renewed(hop, reach, attachments, redaction, renew)
            try:
                follows = request.follow and request.method in _FOLLOWED and request.body is None
                location = incoming.location if follows else None
                if location is None:
                    body = await redaction.clean_body(await self._body(incoming, reach))
                    named = None if request.follow else _named(url, incoming.location)
                    about = incoming.headers(redaction), body, redaction.clean_text(str(url))
                    return Reply(incoming.status, *about, named and redaction.clean_text(named))
            finally:
                await incoming.close()
            ahead = urls.join(url, location)
            if url.scheme == "https" and ahead.scheme == "http":
                raise ToolError(f"{url.host} redirects from https to http", code="egress-denied")
            if ahead.origin != url.origin:
                attachments, carried = (), headers.cross_origin(carried)
            url = ahead
        raise ToolError(f"{url.host} redirects more than {reach.max_redirects} times", code="egress-denied")

    async def _body(self, incoming: StreamedResponse, reach: Reach) -> bytes:
        """Return the whole body. Limit how many large ones a source receives at a time: 64 of 32 MiB would be 2 GiB."""
        pieces: list[bytes] = []
        size = 0
        async with AsyncExitStack() as turn:
            async for piece in incoming.pieces():
                pieces.append(piece)
                if size <= LARGE_REPLY_BYTES < (size := size + len(piece)):
                    await turn.enter_async_context(self._turns_of(reach))
            return b"".join(pieces)

    def _turns_of(self, reach: Reach) -> asyncio.Semaphore:
        turns = self._turns.setdefault(asyncio.get_running_loop(), {})
        return turns.setdefault(reach, asyncio.Semaphore(_MAX_LARGE_REPLIES))

    async def _pool(self, reach: Reach, scheme: str) -> httpcore2.AsyncConnectionPool:
        context = await self._context(reach.verify_tls) if scheme == "https" else None
        pools = self._pools.setdefault(asyncio.get_running_loop(), {})
        if (reach, scheme) not in pools:
            pools[reach, scheme] = httpcore2.AsyncConnectionPool(
                ssl_context=context,
                max_connections=_MAX_CONNECTIONS,
                max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=connect.CheckedBackend(reach.allow_private, self._resolve, self._connect_address),
            )
        return pools[reach, scheme]

    async def _context(self, verify: bool) -> ssl.SSLContext:
        """Return the settings of TLS. They are made in a thread: reading the certificates of the system takes 25 ms."""
        if verify not in self._contexts:
            context = await asyncio.to_thread(httpcore2.default_ssl_context)
            if not verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._contexts.setdefault(verify, context)
        return self._contexts[verify]


def _admit(url: Url, reach: Reach) -> None:
    """Refuse a URL whose text alone shows that it is out of reach."""
    if is_metadata_name(url.host):
        raise ToolError(f"{url.host} may not be reached: a cloud metadata service", code="egress-denied")
    if reach.origins and url.origin not in reach.origins:
        message = f"{url.origin} may not be reached: this source's requests go to {', '.join(sorted(reach.origins))}"
        hint, setting = "ask the user to add it as a source", "add it as a source of its own if you want that"
        raise ToolError(message, code="egress-denied", hint=hint, setting=setting)


def _named(url: Url, location: str | None) -> str | None:
    """Return the whole URL that a redirect names; None where there is none that could be requested."""
    try:
        return None if location is None else str(urls.join(url, location))
    except ToolError:
        return None


def _framing(hop: Hop) -> list[headers.Pair]:
    """Return the headers that only egress may set, and a User-Agent when the caller has none."""
    out = [(b"Host", hop.url.authority.encode()), (b"Accept-Encoding", ACCEPTED)]
    if hop.body is not None or hop.method not in _BODILESS:
        out.append((b"Content-Length", b"%d" % len(hop.body or b"")))
    if not any(name.lower() == b"user-agent" for name, _ in hop.headers):
        out.append((b"User-Agent", b"gloveport"))
    return out
