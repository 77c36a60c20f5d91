"""What is written on the wire: the caller's request, the secrets that belong to it, and nothing else."""

import asyncio
import logging
import re
import time
import traceback
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Egress, Reach, Request
from tests.policy.servers import LOCAL, Server, ok, send, serving

CANARY = "canary/7Yq+2Lw9 Zk4T"


def attachment(place: str, origin: str, *, name: str = "X-Key", text: str = CANARY, template: str = "{}") -> Attachment:
    return Attachment(place, name, Secret(text, "shop.key"), frozenset({origin}), template)  # type: ignore[arg-type]


def head(server: Server) -> dict[str, str]:
    """The headers of the last request, by lower-case name; a name that comes twice fails."""
    lines = server.requests[-1].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines[1:]]
    names = [name.lower() for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return {name.lower(): value for name, value in pairs}


@pytest.mark.integration
async def test_a_request_goes_out_as_it_was_asked_for() -> None:
    async with serving(ok(b"done", "X-One: 1", "X-One: 2", status="201 Created")) as server:
        request = Request(
            "POST", f"{server.origin}/a/b?c=d#e", (("Content-Type", "text/plain"), ("X-Ü".replace("Ü", "U"), "ü")), b"body"
        )
        reply = await send(request, LOCAL)
    assert (reply.status, reply.body, reply.url) == (201, b"done", f"{server.origin}/a/b?c=d")
    assert reply.headers["x-one"] == "1, 2"
    assert server.requests[0].startswith(b"POST /a/b?c=d HTTP/1.1\r\n")
    assert server.requests[0].endswith(b"\r\n\r\nbody")
    assert head(server) == {
        "host": f"127.0.0.1:{server.port}",
        "accept-encoding": "gzip, deflate",
        "content-length": "4",
        "user-agent": "gloveport",
        "content-type": "text/plain",
        "x-u": "ü",
    }


@pytest.mark.integration
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "POST", "PUT", "PATCH", "QUERY"])
async def test_a_request_without_a_body_frames_itself_rightly(method: str) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + (b"" if method == "HEAD" else b"hello")
    async with serving(answer) as server:
        egress = Egress()
        for _ in range(2):
            reply = await egress.send(Request(method, server.origin), LOCAL)
        await egress.close()
    assert reply.body == (b"" if method == "HEAD" else b"hello")
    assert ("content-length" in head(server)) == (method in {"POST", "PUT", "PATCH", "QUERY"})
    assert server.connections == 1


@pytest.mark.integration
async def test_connections_are_reused_and_idle_ones_limited() -> None:
    async with serving(ok()) as server:
        egress = Egress()
        for _ in range(5):
            await egress.send(Request("GET", server.origin), LOCAL)
        assert server.connections == 1
        await asyncio.gather(*(egress.send(Request("GET", server.origin), LOCAL) for _ in range(30)))
        pool = await egress._pool(LOCAL, "http")
        assert 1 <= len(pool.connections) <= 8
        await egress.close()


@pytest.mark.integration
def test_event_loops_share_no_connection() -> None:
    egress = Egress()

    async def once() -> bytes:
        async with serving(ok()) as server:
            try:
                return (await egress.send(Request("GET", server.origin), LOCAL)).body
            finally:
                await egress.close()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert [first.run(once()), second.run(once()), first.run(once())] == [b"hello"] * 3


@pytest.mark.parametrize(
    "method", ["", "get", "G T", "GET\r\n", "GET /x HTTP/1.1\r\nX:", "CONNECT", "TRACE", "GÉT", "A" * 33]
)
async def test_a_method_that_is_no_plain_word_is_refused(method: str) -> None:
    with pytest.raises(ToolError, match="is not allowed"):
        await send(Request(method, "http://127.0.0.1:1/"), LOCAL)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "HOST",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "TE",
        "Trailer",
        "Expect",
        "Keep-Alive",
        "Proxy-Authorization",
    ],
)
async def test_headers_that_frame_or_route_a_message_are_not_for_callers(name: str) -> None:
    with pytest.raises(ToolError, match="can't be set"):
        await send(Request("GET", "http://127.0.0.1:1/", ((name, "x"),)), LOCAL)


@pytest.mark.parametrize("name", ["", "X Y", "X:", "X\r\nY", "X\x00", "Ü", "X\n", " X", "Host ", "(x)"])
async def test_a_header_name_that_is_no_token_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match="is not a header name"):
        await send(Request("GET", "http://127.0.0.1:1/", ((name, "x"),)), LOCAL)


@pytest.mark.parametrize(
    "value", ["a\r\nB: c", "a\nb", "a\rb", "\x00", "a\x0bb", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ud800"]
)
async def test_a_header_value_with_control_characters_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ToolError, match="control characters") as refusal:
        await send(Request("GET", "http://127.0.0.1:1/", (("X-A", "visible" + value),)), LOCAL)
    assert "visible" not in refusal.value.message


@pytest.mark.integration
@given(
    method=st.one_of(st.just("POST"), st.text(max_size=5)),
    path=st.one_of(st.just(""), st.text(max_size=12)),
    name=st.one_of(st.just("X-A"), st.text(max_size=12)),
    value=st.one_of(st.just("v"), st.text(max_size=12)),
    body=st.binary(max_size=20),
)
@settings(max_examples=300, deadline=None)
async def test_whatever_is_asked_for_exactly_one_request_is_written(
    method: str, path: str, name: str, value: str, body: bytes
) -> None:
    async with serving(ok(b"", "Connection: close")) as server:
        try:
            await send(Request(method, f"{server.origin}/{path}", ((name, value),), body), LOCAL)
        except ToolError as error:
            assert error.code == "egress-denied"
            assert server.requests == []
            return
    (raw,) = server.requests
    top, _, rest = raw.partition(b"\r\n\r\n")
    lines = top.split(b"\r\n")
    assert re.fullmatch(rb"[A-Z]+ /[!-~]* HTTP/1\.1", lines[0])
    assert [line.partition(b":")[0].lower() for line in lines[1:]] == [
        *(b"host", b"accept-encoding", b"content-length"),
        *((b"user-agent",) if name.lower() != "user-agent" else ()),
        *((name.lower().encode(),) if name.lower() != "accept-encoding" else ()),
    ]
    assert not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", b"".join(lines))
    assert rest == body


@pytest.mark.integration
@pytest.mark.parametrize(
    ("place", "template", "name", "sent"),
    [
        ("header", "{}", "x-key", CANARY),
        ("header", "Bearer {}", "authorization", f"Bearer {CANARY}"),
        ("basic", "{}", "authorization", "Basic " + b64encode(CANARY.encode()).decode()),
        ("cookie", "{}", "cookie", f"session={CANARY}"),
    ],
)
async def test_a_secret_is_attached_in_its_place(place: str, template: str, name: str, sent: str) -> None:
    async with serving(ok()) as server:
        attached = attachment(place, server.origin, name="session" if place == "cookie" else name, template=template)
        mine = (("X-KEY", "mine"), ("AUTHORIZATION", "mine")) if place == "header" else (("Cookie", "a=b"),)
        await send(Request("GET", server.origin, mine), LOCAL, [attached])
    expected = f"a=b; {sent}" if place == "cookie" else sent
    assert head(server)[name] == expected


@pytest.mark.integration
async def test_a_secret_in_the_query_is_encoded_and_not_in_the_replys_url() -> None:
    async with serving(ok()) as server:
        egress = Egress()
        for query in ("", "?a=b"):
            reply = await egress.send(
                Request("GET", f"{server.origin}/x{query}"), LOCAL, [attachment("query", server.origin, name="api key")]
            )
            assert reply.url == f"{server.origin}/x{query}"
        await egress.close()
    assert server.requests[0].startswith(b"GET /x?api%20key=canary%2F7Yq%2B2Lw9%20Zk4T HTTP")
    assert server.requests[1].startswith(b"GET /x?a=b&api%20key=canary%2F7Yq%2B2Lw9%20Zk4T HTTP")


@pytest.mark.integration
async def test_a_secret_for_another_origin_stops_the_request() -> None:
    async with serving(ok()) as server:
        for origin in ("https://api.example", f"https://127.0.0.1:{server.port}", "http://127.0.0.1"):
            with pytest.raises(ToolError) as refusal:
                await send(Request("GET", server.origin), LOCAL, [attachment("header", origin)])
            assert refusal.value.code == "egress-denied"
            assert refusal.value.message == f"the credential shop.key is for {origin}, not for {server.origin}"
    assert server.requests == []


@pytest.mark.parametrize("place", ["header", "cookie"])
async def test_a_secret_that_would_be_two_headers_is_refused_and_not_shown(place: str) -> None:
    for text in (f"{CANARY}\r\nX: y", f"{CANARY}\n"):
        with pytest.raises(ToolError) as refusal:
            await send(Request("GET", "http://127.0.0.1:1"), LOCAL, [attachment(place, "http://127.0.0.1:1", text=text)])
        assert "canary" not in str(refusal.value.message)
    with pytest.raises(ToolError, match="semicolon"):
        await send(Request("GET", "http://127.0.0.1:1"), LOCAL, [attachment("cookie", "http://127.0.0.1:1", text="a; b=c")])


@pytest.mark.integration
async def test_an_origin_outside_the_reach_is_refused() -> None:
    async with serving(ok()) as server:
        reach = Reach(frozenset({"https://api.example"}), allow_private=True)
        with pytest.raises(ToolError, match=r"requests go to https://api\.example") as refusal:
            await send(Request("GET", server.origin), reach)
    assert refusal.value.code == "egress-denied"
    assert server.requests == []


@pytest.mark.integration
async def test_proxies_netrc_and_cookies_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(ok(b"proxy")) as proxy, serving(ok(b"direct", "Set-Cookie: kept=1; Path=/")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.origin)
        monkeypatch.setenv("no_proxy", "")
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password from-netrc\n")
        (tmp_path / ".netrc").chmod(0o600)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        egress = Egress()
        for _ in range(2):
            assert (await egress.send(Request("GET", server.origin), LOCAL)).body == b"direct"
            assert set(head(server)) == {"host", "accept-encoding", "user-agent"}
        await egress.close()
    assert proxy.requests == []


@pytest.mark.integration
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nX: %b\r\nbad line %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nno gzip!!",
        b"HTTP/1.1 302 Found\r\nLocation: http://%b@127.0.0.1/%b\r\nContent-Length: 0\r\n\r\n",
        ok(b"x" * 2000),
        ok(b"", "Content-Encoding: %b"),
        b"hang",
    ],
)
async def test_no_failure_shows_a_secret_even_with_all_variables_of_all_frames(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    echoed = answer.replace(b"%b", CANARY.encode())
    caplog.set_level(logging.DEBUG)

    async def reply(_: bytes, writer: asyncio.StreamWriter) -> None:
        if answer == b"hang":
            await asyncio.sleep(60)
        writer.write(echoed)
        await writer.drain()
        writer.close()

    async with serving(reply) as server:
        attached = [attachment(place, server.origin) for place in ("header", "query", "cookie", "basic")]
        reach = Reach(allow_private=True, total_seconds=0.5 if answer == b"hang" else 30, max_bytes=1000)
        with pytest.raises(ToolError) as failure:
            await send(Request("GET", server.origin), reach, attached)
    ours = failure.value.with_traceback(failure.value.__traceback__.tb_next)  # type: ignore[union-attr]
    shown = "".join(traceback.TracebackException.from_exception(ours, capture_locals=True).format())
    assert "client.py" in shown
    shown += repr(failure.value) + repr(vars(failure.value)) + repr(attached) + caplog.text
    for form in (CANARY, CANARY.lower(), "7Yq", "Zk4T", b64encode(CANARY.encode()).decode().strip("=")):
        assert form not in shown


@pytest.mark.integration
@pytest.mark.parametrize(("method", "retryable"), [("GET", True), ("POST", False)])
async def test_a_reply_that_breaks_off_is_retryable_only_when_that_harms_nobody(method: str, retryable: bool) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\ncut") as server:

        async def cut(_: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut")
            writer.close()

        server.answers = cut
        with pytest.raises(ToolError, match="closed the connection") as failure:
            await send(Request(method, server.origin), LOCAL)
    assert (failure.value.code, failure.value.retryable) == ("source-unreachable", retryable)


@pytest.mark.integration
async def test_a_closed_port_and_an_unknown_host_are_unreachable() -> None:
    async with serving(ok()) as server:
        pass
    with pytest.raises(ToolError, match="connection refused") as failure:
        await send(Request("POST", server.origin), LOCAL)
    assert (failure.value.code, failure.value.retryable) == ("source-unreachable", True)
    with pytest.raises(ToolError, match=r"no-such-host\.invalid can't be found") as failure:
        await send(Request("GET", "http://no-such-host.invalid/"), LOCAL)
    assert failure.value.code == "source-unreachable"


@pytest.mark.integration
async def test_a_connection_that_the_server_closed_meanwhile_is_not_reused() -> None:
    async with serving(ok()) as server:
        egress = Egress()
        await egress.send(Request("GET", server.origin), LOCAL)
        server.writers[0].close()
        await server.writers[0].wait_closed()
        await asyncio.sleep(0)
        assert (await egress.send(Request("POST", server.origin), LOCAL)).status == 200
        await egress.close()
    assert server.connections == 2


@pytest.mark.integration
async def test_a_connection_is_given_up_before_servers_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node and uvicorn close after five idle seconds. A write that meets that fails, because it is not sent twice."""
    async with serving(ok()) as server:
        egress = Egress()
        await egress.send(Request("POST", server.origin), LOCAL)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 4.5)
        await egress.send(Request("POST", server.origin), LOCAL)
        await egress.close()
    assert server.connections == 2
