"""No request holds the event loop, whatever its shape: over HTTP and on standard input (M13)."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import threading
import time
from asyncio.events import Handle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.surfaces.mcp import stdio_transport
from gloveport.surfaces.mcp.server import AgentServer
from gloveport.surfaces.mcp.stdio_transport import StdioTransport
from gloveport.surfaces.request_bounds import (
    MAX_NUMBER_DIGITS,
    MAX_REQUEST_BYTES,
    MAX_REQUEST_DEPTH,
    REQUEST_LIMITS,
    check_json,
    read_message,
)
from tests.surfaces.agents import http_server
from tests.surfaces.test_guard import send

MAX_LOOP_SECONDS = 0.050
ROOM = MAX_REQUEST_BYTES - 1000
LISTS, ITEMS = REQUEST_LIMITS.containers - 10, REQUEST_LIMITS.items - 100
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def listed(item: str, count: int) -> str:
    return f"[{','.join([item] * min(count, ROOM // (len(item) + 1)))}]"


def keyed(key: str, count: int) -> str:
    return "{" + ",".join(f'"{key}{number:x}":1' for number in range(count)) + "}"


# The costliest values that the bounds allow, and values that exceed them.
VALUES = {
    "integers": listed("1", ITEMS),
    "long numbers": listed("9" * MAX_NUMBER_DIGITS, ITEMS),
    "fractions": listed("0.1234567890123456789e-300", ITEMS),
    "empty texts": listed('""', ITEMS),
    "lists": listed("[]", LISTS),
    "objects": listed('{"a":[1]}', LISTS // 2),
    "keys": keyed("", ITEMS),
    "long keys": keyed("k" * 60, ITEMS),
    "deep": listed("[" * 55 + "]" * 55, LISTS // 55),
    "letters": '"' + "x" * ROOM + '"',
    "accents": '"' + r"\u00e9" * (ROOM // 6) + '"',
    "surrogates": '"' + r"\ud83d\ude00" * (ROOM // 12) + '"',
    "quotes and digits": '"' + r"\"" * (ROOM // 2 - 100) + "9" * 100 + '"',
    "too many integers": listed("1", ROOM),
    "too many lists": listed("[]", ROOM),
    "too many texts": listed('""', ROOM),
    "numbers too long": listed("9" * 4200, ROOM),
    "a number too long": "9" * ROOM,
    "too deep": "[" * (ROOM // 2) + "]" * (ROOM // 2),
    "never closed": "[" * ROOM,
}
PLACES = {
    "input": '{"name":"execute","arguments":{"code":"1","language":"python","input":VALUE},"_meta":META}',
    "argument": '{"name":"search","arguments":{"query":VALUE},"_meta":META}',
    "params": "VALUE",
}


def request(place: str, value: str) -> bytes:
    head = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'
    return (head + PLACES[place].replace("META", json.dumps(META)).replace("VALUE", value) + "}").encode()


async def longest_callback(work: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the CPU time of the longest callback of the loop during the work; the least of three times."""
    longest, run = 0.0, Handle._run

    def timed(handle: Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - began)

    found = []
    gc.freeze()  # the heap of all tests is none of a server's
    try:
        for _ in range(3):
            with monkeypatch.context() as patched:
                await asyncio.sleep(0)
                patched.setattr(Handle, "_run", timed)
                longest = 0.0
                await work()
                found.append(longest)
    finally:
        gc.unfreeze()
    return min(found)


@pytest.fixture(scope="module")
async def url() -> Any:
    async with http_server(Gloveport(spare=0)) as url:
        yield url


@pytest.mark.integration
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", VALUES)
async def test_no_body_holds_the_loop(url: str, place: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = request(place, VALUES[value])
    tool = {"input": "execute", "argument": "search"}.get(place, "search")
    headers = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", f"Mcp-Name: {tool}")

    async def ask() -> None:
        assert (await send(url, *headers, body=body)).status in (200, 400, 404)

    assert await longest_callback(ask, monkeypatch) < MAX_LOOP_SECONDS


class Replies(io.StringIO):
    """Standard output; `enough` is set when it has a number of lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.missing, self.enough = lines, threading.Event()

    def flush(self) -> None:
        """Count a line: the library flushes after each."""
        self.missing -= 1
        if not self.missing:
            self.enough.set()


async def answers(*lines: bytes, count: int | None = None) -> list[Any]:
    """Return what the server on standard input and output answers: one message for each line, or this many."""
    reading, writing = os.pipe()
    port, out = Gloveport(spare=0), Replies(len(lines) if count is None else count)
    sending = asyncio.create_task(asyncio.to_thread(_write, writing, b"".join(line + b"\n" for line in lines), out))
    server = AgentServer(port)
    try:
        async with StdioTransport(reading, out).open() as (incoming, outgoing):
            await server.protocol.run(incoming, outgoing, server.protocol.create_initialization_options())
    finally:
        await server.close()
        await port.close()
        await sending
        os.close(reading)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def _write(descriptor: int, data: bytes, out: Replies) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as pipe:
        while data:
            data = data[pipe.write(data) :]
        assert out.enough.wait(60)


@pytest.mark.integration
@pytest.mark.parametrize("value", VALUES)
async def test_no_line_holds_the_loop(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = request("params", VALUES[value])

    async def ask() -> None:
        await answers(line)

    assert await longest_callback(ask, monkeypatch) < MAX_LOOP_SECONDS


@pytest.mark.integration
async def test_a_line_that_is_refused_is_answered_with_its_id_and_those_after_it_are_served() -> None:
    huge = request("argument", '"' + "x" * MAX_REQUEST_BYTES + '"')
    ping = b'{"jsonrpc":"2.0","id":8,"method":"ping"}'
    replies = await answers(huge, request("argument", listed("1", ROOM)), b"[]", b"\xff", ping)
    assert [(reply["id"], reply.get("error", {}).get("message", "")[:30]) for reply in replies] == [
        (7, "the request has more than 4,19"),
        (7, "the request holds more than 25"),
        (None, "the request is not a JSON-RPC m"[:30]),
        (None, "the request is not JSON: str i"),
        (8, ""),
    ]


PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
WAIT = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": "<i>",
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": META},
    }
)


@pytest.mark.integration
async def test_requests_of_a_burst_wait_until_earlier_ones_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_REQUESTS", 2)
    replies = await answers(*(PING % number for number in range(500)))
    assert [reply["id"] for reply in replies if reply["result"] == {}] == [*range(500)]


@pytest.mark.integration
async def test_requests_that_never_end_make_further_ones_be_refused_until_one_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_REQUESTS", 2)
    monkeypatch.setattr(stdio_transport, "STUCK_SECONDS", 0.2)
    waiting = [WAIT.replace("<i>", name).encode() for name in ("a", "b")]
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}'
    replies = await answers(*waiting, PING % 1, PING % 2, cancel, PING % 3, count=5)
    ended = {reply["id"]: reply for reply in replies if "id" in reply}
    assert "2 requests are under way" in ended[1]["error"]["message"]
    assert "2 requests are under way" in ended[2]["error"]["message"]
    assert "under way" not in str(ended[3]), "the server answered it"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[1]", "is not a JSON-RPC message"),
        (b'{"jsonrpc":"2.0","method":"x","params":[1]}', "its params must be an object"),
        (b'{"jsonrpc":"2.0",' + b",".join(b'"%d":1' % each for each in range(9)) + b"}", "is not a JSON-RPC message"),
        (request("params", listed("[]", REQUEST_LIMITS.containers + 1)), "holds more than 10,000 lists and objects"),
        (request("params", listed("1", REQUEST_LIMITS.items + 2)), "holds more than 25,000 items"),
        (request("params", "[" * MAX_REQUEST_DEPTH + "]" * MAX_REQUEST_DEPTH), "is nested deeper than 64 levels"),
        (request("params", "1" * (MAX_NUMBER_DIGITS + 1)), "has a number of more than 64 digits"),
        (request("params", r'{"a\\":' + "1" * (MAX_NUMBER_DIGITS + 1) + "}"), "has a number of more than 64 digits"),
        (b"{", "is not JSON"),
    ],
)
async def test_a_message_beyond_a_bound_is_refused_with_the_bound(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        await read_message(data)


@pytest.mark.parametrize("text", ["9" * 5000, r"\"" + "9" * 5000, r"\\\"" + "9" * 5000, "[" * 5000, "1," * 60000])
def test_what_stands_in_a_text_counts_for_nothing(text: str) -> None:
    check_json(f'{{"a": "{text}"}}'.encode())
