"""Replies of services and MCP servers to calls and to `fetch`: their bodies and headers, and near misses of the secret that was sent."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fuzz.definitions import INTROSPECTED
from fuzz.stall.definitions import source_config
from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take
from fuzz.stall.programs import MARKS
from fuzz.stall.recipe import PUNCTUATION, many, nest, times
from fuzz.stall.service import Service, service
from gloveport import EgressRule, Gloveport

SECRET = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx-jM0NTY_Odkw-n0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_ad-ss_5c-K1_a-Zq_8-X_p-2_Y-r_T-1_M-s_B"
ODD_SECRET = "k3y-" + "_.~+/=!*" * 4 + "-end"  # most characters are neither letters nor digits
OPENAPI = {
    "openapi": "3.1.0",
    "security": [{"token": [], "key": []}],
    "components": {
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        }
    },
    "paths": {
        "/reply": {"get": {"operationId": "fetch_reply", "responses": {"200": {"content": {"application/json": {}}}}}}
    },
}
TOOLS = b'{"tools":[{"name":"get","inputSchema":{"type":"object"}}]}'
PROGRAMS = {
    "http": "await tools.http.reply.fetch_reply(); return 1",
    "graphql": "await tools.graphql.e(); return 1",
    "mcp": "await tools.mcp.get(); return 1",
    "mcp-stdio": "await tools.stdio.get(); return 1",
    "fetch": "await fetch(`${input}/fetch`); return 1",
}
FILES = {"mcp": "tools.call", "mcp-stdio": "tools.call"}
LIMITS = {"wall_seconds": 60, "cpu_seconds": 10}


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Call a tool of each kind of source from a program; the service answers with the input."""
    os.environ["STALL_TOKEN"], os.environ["STALL_KEY"] = SECRET, ODD_SECRET
    async with service() as hostile:
        rules = [EgressRule(hostile.url, "allow", allow_private=True)]
        async with Gloveport(sources=_sources(hostile), rules=rules) as port:

            async def take(document: Document) -> Attack:
                kind, body = document["kind"], document["body"].encode("utf-8", "surrogatepass")
                program = PROGRAMS[kind]
                if kind in FILES:
                    hostile.put(FILES[kind], body)
                else:
                    name = "reply" if kind == "http" else kind
                    status = document.get("status", 200)
                    hostile.put_reply(
                        name, body, document.get("media", "application/json"), int(status), document.get("headers", "")
                    )

                async def attack() -> Refusal | None:
                    return Refusal.ending(await port.run(program, limits=LIMITS, input=hostile.url))

                return attack

            yield take


def _sources(hostile: Service) -> list[Any]:
    secrets = {"credentials": {"token": "env:STALL_TOKEN", "key": "env:STALL_KEY"}, "timeout_seconds": 10}
    http = source_config(hostile, "openapi-file", json.dumps(OPENAPI).encode(), **secrets)
    schema = hostile.put("introspected.json", b'{"data":%b}' % INTROSPECTED)
    graphql = replace(
        http,
        name="graphql",
        kind="graphql",
        location=str(schema),
        base_url=f"{hostile.url}/graphql",
        credentials={"token": "env:STALL_TOKEN"},
    )
    mcp = source_config(hostile, "mcp", TOOLS)
    stdio = replace(source_config(hostile, "mcp-stdio", TOOLS), name="stdio")
    # Without labels: nobody is there to be asked after private and untrusted data was read.
    return [
        replace(source, labels=("not private", "not untrusted"))
        for source in (replace(http, name="http"), graphql, replace(mcp, name="mcp"), stdio)
    ]


def _http(*body: Any, **more: Any) -> Document:
    return {"kind": "http", "body": list(body), **more}


def _fetch(*body: Any, **more: Any) -> Document:
    return {"kind": "fetch", "body": list(body), **more}


def _graphql(*body: Any) -> Document:
    return {"kind": "graphql", "body": list(body)}


def _mcp(*body: Any, kind: str = "mcp") -> Document:
    return {"kind": kind, "body": list(body)}


def _misses(secret: str, number: int, spell: Any = lambda each: each) -> list[Any]:
    """A text that has the secret many times, without its last character."""
    return ['"', times(number, ["".join(map(spell, secret[:-1])), " "]), '"']


def _backslash(each: str) -> str:
    return each if each.isalnum() else f"\\\\{each}"


def _percent(each: str) -> str:
    return each if each.isalnum() else f"%{ord(each):02x}"


def _twice(each: str) -> str:
    return each if each.isalnum() else f"%25{ord(each):02x}"


def _json(each: str) -> str:
    return each if each.isalnum() else f"\\\\u{ord(each):04x}"


def _html(each: str) -> str:
    return each if each.isalnum() else f"&amp;#{ord(each)};"


SEEDS: dict[str, Document] = {
    # known way: near misses of a secret
    "escaped-near-miss": _http(_misses(SECRET, 1, _backslash)),
    "odd-escaped-near-miss": _http(_misses(ODD_SECRET, 1, _backslash)),
    "graphql-escaped-near-miss": _graphql('{"data":{"e":', _misses(SECRET, 1, _backslash), "}}"),
    # more of them
    "near-miss": _http(_misses(SECRET, 3_000)),
    "odd-near-miss": _http(_misses(ODD_SECRET, 3_000)),
    "odd-near-miss-percent": _http(_misses(ODD_SECRET, 1_000, _percent)),
    "odd-near-miss-twice": _http(_misses(ODD_SECRET, 1_000, _twice)),
    "odd-near-miss-json": _http(_misses(ODD_SECRET, 1_000, _json)),
    "odd-near-miss-html": _http(_misses(ODD_SECRET, 1_000, _html)),
    "near-miss-backslashes": _http('"', times(300, ["k3y", times(300, "\\\\"), "-_"]), '"'),
    "near-miss-one": _http('"k3y-', times(40, "%5c%5c"), "_.~+/=!*_.~+/=!*_.~+/=!*_.~+/=!*-enX", '"'),
    "anchors": _http('"', times(300_000, "k3y"), '"'),
    "jwt-anchors": _http('"', times(100_000, "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"), '"'),
    "header-near-miss": _http("1", headers=["x-a: ", times(500, ODD_SECRET[:-1]), "\r\n"]),
    "graphql-near-miss": _graphql('{"data":{"e":', _misses(SECRET, 3_000), "}}"),
    "mcp-near-miss": _mcp('{"content":[{"type":"text","text":', _misses(SECRET, 3_000), "}]}"),
    "secrets": _http('"', times(100_000, [ODD_SECRET, " "]), '"'),
    "percent-signs": _http('"', times(1_000_000, "%25"), '"'),
    "ampersands": _http('"k3y', times(500_000, "&amp;"), '"'),
    "escaped-ampersands": _http('"k3y', times(500_000, "%26amp%3b"), '"'),
    "slashes-and-anchors": _http('"', times(50_000, "\\\\k3y-_"), '"'),
    "hash-zeros": _http('"k3y&#', times(2_000_000, "0"), '"'),
    # JSON bodies
    "keys": _http("{", many(1_000_000, '"k<i>":1'), "}"),
    "numbers": _http("[", many(4_000_000, "1"), "]"),
    "objects": _http("[", many(400_000, "{}"), "]"),
    "records": _http("[", many(200_000, '{"id":<i>,"name":"n<i>"}'), "]"),
    "text": _http('"', times(15_000_000, "x"), '"'),
    "marks": _http('"', times(2_000_000, MARKS), '"'),
    "escapes": _http('"', times(2_000_000, "\\u0301"), '"'),
    "wide-integer": _http(times(4_000_000, "9")),
    "wide-integers": _http("[", many(3_000, times(4_000, "9")), "]"),
    "long-floats": _http("[", many(3_000, ["0.", times(4_000, "1")]), "]"),
    "depth": _http(nest(1_000_000, "[", "", "]")),
    "nests": _http("[", {"times": 3_000, "of": nest(100, "[", "1", "]"), "join": ","}, "]"),
    "commas": _http('"', times(15_000_000, ","), '"'),
    "quotes": _http(times(8_000_000, '"')),
    "spaces": _http(times(15_000_000, " "), "1"),
    "surrogates": _http('"', times(2_000_000, "\\ud800"), '"'),
    "same-keys": _http("{", times(1_000_000, '"a":1,'), '"b":1}'),
    # other bodies and headers
    "plain-text": _http(times(15_000_000, "x"), media="text/plain"),
    "bad-utf-8": _http(times(5_000_000, "\ud800"), media="text/plain"),
    "charset": _http(times(3_000_000, "\u00e9-"), media="text/plain; charset=punycode"),
    "gb18030": _http(times(3_000_000, "\u00e9"), media="text/plain; charset=gb18030"),
    "media-type": _http("1", media=["application/", times(50_000, "a-")]),
    "media-parameters": _http("1", media=["application/json", times(10_000, '; a="b"')]),
    "headers": _http("1", headers={"count": 90, "of": ["x-a<i>: ", times(500, "a"), "\r\n"]}),
    "link-header": _http("1", headers=["link: ", times(5_000, "<http://a/b>; "), "\r\n"]),
    "http-error": _http('{"message":"', times(3_000_000, "x"), '"}', status=500),
    "http-error-object": _http("{", many(500_000, '"k<i>":"v"'), "}", status=404),
    "http-error-html": _http(times(3_000_000, "<a "), status=502, media="text/html"),
    "http-error-marks": _http('{"error":{"message":"', times(500_000, MARKS), '"}}', status=400),
    "redirect": _http("", status=302, headers=["location: /", times(50_000, "../"), "\r\n"]),
    "events": _http(times(1_000_000, "data: x\n\n"), media="text/event-stream"),
    # fetch of a program
    "fetch-text": _fetch(times(11_000_000, "x")),
    "fetch-too-large": _fetch(times(15_000_000, "\u00e9")),
    "fetch-headers": _fetch("1", headers={"count": 90, "of": ["x-a<i>: ", times(1_000, "\u00e9"), "\r\n"]}),
    "fetch-same-headers": _fetch("1", headers={"count": 95, "of": ["x-a: ", times(500, ","), "\r\n"]}),
    "fetch-redirect": _fetch("", status=302, headers=["location: ", times(30_000, "../"), "\r\n"]),
    # GraphQL
    "graphql-data": _graphql('{"data":{"e":{', many(500_000, '"k<i>":1'), "}}}"),
    "graphql-errors": _graphql('{"errors":[', many(100_000, '{"message":"m<i>"}'), "]}"),
    "graphql-message": _graphql('{"errors":[{"message":"', times(3_000_000, "\u200b"), '"}]}'),
    "graphql-message-list": _graphql('{"errors":[{"message":[', many(1_000_000, "1"), "]}]}"),
    "graphql-path": _graphql('{"errors":[{"message":"m","path":[', many(500_000, '"p<i>"'), "]}]}"),
    "graphql-steps": _graphql('{"errors":[{"message":"m","path":[{', many(500_000, '"p<i>":1'), "}]}]}"),
    "graphql-http-error-spaces": {**_graphql("\u00e9", times(17_000, " "), "x"), "status": 500},
    "graphql-message-spaces": _graphql('{"errors":[{"message":"\u00e9', times(17_000, " "), 'x"}]}'),
    # MCP
    "mcp-error-spaces": _mcp('{"isError":true,"content":[{"type":"text","text":"\u00e9', times(17_000, " "), 'x"}]}'),
    "mcp-text": _mcp('{"content":[{"type":"text","text":"', times(15_000_000, "x"), '"}]}'),
    "mcp-parts": _mcp('{"content":[', many(100_000, '{"type":"text","text":"t<i>"}'), "]}"),
    "mcp-json-text": _mcp('{"content":[{"type":"text","text":"[', many(2_000_000, "1"), ']"}]}'),
    "mcp-structured": _mcp('{"content":[],"structuredContent":{', many(500_000, '"k<i>":1'), "}}"),
    "mcp-image": _mcp('{"content":[{"type":"image","mimeType":"image/png","data":"', times(2_000_000, "AAAA"), '"}]}'),
    "mcp-error": _mcp('{"isError":true,"content":[{"type":"text","text":"', times(3_000_000, "\u200b/"), '"}]}'),
    "mcp-depth": _mcp('{"content":[],"structuredContent":{"a":', nest(100_000, "[", "", "]"), "}}"),
    "mcp-nests": _mcp(
        '{"content":[],"structuredContent":{"a":[',
        {"times": 2_000, "of": nest(100, "[", "1", "]"), "join": ","},
        "]}}",
    ),
    "mcp-extra": _mcp('{"content":[],', many(300_000, '"k<i>":1'), "}"),
    "mcp-stdio-text": _mcp('{"content":[{"type":"text","text":"', times(8_000_000, "x"), '"}]}', kind="mcp-stdio"),
    "mcp-stdio-structured": _mcp('{"content":[],"structuredContent":{', many(500_000, '"k<i>":1'), "}}", kind="mcp-stdio"),
    "mcp-stdio-parts": _mcp('{"content":[', many(100_000, '{"type":"text","text":"t<i>"}'), "]}", kind="mcp-stdio"),
}
WORDS = (
    SECRET,
    ODD_SECRET,
    "k3y",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
    "%25",
    "%5c",
    "\\\\",
    "&amp;",
    "&#",
    "u005c",
    "%2B",
    "0",
    ";",
    '{"content":[',
    '"structuredContent":{',
    '{"type":"text","text":"',
    '{"errors":[',
    '{"data":{"e":',
    '"message":"',
    '"path":[',
    *PUNCTUATION,
    "\\u0301",
    "\\ud800",
    "1e9",
    "9",
    "text/plain",
    "; charset=",
    "gzip",
    "\u0345",
    "\r\n",
)
ENTRANCE = Entrance("replies", __name__, opened, SEEDS, _http('{"a":1}'), WORDS, 24 * MIB)
