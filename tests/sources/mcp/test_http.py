"""A server over HTTP: reached through egress alone, with a token bound to its origin, and what fails is told to its call."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.sources.mcp.http import _whole_events
from gloveport.sources.mcp.messages import KeptResults
from tests.sources.mcp.servers.library import Legacy, build
from tests.sources.mcp.support import WAYS, call, library, opened, served

TOKEN = "t0ken-canary-1234"
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Gate:
    """An ASGI application that answers for the one behind it, as a test says."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.status: int | None = None
        self.next: list[int] = []
        self.challenge = b""
        self.body = b"the gate is shut"
        self.headers: list[dict[bytes, bytes]] = []
        self.type = b"text/plain"

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] == "http":
            self.headers.append(dict(scope["headers"]))
        if scope["type"] == "http" and (self.next or self.status is not None):
            status = self.next.pop(0) if self.next else self.status
            headers = [(b"content-type", self.type), (b"www-authenticate", self.challenge)]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})
        else:
            await self._app(scope, receive, send)


def at(url: str, **options: Any) -> SourceConfig:
    return SourceConfig("it", "mcp", url, allow_private=True, **options)


@pytest.mark.integration
async def test_loopback_is_not_reached_unless_it_is_allowed() -> None:
    async with served(build().streamable_http_app()) as url:
        with pytest.raises(SourceError) as caught:
            async with opened(replace(at(url), allow_private=False)):
                pass
    assert caught.value.code == "egress-denied"


@pytest.mark.integration
async def test_a_configured_credential_that_is_never_sent_is_named_with_the_slot_there_is() -> None:
    async with served(build().streamable_http_app()) as url:
        async with opened(at(url, credentials={"bearer": "env:IT"})) as source:
            (warning,) = source.source_info().warnings
    assert "`bearer`, so this credential is never sent; its slots are `token`" in warning


@pytest.mark.integration
async def test_a_server_that_is_down_is_reported() -> None:
    async with served(build().streamable_http_app()) as url:
        pass
    with pytest.raises(SourceError, match=r"127\.0\.0\.1 can't be reached") as caught:
        async with opened(at(url)):
            pass
    assert caught.value.code == "source-unreachable"


@pytest.mark.parametrize("url", ["ftp://host/mcp", "https://", "https://user:pass@host/mcp", "http://[::1", "nonsense"])
async def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(SourceError, match="no usable URL"):
        async with opened(at(url)):
            pass


@pytest.mark.integration
async def test_the_token_and_the_fixed_headers_are_sent() -> None:
    gate = Gate(build().streamable_http_app())
    config = {"credentials": {"token": "env:MY_TOKEN"}, "headers": {"X-Team": "blue"}}
    async with served(gate) as url, opened(at(url, **config), {"MY_TOKEN": TOKEN}) as source:
        await call(source, "add", a=1, b=2)
        assert {headers[b"authorization"] for headers in gate.headers} == {f"Bearer {TOKEN}".encode()}
        assert {headers[b"x-team"] for headers in gate.headers} == {b"blue"}
        assert TOKEN not in await call(source, "say", text=f"an echo of {TOKEN}")


@pytest.mark.integration
async def test_each_call_sends_the_token_of_that_moment() -> None:
    gate = Gate(build().streamable_http_app())
    environment = {"MY_TOKEN": TOKEN}
    async with served(gate) as url, opened(at(url, credentials={"token": "env:MY_TOKEN"}), environment) as source:
        environment["MY_TOKEN"] = "canary-of-another-day"
        await call(source, "add", a=1, b=2)
        assert gate.headers[-1][b"authorization"] == b"Bearer canary-of-another-day"


@pytest.mark.integration
async def test_a_missing_or_refused_token_is_named() -> None:
    gate = Gate(None)
    gate.status = 401
    async with served(gate) as url:
        for given, setting in (
            ({}, "run `gloveport auth login it`, or set GLOVEPORT_IT_TOKEN"),
            ({"GLOVEPORT_IT_TOKEN": "wrong"}, "give it another credential: set GLOVEPORT_IT_TOKEN"),
        ):
            with pytest.raises(SourceError) as caught:
                async with opened(at(url), given):
                    pass
            assert (caught.value.code, caught.value.hint) == ("auth-required", setting)


@pytest.mark.integration
async def test_a_server_that_refuses_the_newest_handshake_and_does_not_know_the_older_one_wants_a_credential() -> None:
    gate = Gate(None)
    gate.next = [401, 400]
    async with served(gate) as url:
        with pytest.raises(SourceError) as caught:
            async with opened(at(url)):
                pass
    assert (caught.value.code, gate.next) == ("auth-required", [])


@pytest.mark.integration
async def test_a_token_with_too_few_scopes_is_named_with_the_sign_in_that_asks_for_more() -> None:
    gate = Gate(build().streamable_http_app())
    async with served(gate) as url, opened(at(url)) as source:
        gate.status, gate.challenge = 403, b'Bearer error="insufficient_scope", scope="files:write $(id) --yes"'
        with pytest.raises(ToolError) as caught:
            await call(source, "add", a=1, b=2)
        command = "run `gloveport auth login it --more-scope files:write`"
        assert (caught.value.code, caught.value.setting) == ("auth-required", command)
        gate.challenge = b'Bearer error="insufficient_scope"'
        with pytest.raises(ToolError) as caught:
            await call(source, "add", a=1, b=2)
        assert caught.value.code == "http-error"


@pytest.mark.integration
@pytest.mark.parametrize(("status", "retryable"), [(403, False), (500, False), (503, True), (429, True)])
@pytest.mark.parametrize("legacy", [False, True])
async def test_an_error_status_fails_its_call_alone(status: int, retryable: bool, legacy: bool) -> None:
    app = build().streamable_http_app()
    gate = Gate(Legacy(app) if legacy else app)
    async with served(gate) as url, opened(at(url)) as source:
        session = source._session
        gate.status = status
        with pytest.raises(ToolError) as caught:
            await call(source, "add", a=1, b=2)
        assert (caught.value.code, caught.value.status, caught.value.retryable) == ("http-error", status, retryable)
        assert caught.value.data == "the gate is shut"
        gate.status = None
        assert await call(source, "add", a=1, b=2) == {"result": 3}
        assert source._session is session


@pytest.mark.integration
@pytest.mark.parametrize("type", [b"application/json", b"text/html", b"text/event-stream"])
async def test_an_answer_that_is_no_mcp_fails_its_call_alone(type: bytes) -> None:
    gate = Gate(build().streamable_http_app())
    async with served(gate) as url, opened(at(url)) as source:
        gate.status, gate.type, gate.body = 200, type, b"<h1>It works!</h1>"
        with pytest.raises(ToolError):
            await call(source, "add", a=1, b=2)
        gate.status = None
        assert await call(source, "add", a=1, b=2) == {"result": 3}


@pytest.mark.integration
async def test_a_server_that_has_forgotten_the_session_is_given_a_new_one_and_the_call_is_made() -> None:
    class Restarted:
        """Two servers, one after the other, at one address."""

        def __init__(self) -> None:
            self.app: Any = Legacy(build().streamable_http_app())

        async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
            await self.app(scope, receive, send)

    place = Restarted()
    second = build().streamable_http_app()
    async with served(place) as url, served(Legacy(second)), opened(at(url)) as source:
        await call(source, "note", text="for the first")
        place.app = Legacy(second)
        assert await call(source, "note", text="for the second") == "1 notes"
        assert source.state == "live"


@pytest.mark.integration
@pytest.mark.parametrize(("way", "version"), [way for way in WAYS if way[0] == "http"])
async def test_a_reply_that_is_too_large_fails_its_call_alone(way: str, version: str) -> None:
    async with library(way, version) as found:
        url = found._config.location
        assert isinstance(url, str)
        async with opened(at(url, max_response_bytes=300_000)) as source:
            with pytest.raises(ToolError) as caught:
                await call(source, "huge", size=1_000_000)
            assert caught.value.code == "reply-too-large"
            assert await call(source, "huge", size=1000) == "x" * 1000


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_reply_of_more_lists_than_anyone_means_is_not_built(kind: str) -> None:
    gate = Gate(Legacy(build().streamable_http_app()))
    lists = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"lists":[' + b"[]," * 600_000 + b"[]]}}}"
    async with served(gate) as url, opened(at(url)) as source:
        gate.status, gate.type = 200, kind.encode()
        gate.body = lists if kind == "application/json" else b"event: message\ndata: " + lists + b"\n\n"
        with pytest.raises(ToolError, match="too much JSON: it holds more than 100,000 lists") as caught:
            await call(source, "note", text="x")
        assert caught.value.code == "reply-too-large"
        gate.status = None
        assert await call(source, "note", text="y") == "1 notes"


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\r\n\n", "\n\r\n"])
async def test_an_event_does_not_wait_for_the_next_wherever_it_is_cut(end: str, size: int) -> None:
    event = f": still here{end}event: message{end[: len(end) // 2]}data: 1{end}".encode()
    given = b""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            for start in range(0, len(event), size):
                yield event[start : start + size]
            assert given.endswith(event)
        yield b"data: cut off"

    async for events in _whole_events(pieces(), KeptResults()):
        given += events
    assert given == event * 3 + b"data: cut off"


@pytest.mark.integration
async def test_a_connection_that_breaks_off_fails_the_call_and_it_is_not_made_again() -> None:
    calls = 0

    class Breaking:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
            nonlocal calls
            if scope["type"] == "http" and dict(scope["headers"]).get(b"mcp-method") == b"tools/call":
                calls += 1
                kind = [(b"content-type", b"text/event-stream")]
                await send({"type": "http.response.start", "status": 200, "headers": kind})
                await send({"type": "http.response.body", "body": b": wait\n\n", "more_body": True})
                raise asyncio.CancelledError
            await self._app(scope, receive, send)

    async with served(Breaking(build().streamable_http_app())) as url, opened(at(url)) as source:
        with pytest.raises(ToolError) as caught:
            await call(source, "add", a=1, b=2)
        assert caught.value.code == "source-unreachable"
        assert calls == 1


@pytest.mark.integration
async def test_a_redirect_to_another_origin_is_not_followed() -> None:
    async def elsewhere(scope: Any, receive: Any, send: Send) -> None:
        location = [(b"location", b"http://127.0.0.1:9/mcp")]
        await send({"type": "http.response.start", "status": 307, "headers": location})
        await send({"type": "http.response.body", "body": b""})

    async with served(elsewhere) as url:
        with pytest.raises(SourceError, match=r"Redirect to http://127\.0\.0\.1:9/mcp not followed"):
            async with opened(at(url)):
                pass
