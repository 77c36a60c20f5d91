"""The guard of the HTTP server against raw requests: their host, origin, token and size.

Threats M1 (names and origins), M13 (sizes and depths) and S21 (no token, nothing read).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gloveport import Gloveport
from gloveport.surfaces.http import connections, guard
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, MAX_REQUEST_DEPTH
from tests.surfaces.agents import TOKEN, Lingering, http_client, http_server

PING = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}'


@pytest.fixture(scope="module")
async def url() -> AsyncIterator[str]:
    async with http_server(Gloveport(spare=0), names=ServerNames(hosts=frozenset({"box.example"}))) as url:
        yield url


class Reply:
    """A raw HTTP response."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}

    @property
    def code(self) -> str:
        return json.loads(self.body)["error"]["code"]


async def send(
    url: str,
    *headers: str,
    method: str = "POST",
    path: str = "/mcp",
    body: bytes = PING,
    token: str | None = TOKEN,
    host: str | None = "",
    content: str | None = "application/json",
    length: int | None = None,
) -> Reply:
    """Send a raw request and return the response; the connection ends with it."""
    place = urlsplit(url)
    lines = [f"{method} {path} HTTP/1.1", "Connection: close", "Accept: application/json, text/event-stream"]
    lines += [f"Host: {host or place.netloc}"] if host is not None else []
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Content-Type: {content}"] if content else []
    lines += [f"Content-Length: {len(body) if length is None else length}"] if method == "POST" else []
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write("\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body)
        async with asyncio.timeout(60):
            return Reply(await reader.read())
    finally:
        writer.close()


MINE = "PORT"  # stands for the port of the server
COMBINATIONS = [
    # (Host, Origin, status)
    (f"127.0.0.1:{MINE}", None, 200),
    (f"localhost:{MINE}", None, 200),
    (f"LOCALHOST:{MINE}", None, 200),
    (f"[::1]:{MINE}", None, 200),
    ("127.0.0.1", None, 200),
    ("box.example", None, 200),
    (f"127.0.0.1:{MINE}", f"http://127.0.0.1:{MINE}", 200),
    ("box.example", "https://box.example", 200),
    (f"localhost:{MINE}", f"http://127.0.0.1:{MINE}", 403),
    (f"127.0.0.1:{MINE}", "http://localhost:3000", 403),
    (f"127.0.0.1:{MINE}", "https://evil.example", 403),
    (f"127.0.0.1:{MINE}", "null", 403),
    (f"127.0.0.1:{MINE}", "", 403),
    (f"127.0.0.1:{MINE}", "file://", 403),
    (f"127.0.0.1:{MINE}", f"http://127.0.0.1:{MINE}.evil.example", 403),
    ("evil.example", None, 403),
    (f"evil.example:{MINE}", f"http://evil.example:{MINE}", 403),
    (f"127.0.0.1.evil.example:{MINE}", None, 403),
    (f"localhost.evil.example:{MINE}", None, 403),
    (f"evil.example@127.0.0.1:{MINE}", None, 403),
    (f"0.0.0.0:{MINE}", None, 403),
    ("192.168.1.5", None, 403),
    ("2130706433", None, 403),
    ("127.1", None, 403),
    ("[::ffff:8.8.8.8]", None, 403),
    ("localhost:1:2", None, 403),
]


@pytest.mark.integration
@pytest.mark.parametrize(("host", "origin", "status"), COMBINATIONS)
async def test_only_requests_to_this_server_and_from_no_foreign_page_come_in(
    url: str, host: str, origin: str | None, status: int
) -> None:
    own = str(urlsplit(url).port)
    headers = [f"Origin: {origin.replace(MINE, own)}"] if origin is not None else []
    reply = await send(url, *headers, host=host.replace(MINE, own))
    assert reply.status == status, reply.body
    assert "access-control-allow-origin" not in reply.headers
    if status == 403:
        assert reply.code == "wrong-origin"


def test_a_server_for_other_machines_accepts_its_addresses_and_given_names() -> None:
    names = ServerNames(loopback=False, hosts=frozenset({"tools.example"}))
    for host in ("192.168.1.5:8484", "[2001:db8::1]", "tools.example", "TOOLS.example:443", "localhost"):
        assert names.include(host), host
    for host in (
        "",
        "0.0.0.0",
        "[::]",
        "evil.example",
        "tools.example.evil.example",
        "192.168.1.5.nip.example",
        "a b",
        "x:",
    ):
        assert not names.include(host), host


@pytest.mark.integration
async def test_a_request_without_a_host_or_with_two_is_refused(url: str) -> None:
    assert (await send(url, host=None)).status in (400, 403)
    assert (await send(url, "Host: evil.example")).status in (400, 403)
    assert (await send(url, "Authorization: Bearer other")).status == 400
    assert (await send(url, "Origin: https://evil.example", "Origin: http://127.0.0.1")).status == 400


@pytest.mark.integration
@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Authorization: Bearer",),
        ("Authorization: Bearer wrong",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: {TOKEN}",),
        (f"X-Authorization: Bearer {TOKEN}",),
        (f"Cookie: token={TOKEN}",),
    ],
)
async def test_a_request_without_the_token_is_refused_on_loopback_too(url: str, headers: tuple[str, ...]) -> None:
    for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("GET", "/other")):
        reply = await send(url, *headers, method=method, path=path, token=None, body=PING if method == "POST" else b"")
        assert (reply.status, reply.code) == (401, "unauthorized")
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN.encode() not in reply.body


@pytest.mark.integration
async def test_a_request_without_the_token_is_refused_before_its_body_is_read(url: str) -> None:
    waiting = await send(url, token=None, body=b"", length=1_000_000)  # the body never arrives
    assert waiting.status == 401
    broken = await send(url, token=None, body=b"[" * 100_000)
    assert broken.status == 401


@pytest.mark.integration
@pytest.mark.parametrize(
    "content", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json"]
)
async def test_what_a_page_can_post_without_asking_is_refused(url: str, content: str | None) -> None:
    reply = await send(url, content=content)
    assert (reply.status, reply.code) == (415, "not-json")
    form = await send(url, content="application/x-www-form-urlencoded", body=b"code=1", token=None)
    assert form.status == 401


@pytest.mark.integration
async def test_a_preflight_is_not_granted(url: str) -> None:
    headers = ("Origin: https://evil.example", "Access-Control-Request-Method: POST")
    reply = await send(url, *headers, method="OPTIONS", token=None, body=b"")
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.integration
async def test_a_large_body_is_refused_whether_it_says_so_or_not(url: str) -> None:
    declared = await send(url, body=b"", length=MAX_REQUEST_BYTES + 1)
    assert (declared.status, declared.code) == (413, "request-too-large")
    chunk = b"x" * 65536
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for _ in range(MAX_REQUEST_BYTES // len(chunk) + 1))
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    )
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunked)
    async with asyncio.timeout(60):
        assert b"413" in await reader.readline()
    writer.close()


def nested(depth: int) -> bytes:
    inner = b"[" * (depth - 2) + b"]" * (depth - 2)
    return b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ' + inner + b"}}"


@pytest.mark.integration
async def test_a_deep_body_is_refused_before_it_is_parsed(url: str) -> None:
    assert (await send(url, body=nested(MAX_REQUEST_DEPTH))).status == 400  # no session: that is the protocol's own answer
    assert "code" not in json.loads((await send(url, body=nested(MAX_REQUEST_DEPTH))).body)
    deep = await send(url, body=nested(MAX_REQUEST_DEPTH + 1))
    assert (deep.status, deep.code) == (400, "bad-request")


@pytest.mark.integration
@pytest.mark.parametrize(
    "piece", [b"[", b"{", b'{"a":', b'"\\"', b"\\", b'"', b"]", b"[]", b",", b"9", b'\\"[', "é".encode()], ids=repr
)
async def test_bodies_made_to_be_slow_are_answered(url: str, piece: bytes) -> None:
    for start in (b"", b'"', b"["):
        body = start + piece * ((MAX_REQUEST_BYTES - 1) // len(piece))
        assert (await send(url, body=body)).status == 400


@pytest.mark.integration
async def test_health_says_little_and_needs_no_token(url: str) -> None:
    health = await send(url, method="GET", path="/healthz", token=None, body=b"")
    assert (health.status, json.loads(health.body)) == (200, {"ok": True})
    async with asyncio.timeout(60):
        while (ready := await send(url, method="GET", path="/readyz", token=None, body=b"")).status != 200:
            pass
    assert json.loads(ready.body) == {"ok": True, "sources": {"connected": 0, "broken": 0}}
    assert (await send(url, path="/nowhere")).code == "not-found"


def execute(code: str, id_: int = 1) -> tuple[tuple[str, ...], bytes]:
    """Return headers and body of a run in the revision that needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: dict[str, Any] = {"name": "execute", "arguments": {"code": code, "language": "python"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode()
    return ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute"), body


@pytest.mark.integration
async def test_runs_beyond_the_waiting_limit_are_refused_as_busy() -> None:
    tool = Lingering()
    async with http_server(Gloveport(tools=[tool.linger], spare=0), Admission(max_concurrent=1, max_waiting=1)) as url:
        headers, body = execute("await tools.linger()")
        first = asyncio.create_task(send(url, *headers, body=body))
        await tool.started.wait()
        others = [asyncio.create_task(send(url, *headers, body=body)) for _ in range(2)]
        (done,), (waiting,) = await asyncio.wait(others, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        refused = await done
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "busy", "2")
        assert (await send(url)).status == 200  # other requests are still answered
        tool.released.set()
        for reply in (await first, await waiting):
            assert json.loads(reply.body)["result"]["structuredContent"]["value"] == "released"


@pytest.mark.integration
async def test_two_hundred_clients_with_the_same_request_id_get_their_own_answers() -> None:
    async with http_server(Gloveport(spare=2)) as url:

        async def ask(number: int) -> Any:
            headers, body = execute(f"'mine is {number}'", id_=1)
            reply = await send(url, *headers, body=body)
            assert reply.status == 200, reply.body
            message = json.loads(reply.body)
            assert message["id"] == 1
            return message["result"]["structuredContent"]["value"]

        answers = await asyncio.gather(*(ask(number) for number in range(200)))
    assert answers == [f"mine is {number}" for number in range(200)]


@pytest.mark.integration
async def test_clients_of_the_earlier_revision_get_their_own_answers_too() -> None:
    async with http_server(Gloveport(spare=2)) as url:

        async def ask(number: int) -> Any:
            async with http_client(url, "legacy") as client:  # each numbers its requests from the same start
                answer = await client.call_tool("execute", {"code": f"'mine is {number}'", "language": "python"})
                return answer.structured_content["value"]

        assert await asyncio.gather(*map(ask, range(40))) == [f"mine is {number}" for number in range(40)]


@pytest.mark.integration
@pytest.mark.parametrize("said", [b"", b"POST /mcp HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he"])
async def test_a_silent_connection_is_closed(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNAUTHENTICATED_TIMEOUT_SECONDS", 0.2)
    async with http_server(Gloveport(spare=0)) as url:
        reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        writer.write(said)
        async with asyncio.timeout(4):  # before the library would close a connection that it has answered on
            assert (await reader.read()).count(b"HTTP/1.1 200") == said.count(b"\r\n\r\n")
        writer.close()


FRAMINGS = {
    "both": ("Content-Length: 5", "Transfer-Encoding: chunked"),
    "both, the other way round": ("Transfer-Encoding: chunked", "Content-Length: 5"),
    "two lengths": ("Content-Length: 5", "Content-Length: 6"),
    "two lengths in one header": ("Content-Length: 5, 6",),
    "no number": ("Content-Length: +5",),
    "two encodings": ("Transfer-Encoding: gzip, chunked",),
    "an encoding twice": ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "an unknown encoding": ("Transfer-Encoding: xchunked",),
    "a space before the colon": ("Content-Length : 5",),
    "a folded header": ("Transfer-Encoding:", " chunked", "Content-Length: 5"),
}


@pytest.mark.integration
@pytest.mark.parametrize("path", ["/mcp", "/healthz"])
@pytest.mark.parametrize("token", [(), (f"Authorization: Bearer {TOKEN}",)], ids=["stranger", "token"])
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_body_of_uncertain_length_is_refused_before_it_arrives(
    url: str, framing: str, token: tuple[str, ...], path: str
) -> None:
    place = urlsplit(url)
    head = (f"POST {path} HTTP/1.1", f"Host: {place.netloc}", "Content-Type: application/json", *token)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write("\r\n".join([*head, *FRAMINGS[framing], "", ""]).encode())
    async with asyncio.timeout(60):
        reply = Reply(await reader.read())  # the server answers and closes, though no body has come
    assert reply.status == 400 if framing != "an unknown encoding" else reply.status in (400, 501)
    writer.close()


@pytest.mark.integration
async def test_chunks_in_a_request_of_http_1_0_are_refused(url: str) -> None:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"POST /mcp HTTP/1.0\r\nHost: {place.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    async with asyncio.timeout(60):
        assert Reply(await reader.read()).status == 400
    writer.close()


ATTACKERS = 3000


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Allow as many open files as both ends of an attack need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * ATTACKERS)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.integration
@pytest.mark.parametrize("said", [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], ids=["silent", "slow"])
async def test_thousands_of_slow_connections_without_the_token_delay_nobody_who_has_it(
    said: bytes, monkeypatch: pytest.MonkeyPatch, descriptors: None
) -> None:
    for timeout in ("UNAUTHENTICATED_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS"):
        monkeypatch.setattr(connections, timeout, 3600)  # nobody is helped by waiting
    monkeypatch.setattr(guard, "BODY_TIMEOUT_SECONDS", 3600)
    async with http_server(Gloveport(spare=0)) as url, contextlib.AsyncExitStack() as stack:
        place = urlsplit(url)
        assert (await send(url)).status == 200
        held, writer = await asyncio.open_connection(place.hostname, place.port)
        stack.callback(writer.close)
        lines = [
            "POST /mcp HTTP/1.1", f"Host: {place.netloc}", f"Authorization: Bearer {TOKEN}", "Expect: 100-continue",
            "Content-Type: application/json", "Accept: application/json, text/event-stream", f"Content-Length: {len(PING)}",
        ]  # fmt: skip
        writer.write("\r\n".join([*lines, "", ""]).encode())
        assert b" 100 " in await held.readuntil(b"\r\n\r\n")  # the token was right, and the body is awaited
        for _ in range(ATTACKERS):
            slow = stack.enter_context(socket.create_connection((place.hostname, place.port)))
            slow.send(said)
        assert (await send(url)).status == 200
        assert len(open_connections(place.port)) <= connections.MAX_UNAUTHENTICATED + 10
        writer.write(PING)  # the connection on which the token was shown was kept
        assert b" 200 " in await held.readuntil(b"\r\n\r\n")


def open_connections(port: int | None) -> list[str]:
    """Return the established connections of the server's side, as the kernel lists them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[2] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]


def test_the_address_with_most_strangers_loses_its_oldest() -> None:
    strangers, closed = connections.UnauthenticatedConnections(), []

    class Stranger:
        def __init__(self, name: str) -> None:
            self.transport = self
            self.abort = lambda: closed.append(name)

    strangers.add(Stranger("alone"), "192.0.2.1")  # pyright: ignore[reportArgumentType]
    for number in range(connections.MAX_UNAUTHENTICATED + 1):
        strangers.add(Stranger(f"one of many {number}"), "192.0.2.2")  # pyright: ignore[reportArgumentType]
    assert closed == ["one of many 0", "one of many 1"]


@pytest.mark.integration
async def test_a_slow_answer_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_TIMEOUT_SECONDS", 0.05)
    tool = Lingering()
    async with http_server(Gloveport(tools=[tool.linger])) as url, http_client(url, "2026-07-28") as client:
        calling = asyncio.create_task(client.call_tool("execute", {"code": "await tools.linger()"}))
        await tool.started.wait()
        for _ in range(10):
            await asyncio.sleep(connections.IDLE_TIMEOUT_SECONDS)
        tool.released.set()
        assert not (await calling).is_error
