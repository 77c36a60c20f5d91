"""Replies from a real server: values, text, bytes, empty bodies, and errors."""

import gzip
from typing import Any

import pytest

from gloveport.errors import ToolError
from gloveport.sources.openapi.operation import Operation
from tests.sources.openapi.support import Kit, answer

pytestmark = pytest.mark.integration

GET = Operation("GET", "/things/{id}".replace("{id}", "all"), produces=("application/json",))


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (answer(b'{"a":[1,2.5,null]}'), {"a": [1, 2.5, None]}),
        (answer(b'{"a":1}', content_type="application/problem+json; charset=utf-8"), {"a": 1}),
        (answer(b'\xef\xbb\xbf{"a":1}'), {"a": 1}),
        (answer('{"a":"é"}'.encode("utf-16"), content_type="application/json; charset=utf-16"), {"a": "é"}),
        (answer(b"[123456789012345678901234567890]"), [123456789012345678901234567890]),
        (answer(b'{"a":'), '{"a":'),
        (answer(b"not json \xff"), "not json \ufffd"),
        (answer(b"null"), None),
        (answer(b""), None),
        (answer(b"", status=204, content_type=None), None),
        (answer("é".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1"), "é"),
        (answer(b"\xc3\xa9", content_type="text/html"), "é"),
        (answer(b"x", content_type="text/plain; charset=punycode"), "x"),
        (answer(b"x", content_type="text/plain; charset=no-such-thing"), "x"),
        (answer(b"<a/>", content_type="application/atom+xml"), "<a/>"),
        (answer(b'{"a":1}\n{"a":2}\n', content_type="application/x-ndjson"), '{"a":1}\n{"a":2}\n'),
        (answer(b"data: 1\n\n", content_type="text/event-stream"), "data: 1\n\n"),
        (answer(b"\x89PNG", content_type="image/png"), b"\x89PNG"),
        (answer(b"abc", content_type="application/octet-stream"), b"abc"),
        (answer(b'{"a":1}', content_type=None), {"a": 1}),
        (answer(b"made", status=201, content_type="text/plain"), "made"),
        (answer(gzip.compress(b'{"zipped":true}'), content_encoding="gzip"), {"zipped": True}),
    ],
)
async def test_a_reply_is_the_value_that_its_type_says(kit: Kit, reply: bytes, value: Any) -> None:
    kit.server.reply = reply
    assert await kit.call(GET) == value


async def test_a_reply_without_a_type_is_text_or_bytes_when_no_json_was_promised(kit: Kit) -> None:
    for body, value in ((b"5", "5"), (b"\xff", b"\xff")):
        kit.server.reply = answer(body, content_type=None)
        assert await kit.call(Operation("GET", "/x")) == value


async def test_head_gives_the_headers(kit: Kit) -> None:
    kit.server.reply = answer(b"", etag='"abc"', x_total="7", set_cookie="sid=1")
    value = await kit.call(Operation("HEAD", "/x"))
    assert (value["etag"], value["x-total"]) == ('"abc"', "7")
    assert "set-cookie" not in value


@pytest.mark.parametrize(
    ("status", "body", "content_type", "data", "said"),
    [
        (404, b'{"message":"Not here","code":7}', "application/json", {"message": "Not here", "code": 7}, ": Not here"),
        (
            422,
            b'{"errors":[{"detail":"too long"}]}',
            "application/json",
            {"errors": [{"detail": "too long"}]},
            ": too long",
        ),
        (
            400,
            b'{"error":{"message":"bad\\n\\u001b[31mid"}}',
            "application/json",
            {"error": {"message": "bad\n\x1b[31mid"}},
            ": bad [31mid",
        ),
        (500, b"<html>oops</html>", "text/html", "<html>oops</html>", "Error"),
        (418, b"short", "text/plain", "short", ": short"),
        (401, b"", None, None, "Unauthorized"),
        (304, b"", None, None, "Not Modified"),
        (599, b"{", "application/json", "{", "599: {"),
    ],
)
async def test_any_other_status_is_an_error_with_what_the_service_said(
    kit: Kit, status: int, body: bytes, content_type: str | None, data: Any, said: str
) -> None:
    kit.server.reply = answer(body, status, content_type)
    with pytest.raises(ToolError) as caught:
        await kit.call(GET)
    error = caught.value
    assert (error.code, error.status, error.data, error.tool) == ("http-error", status, data, "api.it")
    assert error.retryable is False
    assert str(error).startswith(f"GET /things/all answered {status}") and str(error).endswith(said)


async def test_the_redirect_of_a_write_is_an_error_that_says_where_to(kit: Kit) -> None:
    kit.server.reply = answer(b"", 302, None, location="/elsewhere")
    with pytest.raises(ToolError) as caught:
        await kit.call(Operation("POST", "/x"))
    assert (caught.value.status, caught.value.data) == (302, {"location": "/elsewhere"})
    assert len(kit.server.seen) == 1


async def test_an_error_of_many_bytes_is_cut(kit: Kit) -> None:
    kit.server.reply = answer(b"[" + b"1," * 100_000 + b"1]", 500)
    with pytest.raises(ToolError) as caught:
        await kit.call(GET)
    assert len(caught.value.data) < 70_000 and caught.value.data.endswith("(200,003 bytes)")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 10_000_000,
        b'{"a":' * 1_000_000,
        b"[" * 5000 + b"]" * 5000,
        b"[" + b"[]," * 1_000_000 + b"1]",
        b"[" + b"1," * 6_000_000 + b"1]",
    ],
    ids=["open", "open objects", "deep", "many lists", "many items"],
)
async def test_json_that_would_grow_in_memory_is_refused(kit: Kit, body: bytes) -> None:
    kit.server.reply = answer(body)
    with pytest.raises(ToolError) as caught:
        await kit.call(GET)
    assert caught.value.code == "reply-too-large"


async def test_a_reply_larger_than_configured_is_refused(kit: Kit) -> None:
    kit.server.reply = answer(b'"' + b"x" * 2000 + b'"')
    with pytest.raises(ToolError) as caught:
        await kit.call(GET, max_response_bytes=1000)
    assert caught.value.code == "reply-too-large"
