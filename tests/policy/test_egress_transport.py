"""A library that brings its own client gets the same judgement, and event streams as they come."""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Egress, Reach
from tests.policy.servers import LOCAL, Server, ok, redirect, serving

CANARY = "canary-7Yq2Lw9Zk4T"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@asynccontextmanager
async def client(
    reach: Reach = LOCAL, attachments: Sequence[Attachment] = (), **options: object
) -> AsyncIterator[httpx2.AsyncClient]:
    egress = Egress()

    async def attach() -> Sequence[Attachment]:
        return attachments

    async with httpx2.AsyncClient(transport=egress.transport(reach, attach), **options) as opened:  # type: ignore[arg-type]
        try:
            yield opened
        finally:
            await egress.close()


def key(server: Server) -> list[Attachment]:
    return [
        Attachment("header", "Authorization", Secret(CANARY, "shop.key"), frozenset({server.origin}), "Bearer {}"),
        Attachment("query", "key", Secret(CANARY, "shop.key"), frozenset({server.origin})),
    ]


@pytest.mark.integration
async def test_a_clients_requests_go_through_with_their_secrets() -> None:
    async with (
        serving(ok(f"got {CANARY}".encode(), f"X-Echo: {CANARY}", "Set-Cookie: a=b")) as server,
        client(LOCAL, key(server)) as opened,
    ):
        for _ in range(2):
            reply = await opened.post(f"{server.origin}/x?a=b", json={"one": 1}, headers={"Authorization": "mine"})
    assert reply.text == "got •••(shop.key)"
    assert reply.headers["x-echo"] == "•••(shop.key)"
    assert CANARY not in str(reply.request.url)
    assert server.connections == 1
    for request in server.requests:
        assert request.startswith(f"POST /x?a=b&key={CANARY} HTTP/1.1\r\n".encode())
        assert request.endswith(b'\r\n\r\n{"one":1}')
        lines = request.lower().split(b"\r\n")
        for name in (b"host", b"content-length", b"accept-encoding", b"authorization", b"user-agent"):
            assert sum(line.startswith(name + b":") for line in lines) == 1
        assert b"mine" not in request
        assert b"cookie" not in request.lower()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://2130706433/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://metadata.google.internal/",
    ],
)
async def test_a_forbidden_address_is_refused(url: str) -> None:
    async with client(Reach()) as opened:
        with pytest.raises(ToolError, match="may not be reached") as refusal:
            await opened.get(url)
    assert refusal.value.code == "egress-denied"


@pytest.mark.integration
async def test_userinfo_and_foreign_origins_are_refused() -> None:
    async with serving(ok()) as server, client(Reach(frozenset({"https://api.example"}), allow_private=True)) as opened:
        for url in (server.origin, f"http://api.example@127.0.0.1:{server.port}/"):
            with pytest.raises(ToolError) as refusal:
                await opened.get(url)
            assert refusal.value.code == "egress-denied"
    assert server.requests == []


@pytest.mark.integration
async def test_redirects_that_the_client_follows_are_judged_and_get_no_secret_of_another_origin() -> None:
    async with (
        serving(ok(b"there")) as other,
        serving({"/a": redirect(other.origin), "/b": redirect("http://169.254.169.254/")}) as server,
    ):
        async with client(LOCAL, key(server), follow_redirects=True) as opened:
            assert (await opened.get(f"{server.origin}/a")).text == "there"
            with pytest.raises(ToolError, match="metadata"):
                await opened.get(f"{server.origin}/b")
    assert CANARY.encode() in server.requests[0]
    assert CANARY.encode() not in other.requests[0]


@pytest.mark.integration
@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
async def test_an_event_arrives_before_the_next_is_sent(secret: bool, packed: bool, end: str) -> None:
    seen = asyncio.Event()
    packer = zlib.compressobj(wbits=31)

    async def events(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS + (b"Content-Encoding: gzip\r\n\r\n" if packed else b"\r\n"))
        for number in range(3):
            data = f"data: {number} {CANARY}{end}".encode()
            writer.write(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else data)
            await seen.wait()
            seen.clear()
        writer.write(packer.flush() if packed else b"")
        writer.close()

    async with serving(events) as server, client(LOCAL, key(server) if secret else ()) as opened:
        async with opened.stream("GET", server.origin) as reply:
            got = []
            async for chunk in reply.aiter_bytes():
                got.append(chunk.decode())
                seen.set()
    shown = "•••(shop.key)" if secret else CANARY
    assert "".join(got) == "".join(f"data: {number} {shown}{end}" for number in range(3))


@pytest.mark.integration
async def test_a_secret_that_comes_in_pieces_is_still_blacked_out() -> None:
    async def pieces(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS + b"\r\n")
        for byte in f"data: {CANARY} and on\n\ndata: {CANARY}".encode():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with serving(pieces) as server, client(LOCAL, key(server)) as opened:
        text = (await opened.get(server.origin)).text
    assert text == "data: •••(shop.key) and on\n\ndata: •••(shop.key)"


@pytest.mark.integration
async def test_a_long_line_in_many_pieces_is_put_together_once() -> None:
    piece = b"x" * 4000
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fa0\r\n%s\r\n" % piece * 7000
    async with serving(chunked + b"0\r\n\r\n") as server, client(LOCAL, key(server)) as opened:
        began = time.process_time()
        body = (await opened.get(server.origin)).content
    assert body == piece * 7000
    assert time.process_time() - began < 5


@pytest.mark.integration
async def test_an_event_stream_may_outlast_the_total_and_is_left_after_silence() -> None:
    reach = Reach(allow_private=True, total_seconds=0.6)

    async def slow(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS + b"\r\n")
        for _number in range(5):
            writer.write(b"data: x\n\n")
            await asyncio.sleep(0.2)
        await asyncio.Event().wait()

    async with serving(slow) as server, client(reach, timeout=None) as opened:
        got = []
        with pytest.raises(ToolError) as failure:
            async with opened.stream("GET", server.origin) as reply:
                async for chunk in reply.aiter_bytes():
                    got.append(chunk)
    assert failure.value.code == "source-timeout"
    assert b"".join(got) == b"data: x\n\n" * 5


@pytest.mark.integration
async def test_the_clients_read_timeout_is_an_event_streams_patience() -> None:
    async def silent(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS + b"\r\ndata: x\n\n")
        await asyncio.Event().wait()

    async with serving(silent) as server, client(LOCAL, timeout=httpx2.Timeout(20, read=0.3)) as opened:
        with pytest.raises(ToolError) as failure:
            await opened.get(server.origin)
    assert failure.value.code == "source-timeout"


@pytest.mark.integration
async def test_other_bodies_keep_the_total_and_the_limit() -> None:
    async def drip(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving(drip) as server, client(Reach(allow_private=True, total_seconds=0.4)) as opened:
        with pytest.raises(ToolError) as failure:
            await opened.get(server.origin)
        assert failure.value.code == "source-timeout"
    async with serving(ok(b"x" * 2000)) as server, client(Reach(allow_private=True, max_bytes=1000)) as opened:
        with pytest.raises(ToolError) as failure:
            await opened.get(server.origin)
        assert failure.value.code == "reply-too-large"


@pytest.mark.integration
async def test_each_event_is_bounded_but_not_their_sum() -> None:
    reach = Reach(allow_private=True, max_bytes=10_000)

    async def events(head: bytes, writer: asyncio.StreamWriter) -> None:
        size = 50_000 if b"/large" in head else 5_000
        writer.write(EVENTS + b"\r\n")
        for _number in range(10):
            writer.write(b"data: " + b"x" * size + b"\n\n")
            await writer.drain()
        writer.close()

    async with serving(events) as server, client(reach) as opened:
        assert len((await opened.get(f"{server.origin}/small")).content) == 10 * 5_008
        with pytest.raises(ToolError) as failure:
            await opened.get(f"{server.origin}/large")
    assert failure.value.code == "reply-too-large"


@pytest.mark.integration
async def test_a_stream_that_is_left_early_leaves_no_connection_behind() -> None:
    async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS + b"\r\n")
        while True:
            writer.write(b"data: x\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    egress = Egress()
    async with serving(endless) as server, httpx2.AsyncClient(transport=egress.transport(LOCAL)) as opened:
        async with opened.stream("GET", server.origin) as reply:
            async for _ in reply.aiter_bytes():
                break
        assert (await egress._pool(LOCAL, "http")).connections == []
    await egress.close()


@pytest.mark.integration
async def test_closing_the_client_leaves_the_egress_open() -> None:
    egress = Egress()
    async with serving(ok()) as server:
        for _ in range(2):
            async with httpx2.AsyncClient(transport=egress.transport(LOCAL)) as opened:
                assert (await opened.get(server.origin)).text == "hello"
        assert server.connections == 1
        await egress.close()
