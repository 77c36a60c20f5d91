"""Retries: which requests are retried, how often, after which pause, and which never are."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gloveport.errors import ToolError
from gloveport.policy.egress import Reply
from gloveport.sources.openapi.call import retries
from gloveport.sources.openapi.operation import Operation
from tests.sources.openapi.support import Kit, answer, tool_of

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
GET = Operation("GET", "/x")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.01)


def in_turn(kit: Kit, *replies: bytes) -> None:
    waiting = list(replies)
    kit.server.reply = lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]


@pytest.mark.integration
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_safe_method_is_retried_after_a_transient_failure(kit: Kit, method: str, status: int) -> None:
    in_turn(kit, answer(b"", status), answer(b"", status, retry_after="0"), answer())
    await kit.call(Operation(method, "/x"))
    assert len(kit.server.seen) == 3


@pytest.mark.integration
async def test_after_three_attempts_the_failure_is_returned(kit: Kit) -> None:
    kit.server.reply = answer(b'{"message":"busy"}', 503)
    with pytest.raises(ToolError) as caught:
        await kit.call(GET)
    assert (caught.value.status, caught.value.retryable, len(kit.server.seen)) == (503, True, 3)


@pytest.mark.integration
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_is_never_sent_twice(kit: Kit, method: str) -> None:
    for reply in (answer(b"", 503, retry_after="0"), answer(b"", 429), b""):
        kit.server.seen.clear()
        kit.server.reply = reply
        with pytest.raises(ToolError):
            await kit.call(Operation(method, "/x"))
        assert len(kit.server.seen) == 1


@pytest.mark.integration
@pytest.mark.parametrize(("method", "writes"), [("GET", True), ("POST", False), ("PUT", False)])
async def test_neither_the_method_nor_the_definition_alone_makes_a_call_safe(kit: Kit, method: str, writes: bool) -> None:
    kit.server.reply = answer(b"", 503)
    source = kit.source({"it": Operation(method, "/x")})
    with pytest.raises(ToolError):
        await source.call(replace(tool_of(source), writes=writes), {})
    assert len(kit.server.seen) == 1


@pytest.mark.integration
@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 501])
async def test_a_permanent_error_is_returned_at_once(kit: Kit, status: int) -> None:
    kit.server.reply = answer(b"", status)
    with pytest.raises(ToolError):
        await kit.call(GET)
    assert len(kit.server.seen) == 1


@pytest.mark.integration
async def test_a_broken_connection_is_retried_for_safe_methods(kit: Kit) -> None:
    in_turn(kit, b"", b"", answer(b'"here"'))
    assert await kit.call(GET) == "here"
    assert len(kit.server.seen) == 3


@pytest.mark.integration
async def test_a_service_that_is_down_is_a_clear_error(kit: Kit) -> None:
    with pytest.raises(ToolError) as caught:
        await kit.call(GET, base_url="http://127.0.0.1:1")
    assert (caught.value.code, caught.value.retryable) == ("source-unreachable", True)


@pytest.mark.integration
async def test_all_attempts_together_take_no_longer_than_one_may(kit: Kit) -> None:
    hung: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    replies = iter([answer(b"", 503)])
    kit.server.reply = lambda _: next(replies, None) or hung
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(kit.call(GET, timeout_seconds=0.5), 30)
    assert (caught.value.status, len(kit.server.seen)) == (503, 2)
    hung.cancel()


@pytest.mark.integration
async def test_a_service_that_asks_for_more_time_than_is_left_is_not_waited_for(kit: Kit) -> None:
    kit.server.reply = answer(b"", 429, retry_after="25")
    with pytest.raises(ToolError):
        await asyncio.wait_for(kit.call(GET, timeout_seconds=20), 15)
    assert len(kit.server.seen) == 1


@pytest.mark.parametrize(
    ("status", "asked", "attempt", "pause"),
    [
        (503, "", 1, 0.01),
        (503, "", 2, 0.02),
        (503, "7", 1, 7),
        (429, "0", 2, 0),
        (429, "31", 1, None),
        (429, "9" * 400, 1, None),
        (429, "Wed, 01 May 2024 12:00:09 GMT", 1, 9),
        (429, "Wed, 01 May 2024 11:00:00 GMT", 1, 0),
        (429, "Wed, 01 May 2024 12:10:00 GMT", 1, None),
        (429, "soon", 1, 0.01),
        (429, "-5", 1, 0.01),
        (429, "²", 1, 0.01),
        (500, "1", 1, None),
        (200, "1", 1, None),
    ],
)
def test_retry_after_is_obeyed_within_reason(status: int, asked: str, attempt: int, pause: float | None) -> None:
    reply = Reply(status, {"retry-after": asked} if asked else {}, b"", "http://x/")
    assert retries.pause_after(reply, attempt, NOW) == pause
