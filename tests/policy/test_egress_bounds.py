"""No service can take more time or memory than its reach allows."""

import asyncio
import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from gloveport.errors import ToolError
from gloveport.policy.egress import Egress, Reach, Request, client
from tests.policy.servers import LOCAL, ok, send, serving

pytestmark = pytest.mark.integration

SMALL = Reach(allow_private=True, max_bytes=100_000, total_seconds=30)
HASTY = Reach(allow_private=True, total_seconds=0.3)
CEILING = 30


async def failed(url: str, reach: Reach, method: str = "GET") -> ToolError:
    with pytest.raises(ToolError) as failure:
        await send(Request(method, url), reach)
    return failure.value


def deflated(body: bytes, window: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda body: deflated(body, -15)),
        ("identity", bytes),
        ("gzip", lambda body: gzip.compress(body[:10]) + gzip.compress(body[10:])),
    ],
)
async def test_a_compressed_reply_is_undone_and_its_headers_with_it(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    body = b"a reply that is long enough to be worth packing " * 20
    async with serving(ok(pack(body), f"Content-Encoding: {encoding}")) as server:
        egress = Egress()
        for _ in range(2):
            reply = await egress.send(Request("GET", server.origin), LOCAL)
        await egress.close()
    assert reply.body == body
    assert "content-encoding" not in reply.headers
    assert "content-length" not in reply.headers
    assert server.connections == 1


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
async def test_a_bomb_is_stopped_when_its_first_bytes_over_the_limit_come_out(pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(bytes(300_000_000))
    encoding = "gzip" if pack is gzip.compress else "deflate"
    async with serving(ok(bomb, f"Content-Encoding: {encoding}")) as server:
        tracemalloc.start()
        try:
            error = await failed(server.origin, SMALL)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert error.code == "reply-too-large"
    assert not error.retryable
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("encoding", "empty"),
    [("deflate", b"\x03\x00"), ("deflate", zlib.compress(b"")), ("gzip", gzip.compress(b"", mtime=0))],
)
async def test_a_body_of_nothing_over_and_over_is_damaged(encoding: str, empty: bytes) -> None:
    async with serving(ok(empty * 20_000, f"Content-Encoding: {encoding}")) as server:
        failure = await failed(server.origin, SMALL)
    assert failure.code == "source-unreachable"
    assert "damaged compressed body" in failure.message


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, identity", "nonsense"])
async def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    async with serving(ok(gzip.compress(gzip.compress(b"x")), f"Content-Encoding: {encoding}")) as server:
        error = await failed(server.origin, SMALL)
    assert error.code == "source-unreachable"
    assert "encoding" in error.message


@pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"x" * 1000, mtime=0)[:-9], b"\x1f\x8b"])
async def test_a_damaged_compressed_reply_is_an_error(body: bytes) -> None:
    async with serving(ok(body, "Content-Encoding: gzip")) as server:
        error = await failed(server.origin, SMALL)
    assert (error.code, error.retryable) == ("source-unreachable", True)


async def test_a_reply_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    async with serving(ok(b"x" * 100_000)) as server:
        egress = Egress()
        assert len((await egress.send(Request("GET", server.origin), SMALL)).body) == 100_000
        await egress.close()
        server.answers = ok(b"x" * 100_001)
        error = await failed(server.origin, SMALL)
    assert error.code == "reply-too-large"
    assert error.hint == "request less"
    assert "max_response_bytes" in (error.setting or "")


async def test_a_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n") as server:
        assert (await failed(server.origin, SMALL)).code == "reply-too-large"


async def test_an_endless_reply_is_cut_off() -> None:
    async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            await writer.drain()

    async with serving(endless) as server:
        assert (await failed(server.origin, SMALL)).code == "reply-too-large"


async def drip(writer: asyncio.StreamWriter, start: bytes, drop: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(drop)
        await writer.drain()
        await asyncio.sleep(0.02)


TRICKLES = {
    "a body by the byte": (b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n", b"x"),
    "headers by the byte": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "informational replies for ever": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "chunks by the byte": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "an event stream": (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: x\n\n"),
    "trailers by the byte": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x"),
    "nothing": (b"", b""),
    "nothing after the headers": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b""),
}


@pytest.mark.parametrize("name", TRICKLES)
async def test_a_service_that_never_finishes_is_left_at_the_deadline(name: str) -> None:
    async with serving(lambda _, writer: drip(writer, *TRICKLES[name])) as server:
        began = time.monotonic()
        error = await failed(server.origin, HASTY)
    assert (error.code, error.retryable) == ("source-timeout", True)
    assert error.message == "127.0.0.1 did not answer in full within 0.3 s"
    assert time.monotonic() - began < CEILING


async def test_a_write_that_timed_out_is_not_called_retryable() -> None:
    async with serving(lambda _, writer: drip(writer, b"", b"")) as server:
        error = await failed(server.origin, HASTY, "POST")
    assert (error.code, error.retryable) == ("source-timeout", False)


async def test_redirects_share_one_deadline() -> None:
    async def slow(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(ok(b"", f"Location: /{head.count(b'x')}x", status="302 Found"))

    async with serving(slow) as server:
        assert (await failed(server.origin, HASTY)).code == "source-timeout"


async def test_a_name_that_is_never_resolved_is_left_at_the_deadline() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    for reach in (HASTY, Reach(connect_seconds=0.2)):
        with pytest.raises(ToolError) as failure:
            await send(Request("GET", "http://slow.example/"), reach, resolve=never)
        assert failure.value.code == "source-timeout"
    assert failure.value.message == "slow.example accepted no connection within 0.2 s"
    assert failure.value.retryable


async def test_headers_are_bounded() -> None:
    async def many(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(100_000):
            writer.write(b"X-%d: %b\r\n" % (number, b"x" * 100))
            await writer.drain()
        writer.write(b"\r\n")

    async with serving(many) as server:
        assert (await failed(server.origin, LOCAL)).code == "source-unreachable"
        server.answers = ok(b"", "X: " + "x" * 10_000_000)
        assert (await failed(server.origin, LOCAL)).code == "source-unreachable"


async def test_what_was_cut_off_leaves_no_connection_behind() -> None:
    async with serving(ok(b"x" * 500_000)) as server:
        egress = Egress()
        for _ in range(3):
            with pytest.raises(ToolError):
                await egress.send(Request("GET", server.origin), SMALL)
        assert (await egress._pool(SMALL, "http")).connections == []
        await egress.close()


async def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    arrived = asyncio.Event()

    async def hang(_: bytes, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await asyncio.Event().wait()

    async with serving(hang) as server:
        egress = Egress()
        task = asyncio.ensure_future(egress.send(Request("GET", server.origin), LOCAL))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await egress._pool(LOCAL, "http")).connections == []
        await egress.close()


async def test_of_many_large_replies_a_few_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGE_REPLY_BYTES", 100_000)
    size, count = 2_000_000, 40
    egress = Egress()
    async with serving(ok(b"x" * size)) as server:

        async def length() -> int:
            return len((await egress.send(Request("GET", server.origin), LOCAL)).body)

        tracemalloc.start()
        try:
            assert await asyncio.gather(*(length() for _ in range(count))) == [size] * count
            assert tracemalloc.get_traced_memory()[1] < count * size / 2
        finally:
            tracemalloc.stop()
            await egress.close()
