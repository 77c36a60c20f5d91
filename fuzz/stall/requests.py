"""Requests to the HTTP server: what the guard, the MCP library, the tools for agents and the API read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fuzz.stall import schemas
from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take
from fuzz.stall.http_server import TOKEN, served
from fuzz.stall.programs import MARKS, TOOLS
from fuzz.stall.recipe import PUNCTUATION, many, nest, times
from fuzz.stall.service import send
from gloveport import Gloveport, tool
from gloveport.config import ServeConfig

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OTHER_TOOLS = 300


@tool(writes=True)
async def send_away(value: Any = None) -> None:
    """Send a value."""


CALLER = "http://127.0.0.1:9"  # nobody listens there
LIMITS = {"wall_seconds": 10, "cpu_seconds": 2}


def _tool(number: int) -> Any:
    async def tool(name: str = "", count: int = 1) -> None: ...

    tool.__name__ = tool.__qualname__ = f"list_things_{number}"
    tool.__doc__ = f"List the things of the kind {number}, by name."
    return tool


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Send each input to a server that type-checks programs, as `gloveport serve` does."""
    port = Gloveport(tools=[*TOOLS, send_away, *map(_tool, range(OTHER_TOOLS))], check_types=True, limits=LIMITS)
    async with served(port, "host", ServeConfig(callbacks_private=frozenset({CALLER}))) as number:
        yield sender(number)


def sender(number: int) -> Take:
    """Return what sends each input as a request to this port."""

    async def take(document: Document) -> Attack:
        data = request_bytes(document)

        async def attack() -> Refusal | None:
            return refusal_in(await send(number, data))

        return attack

    return take


def request_bytes(document: Document) -> bytes:
    """Return the request that a document describes."""
    body = document.get("body", "").encode("utf-8", "surrogatepass")
    tool = document.get("tool", "execute")
    token = document.get("token", TOKEN)
    lines = [
        f"{document.get('method', 'POST')} {document.get('path', '/mcp')} HTTP/1.1",
        f"Host: {document.get('host', '127.0.0.1')}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Accept: {document.get('accept', 'application/json, text/event-stream')}",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        f"Content-Length: {len(body)}",
        f"Connection: close{document.get('headers', '')}",
    ]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + body


def refusal_in(reply: bytes) -> Refusal | None:
    """Return the refusal that a reply is; an error of the protocol itself counts as `bad-request`."""
    head, _, body = reply.partition(b"\r\n\r\n")
    if b"internal error" in body:
        return Refusal("internal-error", body[:300].decode("utf-8", "replace"))
    if b" 500 " in head.split(b"\r\n")[0]:
        return Refusal("internal-error", head[:300].decode("utf-8", "replace"))
    if any(status in head.split(b"\r\n")[0] for status in (b" 200 ", b" 201 ", b" 202 ")):
        return None
    return Refusal("bad-request", (body or head)[:300].decode("utf-8", "replace") or "the server closed the connection")


def _call(tool: str, *arguments: Any, **more: Any) -> Document:
    start = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{json.dumps(META)},"arguments":{{'
    return {"tool": tool, "body": [start, *arguments, "}}}"], **more}


def _body(*body: Any, **more: Any) -> Document:
    return {"body": list(body), **more}


def _run(*parts: Any, code: str = "return 1") -> Document:
    """A run of the API."""
    return _body(f'{{"code":"{code}",', *parts, "}", path="/v1/runs")


def _caller(*tools: Any) -> list[Any]:
    """The tools that the caller of a run brings."""
    return [f'"callback":{{"url":"{CALLER}","token":"t"}},"tools":[', *tools, "]"]


def _caller_schema(name: str) -> Document:
    """A run whose caller brings a tool with a hostile schema, and whose program calls it."""
    found = schemas.SEEDS[name]
    tool = ['{"name":"send","readOnly":true,"inputSchema":', *_parts(found["schema"]), "}"]
    return _run('"input":', *_parts(found["arguments"]), ",", *_caller(*tool), code="return await tools.send(input)")


def _parts(recipe: Any) -> list[Any]:
    return recipe if isinstance(recipe, list) else [recipe]


CALLER_SCHEMAS = tuple(name for name, seed in schemas.SEEDS.items() if seed["kind"] == "mcp")
SEEDS: dict[str, Document] = {
    "run": _run('"input":1'),
    "run-input": _run('"input":{', many(24_000, '"k<i>":1'), "}"),
    "run-env": _run('"env":{', many(24_000, '"k<i>":"1"'), "}"),
    "run-limits": _run('"limits":{', many(9_000, '"k<i>":1'), "}"),
    "run-unknown": _run(many(9_000, '"k<i>":1')),
    "run-result": _run('"input":1', code="return Array.from({length: 80000}, (_, i) => ({id: i}))"),
    "caller-tools": _run(*_caller(many(1_000, '{"name":"t<i>"}'))),
    "caller-described": _run(*_caller(many(1_000, ['{"name":"t<i>","description":"', times(3_000, MARKS), '"}']))),
    "caller-names": _run(*_caller(many(1_000, ['{"name":"', times(100, "a."), '<i>"}']))),
    "caller-marks": _run(*_caller(many(1_000, ['{"name":"a', times(140, "\u0301"), '<i>"}']))),
    "caller-schemas": _run(
        *_caller(many(900, '{"name":"t<i>","inputSchema":{"type":"object","properties":{"a":{"pattern":"\\\\p{L}{60}"}}}}'))
    ),
    "caller-wide-schema": _run(
        *_caller(
            '{"name":"t","inputSchema":{"type":"object","properties":{', many(4_000, '"p<i>":{"type":"string"}'), "}}}"
        )
    ),
    "caller-negations": _run(
        *_caller(
            '{"name":"t","inputSchema":{"type":"object","properties":{',
            many(1_400, '"p<i>":{"not":{"oneOf":[{"pattern":"("},{"not":{"$ref":"#"}}]}}'),
            "}}}",
        )
    ),
    "caller-chains": _run(
        *_caller(
            '{"name":"t","inputSchema":{"type":"object","properties":{',
            many(1_000, '"p<i>":{"$ref":"#/$defs/d<i>"}'),
            '},"$defs":{',
            many(1_000, '"d<i>":{"allOf":[{"$ref":"#/$defs/d0"},{"$ref":"#/$defs/d1<i>"}]}'),
            "}}}",
        )
    ),
    **{f"caller-{name}": _caller_schema(name) for name in CALLER_SCHEMAS},
    "runs-query": _body(path=["/v1/runs?", {"count": 5_000, "of": "a<i>=1", "join": "&"}], method="GET"),
    "tools-query": _body(path=["/v1/tools?query=", times(50_000, "%C3%A9")], method="GET"),
    "tool-path": _body(path=["/v1/tools/", times(50_000, "a.")], method="GET"),
    "tool-marks": _body(path=["/v1/tools/", times(10_000, "%CD%85%CC%81")], method="GET"),
    "tools": _body(path="/v1/tools?limit=500", method="GET"),
    "openapi": _body(path="/v1/openapi.json", method="GET"),
    "search": _call("search", '"query":"list things"'),
    "search-text": _call("search", '"query":"', times(3_000_000, "things "), '"'),
    "search-words": _call("search", '"query":"', {"count": 100_000, "of": "w<i> "}, '"'),
    "search-marks": _call("search", '"query":"', times(300_000, MARKS), '"'),
    "search-source": _call("search", '"query":"a","source":"', times(3_000_000, "x"), '"'),
    "describe": _call("describe", '"paths":["list_things_1"]'),
    "describe-paths": _call("describe", '"paths":[', many(50, '"list_thigns_<i>"'), "]"),
    "describe-many": _call("describe", '"paths":[', many(300_000, '"a<i>"'), "]"),
    "describe-all": _call("describe", '"paths":[', many(50, '"list_things_<i>"'), "]"),
    "describe-path": _call("describe", '"paths":["', times(3_000_000, "list."), '"]'),
    "describe-marks": _call("describe", '"paths":["', times(500_000, "\u0345\u0301"), '"]'),
    "unknown-arguments": _call("search", '"query":"a",', many(200_000, '"k<i>":1')),
    "unknown-argument": _call("search", '"query":"a","', times(3_000_000, "q"), '":1'),
    "wrong-arguments": _call("execute", '"code":[', many(1_000_000, "1"), "]"),
    "wide-input": _call("execute", '"code":"return 1","input":{', many(200_000, '"k<i>":1'), "}"),
    "list-input": _call("execute", '"code":"return 1","input":[', many(1_500_000, "1"), "]"),
    "text-input": _call("execute", '"code":"return 1","input":"', times(3_500_000, "x"), '"'),
    "long-result": _call("execute", '"code":"return \'x\'.repeat(8000000)"'),
    "wide-result": _call("execute", '"code":"return Object.fromEntries(Array.from({length: 200000}, (_, i) => [i, i]))"'),
    "list-result": _call("execute", '"code":"return Array.from({length: 1000000}, (_, i) => i)"'),
    "record-result": _call("execute", '"code":"return Array.from({length: 80000}, (_, i) => ({id: i, name: `n${i}`}))"'),
    "set-result": _call("execute", '"code":"return new Set(Array.from({length: 500000}, (_, i) => i))"'),
    "date-result": _call("execute", '"code":"return Array.from({length: 80000}, (_, i) => new Date(i))"'),
    "surrogate-result": _call("execute", '"code":"return Array(20000).fill(\'\\\\ud800\')"'),
    "marks-result": _call("execute", '"code":"return \'\\\\u0345\\\\u0301\'.repeat(1000000)"'),
    "emits": _call("execute", '"code":"for (let i = 0; i < 20000; i++) emit(i)"'),
    "emit-object": _call("execute", '"code":"emit(Object.fromEntries(Array.from({length: 200000}, (_, i) => [i, i])))"'),
    "logs": _call("execute", '"code":"for (let i = 0; i < 20000; i++) console.log(\'\\\\u0301\')"'),
    "plan": _call(
        "execute",
        '"plan":true,"code":"for (let i = 0; i < 900; i++) await tools.send_away({value: Array(2000).fill(1)})"',
    ),
    "long-error": _call("execute", '"code":"throw new Error(\'x\'.repeat(3000000))"'),
    "error-data": _call(
        "execute", '"code":"throw Object.assign(new Error(\'a\'), {data: Array.from({length: 300000}, (_, i) => i)})"'
    ),
    "tool-chain": _call("execute", '"code":"tools', times(20_000, ".a"), '"'),
    "tool-chain-comment": _call("execute", '"code":"return 1 // tools', times(100_000, ".a"), '"'),
    "tool-mentions": _call("execute", '"code":"', {"count": 20_000, "of": "tools.list_things_<i>;"}, '"'),
    "tool-spaces": _call("execute", '"code":"', times(500, ["tools", times(1_000, " ")]), '"'),
    "type-errors": _call("execute", '"code":"', {"count": 200, "of": "const a<i>: string = <i>;"}, '"'),
    "types": _call(
        "execute",
        '"code":"type A<T, N extends any[] = []> = N[\'length\'] extends 90 ? N : A<T, [...N, T]>; const a: A<1> = 1 as any; return 1"',
    ),
    "python-chain": _call("execute", '"language":"python","code":"tools', times(20_000, ".a"), '"'),
    "result-id": _call("execute", '"result_id":"', times(3_000_000, "r"), '"'),
    "offset": _call("execute", '"result_id":"r","offset":', times(300_000, "9")),
    "keys": _body("{", many(300_000, '"k<i>":1'), "}"),
    "numbers": _body("[", many(1_900_000, "1"), "]"),
    "objects": _body("[", many(99_000, "{}"), "]"),
    "depth": _body(nest(1_000_000, "[", "", "]")),
    "nests": _body("[", {"times": 1_500, "of": nest(60, "[", "1", "]"), "join": ","}, "]"),
    "quotes": _body(times(4_000_000, '"')),
    "backslashes": _body('"', times(3_500_000, "\\")),
    "wide-integer": _body('{"jsonrpc":"2.0","id":', times(3_000_000, "9"), ',"method":"tools/list"}'),
    "long-method": _body('{"jsonrpc":"2.0","id":1,"method":"', times(3_000_000, "m"), '"}'),
    "long-id": _body('{"jsonrpc":"2.0","id":"', times(3_000_000, "i"), '","method":"tools/list"}'),
    "meta": _body('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{', many(200_000, '"k<i>":1'), "}}}"),
    "batch": _body("[", many(30_000, '{"jsonrpc":"2.0","id":<i>,"method":"ping"}'), "]"),
    "host": _body("{}", host=times(50_000, "a.")),
    "token": _body("{}", token=times(50_000, "x")),
    "path": _body("{}", path=["/", times(50_000, "%2e%2e/")]),
    "accept": _body("{}", accept=times(10_000, "a/b;q=0.1, ")),
    "headers": _body("{}", headers={"count": 3_000, "of": "\r\nx<i>: y"}),
    "long-header": _body("{}", headers=["\r\nx: ", times(60_000, "y")]),
    "origin": _body("{}", headers=["\r\nOrigin: ", times(50_000, "http://")]),
    "session": _body("{}", headers=["\r\nMcp-Session-Id: ", times(50_000, "s")]),
}
WORDS = (
    '"jsonrpc":"2.0"',
    '"id":1',
    '"method":"tools/call"',
    '"params":{',
    '"name":"execute"',
    '"arguments":{',
    '"code":"',
    '"query":"',
    '"paths":[',
    "tools.",
    "list_things_1",
    "emit(",
    "return ",
    "await ",
    *PUNCTUATION,
    "\\\\u0301",
    "\\\\ud800",
    "9",
    "1e9",
    "\u0345",
    *("\r\n", "Transfer-Encoding: chunked", "Content-Length: 5", "; q=0.1", "%2e", "..", "a."),
)
ENTRANCE = Entrance(
    "requests", __name__, opened, SEEDS, _call("execute", '"code":"await tools.search(\'a\'); return 1"'), WORDS, 3 * MIB
)
