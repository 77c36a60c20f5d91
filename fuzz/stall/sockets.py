"""Messages of a caller on the WebSocket of a sandbox host: runs, the tools that it brings, and what it answers.

The caller is a process of its own. It sends the first message, then one more for each call that it gets, and leaves when its
run has ended.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take
from fuzz.stall.http_server import TOKEN, served
from fuzz.stall.programs import MARKS
from fuzz.stall.recipe import PUNCTUATION, Recipe, many, nest, times
from gloveport import Gloveport

SEPARATOR = "\x1e"  # between the messages of a caller
CALLER = (sys.executable, str(Path(__file__).with_name("caller.py")))
LIMITS = {"wall_seconds": 60, "cpu_seconds": 3}


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Send the messages of each input to a server."""
    port = Gloveport(limits=LIMITS)
    async with served(port, "host") as number:

        async def take(document: Document) -> Attack:
            messages = document["messages"].encode("utf-8", "replace")

            async def attack() -> Refusal | None:
                return await _said(number, messages)

            return attack

        yield take


async def _said(port: int, messages: bytes) -> Refusal | None:
    """Let a caller send the messages; return how the server has refused one."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(messages)
        file.flush()
        argv = (*CALLER, str(port), TOKEN, file.name)
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
    kind, _, told = out.decode("utf-8", "replace").partition(" ")
    if kind == "outcome":
        return None
    internal = "internal error" in told or '"internal-error"' in told
    return Refusal("internal-error" if internal else "bad-request", told or "the server closed the connection")


def _messages(*messages: Recipe) -> Document:
    joined: list[Any] = []
    for message in messages:
        joined += [SEPARATOR, message] if joined else [message]
    return {"messages": joined}


def _run(code: str, *more: Recipe, values: str = "tagged") -> Recipe:
    tools = '"tools":[{"name":"get","readOnly":true}]'
    return [f'{{"type":"run","run":"r","code":"{code}","values":"{values}",{tools}', *more, "}"]


def _result(*value: Recipe, code: str = "return await tools.get({})", values: str = "tagged") -> Document:
    return _messages(_run(code, values=values), ['{"type":"result","run":"r","call":1,"value":', *value, "}"])


def _input(*value: Recipe) -> Document:
    return _messages(_run("return 1", ',"input":', *value))


def _tag(kind: str, *value: Recipe) -> Recipe:
    return [f'{{"$":"{kind}","v":', *value, "}"]


VALUES: dict[str, Recipe] = {
    "numbers": ["[", many(490_000, "1"), "]"],
    "keys": ["{", many(190_000, '"k<i>":1'), "}"],
    "objects": ["[", many(90_000, '{"a":1}'), "]"],
    "nests": nest(60, "[", "1", "]"),
    "dates": ["[", many(90_000, _tag("date", "<i>")), "]"],
    "bigints": ["[", many(90_000, _tag("bigint", '"<i>"'), first=10**30), "]"],
    "wide-bigint": _tag("bigint", '"', times(1_000_000, "9"), '"'),
    "many-bytes": ["[", many(90_000, _tag("bytes", '"AAAA"')), "]"],
    "bytes": _tag("bytes", '"', times(1_000_000, "AAAA"), '"'),
    "bad-bytes": _tag("bytes", '"', times(4_000_000, "%"), '"'),
    "map": _tag("map", "[", many(49_000, "[<i>,0]"), "]"),
    "colliding-map": _tag("map", "[", many(49_000, "[<i>,0]", step=2**61 - 1), "]"),
    "set": _tag("set", "[", many(400_000, "<i>", step=2**26), "]"),
    "sets": ["[", many(30_000, _tag("set", "[1,2]")), "]"],
    "error": _tag("error", '{"name":"E","message":"', times(4_000_000, "m"), '"}'),
    "text": ['"', times(4_000_000, "x"), '"'],
    "marks": ['"', times(500_000, MARKS), '"'],
    "surrogates": ['"', times(500_000, "\\ud800"), '"'],
    "digits": times(60, "9"),
    "unknown-tag": _tag("nothing", "[", many(400_000, "1"), "]"),
}
SEEDS: dict[str, Document] = {
    **{f"result-{name}": _result(value) for name, value in VALUES.items()},
    **{f"input-{name}": _input(value) for name, value in VALUES.items()},
    "plain-numbers": _result(VALUES["numbers"], values="json"),
    "plain-objects": _result(VALUES["objects"], values="json"),
    "dropped-result": _result(VALUES["dates"], code="void tools.get({}); return 1"),
    "error-data": _messages(
        _run("return await tools.get({})"),
        ['{"type":"error","run":"r","call":1,"error":{"message":"m","data":[', many(400_000, "1"), "]}}"],
    ),
    "error-text": _messages(
        _run("return await tools.get({})"),
        ['{"type":"error","run":"r","call":1,"error":{"message":"', times(4_000_000, "/home/x "), '"}}'],
    ),
    "args": _messages(_run("return await tools.get({a: Array(1500000).fill(1)})"), '{"type":"result","run":"r","call":1}'),
    "args-dates": _messages(
        _run("return await tools.get({a: Array.from({length: 90000}, (_, i) => new Date(i))})"),
        '{"type":"result","run":"r","call":1}',
    ),
    "emit": _messages(_run("emit(Array.from({length: 1500000}, () => 1)); return 1")),
    "emit-plain": _messages(_run("emit(Array.from({length: 1500000}, () => 1)); return 1", values="json")),
    "emit-dates": _messages(_run("emit(Array.from({length: 90000}, (_, i) => new Date(i))); return 1")),
    "emit-dates-plain": _messages(_run("emit(Array.from({length: 90000}, (_, i) => new Date(i)))", values="json")),
    "emits": _messages(_run("for (let i = 0; i < 20000; i++) emit(i)")),
    "logs": _messages(_run("for (let i = 0; i < 20000; i++) console.log('a')")),
    "value": _messages(_run("return Array.from({length: 90000}, (_, i) => new Date(i))")),
    "value-plain": _messages(_run("return Array.from({length: 90000}, (_, i) => new Date(i))", values="json")),
    "value-set": _messages(_run("return new Set(Array.from({length: 900000}, (_, i) => i))")),
    "unknown-keys": _messages(_run("return 1", ",", many(20_000, '"k<i>":1'))),
    "tools": _messages(
        ['{"type":"run","run":"r","code":"return 1","tools":[', many(1_000, '{"name":"t<i>","description":"a"}'), "]}"]
    ),
    "tool-name": _messages(['{"type":"run","run":"r","code":"return 1","tools":[{"name":"', times(150, "a."), '"}]}']),
    "unknown-kind": _messages(['{"type":"', times(3_000_000, "a"), '"}']),
    "no-kind": _messages(["{", many(190_000, '"k<i>":1'), "}"]),
    "depth": _messages(nest(900_000, "[", "", "]")),
    "long-name": _messages(['{"type":"run","run":"', times(3_000_000, "r"), '","code":"return 1"}']),
    "call-number": _messages(
        _run("return await tools.get({})"), ['{"type":"result","run":"r","call":', times(60, "9"), "}"]
    ),
    "cancel": _messages(_run("return await tools.get({})"), '{"type":"cancel","run":"r"}'),
}
WORDS = (
    '"type":"run"',
    '"type":"result"',
    '"type":"error"',
    '"type":"cancel"',
    '"run":"r"',
    '"call":1',
    '"value":',
    '"values":"tagged"',
    '"code":"',
    '{"$":"map","v":[',
    '{"$":"set","v":[',
    '{"$":"date","v":',
    '{"$":"bytes","v":"',
    "await tools.get({})",
    "emit(",
    "return ",
    *PUNCTUATION,
    *(SEPARATOR, "\\u0301", "\\ud800", "9", "null", "true", "1e9"),
)
ENTRANCE = Entrance("sockets", __name__, opened, SEEDS, _result("[1]"), WORDS, 8 * MIB)
