"""Definitions of all kinds, from a hostile service: they are compiled, put into the catalog, and shown to an agent."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fuzz.definitions import DISCOVERY, INTROSPECTED, OPENAPI, SDL, SWAGGER, YAML
from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take, use_empty_folders
from fuzz.stall.programs import MARKS
from fuzz.stall.recipe import many, nest, times
from fuzz.stall.service import Service, service
from gloveport import Gloveport
from gloveport.bridge import Bridge
from gloveport.catalog.declarations import declarations
from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.host import source_opener
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.large_values import off_loop
from gloveport.sandbox.tasks.task_process import Answer
from gloveport.surfaces.agents.tool_descriptions import MAX_DESCRIBED_TOOLS
from gloveport.surfaces.agents.tools import AgentTools

DEFECT = re.compile(r"could not be opened: \w+")  # the message about an error that is not one of ours
MAX_SHOWN_TOOLS = 5


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Open each text as the definition of a source, and ask for its tools as an agent would."""
    async with service() as hostile, warm_compilers():

        async def take(document: Document) -> Attack:
            use_empty_folders()
            if "before" in document:  # a definition that was accepted, and has changed since
                await _accept(source_config(hostile, document["kind"], document["before"].encode("utf-8", "surrogatepass")))
            config = source_config(hostile, document["kind"], document["text"].encode("utf-8", "surrogatepass"))

            async def attack() -> Refusal | None:
                port = Gloveport(sources=[config], plugins=["utcp"], spare=0)
                try:
                    await port.connect()
                    await _show(port)
                    if document.get("search"):
                        await _search(port)
                    return refusal_of(port)
                finally:
                    await port.close()

            return attack

        yield take


@asynccontextmanager
async def warm_compilers() -> AsyncIterator[None]:
    """Share the compiler zygotes between all ports: each takes half a second to start."""
    compilers = DefinitionTasks("kernel")

    class Shared(DefinitionTasks):
        """The compilers of one port, which stay when it is closed."""

        async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
            return await compilers.run(task, parts, answer=answer)

    source_opener.DefinitionTasks = Shared
    try:
        yield
    finally:
        source_opener.DefinitionTasks = DefinitionTasks
        await compilers.close()


async def _accept(config: SourceConfig) -> None:
    port = Gloveport(sources=[config], spare=0)
    await port.connect()
    await port.close()


def source_config(hostile: Service, kind: str, data: bytes, **options: Any) -> SourceConfig:
    """Return the settings of a source whose definition is these bytes; raises ValueError for an unknown kind."""
    options = {"allow_private": True, "writes": "allow", **options}
    match kind:
        case "openapi":
            hostile.put_reply("openapi", data)
            return SourceConfig("api", "openapi", f"{hostile.url}/openapi", base_url=hostile.url, **options)
        case "openapi-file":
            return SourceConfig("api", "openapi", str(hostile.put("openapi.json", data)), base_url=hostile.url, **options)
        case "utcp":
            hostile.put_reply("utcp", data)
            return SourceConfig("api", "utcp", f"{hostile.url}/utcp", **options)
        case "utcp-file":
            return SourceConfig("api", "utcp", str(hostile.put("manual.json", data)), **options)
        case "graphql-file":
            url = f"{hostile.url}/graphql"
            return SourceConfig("api", "graphql", str(hostile.put("schema.graphql", data)), base_url=url, **options)
        case "graphql":
            hostile.put_reply("graphql", data)
            return SourceConfig("api", "graphql", f"{hostile.url}/graphql", **options)
        case "mcp":
            hostile.put("tools.list", data)
            return SourceConfig("api", "mcp", f"{hostile.url}/mcp", **options)
        case "mcp-stdio":
            hostile.put("tools.list", data)
            return SourceConfig("api", "mcp", hostile.stdio, writes="allow")
    raise ValueError(f"no kind of definition: {kind!r:.40}")


def refusal_of(port: Gloveport) -> Refusal | None:
    """Return why the source could not be opened, or None."""
    for problem in port.problems:
        if problem.broken:
            return Refusal("internal-error" if DEFECT.search(problem.message) else "source-failed", problem.message)
    return None


async def _show(port: Gloveport) -> None:
    """Ask about a few tools, as an agent, its programs and their type checker do."""
    agent, asked = AgentTools(port), Bridge(port.catalog).for_run(port.limits)
    paths = [port.catalog.path_of(tool) for tool in port.catalog.tools[:MAX_DESCRIBED_TOOLS]]
    for path in paths[:MAX_SHOWN_TOOLS]:
        await asked.call_sync("describe", [path])
        with suppress(ToolError):
            await asked.call_sync("describe", [f"{path}x"])
    for language in ("typescript", "python"):
        code = ";".join(f"tools.{path}()" for path in paths)
        await off_loop(declarations, port.catalog, code, language)
        for described in (paths, [f"{path}x" for path in paths]) if paths else ():
            await agent.call("describe", {"paths": described, "language": language})
    await asked.call_sync("names", [])
    await asked.call_sync("interfaces", [])


async def _search(port: Gloveport) -> None:
    """Search for the words of a tool, as an agent and its programs do."""
    tool = port.catalog.tools[0] if port.catalog.tools else None
    for query in ("list things", *((tool.address, tool.description[:400]) if tool else ())):
        await AgentTools(port).call("search", {"query": query})
        await Bridge(port.catalog).for_run(port.limits).call_sync("search", [query])


def _openapi(*text: Any) -> Document:
    return {"kind": "openapi", "text": list(text)}


def _paths(*paths: Any) -> Document:
    return _openapi('{"openapi":"3.1.0","info":{},"paths":{', *paths, "}}")


def _schemas(*schemas: Any, used: str = "A0") -> Document:
    """A definition whose only operation takes and returns one of these schemas."""
    body = f'{{"content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{used}"}}}}}}}}'
    operation = f'{{"operationId":"send","requestBody":{body},"responses":{{"200":{body}}}}}'
    start = f'{{"openapi":"3.1.0","info":{{}},"paths":{{"/send":{{"post":{operation}}}}},"components":{{"schemas":{{'
    return _openapi(start, *schemas, "}}}")


def _sdl(*text: Any) -> Document:
    return {"kind": "graphql-file", "text": list(text)}


def _mcp(*tools: Any, kind: str = "mcp") -> Document:
    return {"kind": kind, "text": ['{"tools":[', *tools, "]}"]}


def _utcp(*tools: Any) -> Document:
    return {"kind": "utcp", "text": ['{"utcp_version":"1.0","tools":[', *tools, "]}"]}


def _utcp_tool(name: Any, url: Any, inputs: Any = '{"type":"object"}', more: Any = "") -> list[Any]:
    called = ['{"call_template_type":"http","http_method":"GET","url":"http://127.0.0.1:9', url, '"', more, "}"]
    return ['{"name":"', name, '","inputs":', inputs, ',"tool_call_template":', *called, "}"]


def _tool(name: Any, schema: Any = '{"type":"object"}', description: Any = "") -> list[Any]:
    return ['{"name":"', name, '","description":"', description, '","inputSchema":', schema, "}"]


GET = '{"get":{"responses":{}}}'
NESTED = (
    f'{{"type":"array","description":"{"x y" * 20}","items":{{"type":"object","properties":{{"a":{{"type":"integer"}}}}}}}}'
)
COMMON_WORDS = " ".join(f"aa{one}{two}" for one in "abcdef" for two in "abcdefgh")
SEEDS: dict[str, Document] = {
    # known ways
    "openapi-version-path": _paths('"/v', times(28, "1"), f'x/y":{GET}'),
    "openapi-marks-operation": _paths('"/a":{"get":{"operationId":"a', times(20_000, "\u0345\u0301"), '","responses":{}}}'),
    "openapi-marks-path": _paths('"/a', times(20_000, "\u0345\u0301"), f'":{GET}'),
    "openapi-file-version-path": {**_paths('"/v', times(28, "1"), f'x/y":{GET}'), "kind": "openapi-file"},
    "openapi-long-names": _paths('"/a":{"get":{"operationId":"a', times(40_000, "\ufdfa"), '","responses":{}}}'),
    # OpenAPI
    "openapi": _openapi(json.dumps(OPENAPI)),
    "swagger": _openapi(json.dumps(SWAGGER)),
    "discovery": _openapi(json.dumps(DISCOVERY)),
    "yaml": _openapi(YAML.decode()),
    "openapi-paths": _paths(many(5_000, f'"/p<i>/{{id}}":{GET}')),
    "openapi-path-parts": _paths('"', times(100_000, "/a"), f'":{GET}'),
    "openapi-path-parameters": _paths('"', {"count": 2_000, "of": "/{a<i>}"}, f'":{GET}'),
    "openapi-path-digits": _paths('"/', times(100_000, "1a"), f'":{GET}'),
    "openapi-path-braces": _paths('"/', times(100_000, "{"), f'":{GET}'),
    "openapi-parameters": _paths(
        '"/a":{"get":{"parameters":[', many(5_000, '{"name":"p<i>","in":"query","schema":{}}'), '],"responses":{}}}'
    ),
    "openapi-properties": _schemas('"A0":{"type":"object","properties":{', many(20_000, '"p<i>":{"type":"string"}'), "}}"),
    "openapi-references": _schemas(many(5_000, '"A<i>":{"$ref":"#/components/schemas/A<j>"}')),
    "openapi-fan-out": _schemas(
        many(200, '"A<i>":{"anyOf":[{"$ref":"#/components/schemas/A<j>"},{"$ref":"#/components/schemas/A<j>"}]}')
    ),
    "openapi-all-of": _schemas(
        many(
            100,
            '"A<i>":{"allOf":[{"$ref":"#/components/schemas/A<j>"},{"$ref":"#/components/schemas/A<j>"}],"properties":{"a<i>":{}}}',
        )
    ),
    "openapi-nesting": _schemas('"A0":', nest(2_000, '{"properties":{"a":', "{}", "}}")),
    "openapi-enum": _schemas('"A0":{"enum":[', many(100_000, '"v<i>"'), "]}"),
    "openapi-description": _paths('"/a":{"get":{"description":"', times(2_000_000, "x"), '","responses":{}}}'),
    "openapi-marks-description": _paths('"/a":{"get":{"description":"', times(500_000, MARKS), '","responses":{}}}'),
    "openapi-lines-description": _paths('"/a":{"get":{"description":"', times(500_000, "\\n \\t"), '","responses":{}}}'),
    "openapi-description-spaces": _paths('"/a":{"get":{"description":"\u00e9', times(17_000, " "), 'x","responses":{}}}'),
    "openapi-tags": _paths('"/a":{"get":{"tags":[', many(50_000, '"t<i>"'), '],"responses":{}}}'),
    "openapi-servers": _openapi(
        '{"openapi":"3.1.0","paths":{},"servers":[', many(20_000, '{"url":"https://a<i>.example"}'), "]}"
    ),
    "openapi-server-variables": _openapi(
        '{"openapi":"3.1.0","paths":{},"servers":[{"url":"https://', times(50_000, "{a}"), '"}]}'
    ),
    "openapi-security": _openapi(
        '{"openapi":"3.1.0","paths":{"/a":', GET, '},"security":[', many(20_000, '{"s<i>":[]}'), "]}"
    ),
    "openapi-responses": _paths('"/a":{"get":{"responses":{', many(20_000, '"<i>":{"description":""}'), "}}}"),
    "openapi-media-types": _paths('"/a":{"get":{"responses":{"200":{"content":{', many(20_000, '"a/b<i>":{}'), "}}}}}"),
    "openapi-similar-names": _paths(many(3_000, '"/p<i>":{"get":{"operationId":"same","responses":{}}}')),
    "openapi-numbers": _openapi('{"openapi":"3.1.0","paths":{},"x":', times(1_000_000, "9"), "}"),
    "openapi-depth": _openapi(nest(500_000, "[", "", "]")),
    "openapi-pointers": _schemas('"A0":{"$ref":"#', times(200_000, "/a"), '"}'),
    "openapi-percent-pointers": _schemas('"A0":{"$ref":"#/', times(200_000, "%41"), '"}'),
    "openapi-tilde-pointers": _schemas('"A0":{"$ref":"#/', times(200_000, "~0~1"), '"}'),
    "yaml-aliases": _openapi("openapi: 3.0.0\na0: &a0 [x]\n", {"count": 25, "of": "a<j>: &a<j> [*a<i>, *a<i>]\n"}),
    "yaml-merges": _openapi("openapi: 3.0.0\na0: &a0 {x: 1}\n", {"count": 2_000, "of": "a<j>: &a<j> {<<: *a<i>}\n"}),
    "yaml-flow": _openapi("openapi: 3.0.0\na: ", nest(10_000, "[", "", "]")),
    "yaml-indents": _openapi("openapi: 3.0.0\n", {"count": 240, "of": "- "}),
    "yaml-keys": _openapi("openapi: 3.0.0\n", {"count": 30_000, "of": "k<i>: v\n"}),
    "yaml-scalars": _openapi("openapi: 3.0.0\na: ", times(300_000, "1_"), "\n"),
    "yaml-sexagesimal": _openapi("openapi: 3.0.0\na: ", times(200_000, "1:"), "1\n"),
    "yaml-quotes": _openapi("openapi: 3.0.0\na: '", times(500_000, "''"), "\n"),
    "yaml-comments": _openapi("openapi: 3.0.0\n", times(300_000, "# \n")),
    "yaml-anchors": _openapi("openapi: 3.0.0\n", {"count": 20_000, "of": "- &a<i> b\n"}),
    "discovery-resources": _openapi(
        '{"kind":"discovery#restDescription","rootUrl":"https://a.example/","resources":',
        nest(2_000, '{"r":{"resources":', "{}", "}}"),
        "}",
    ),
    "swagger-definitions": _openapi(
        '{"swagger":"2.0","paths":{"/a":{"post":{"parameters":[{"in":"body","name":"b","schema":{"$ref":"#/definitions/A0"}}],"responses":{}}}},"definitions":{',
        many(3_000, '"A<i>":{"properties":{"n":{"$ref":"#/definitions/A<j>"}}}'),
        "}}",
    ),
    "openapi-search": {**_openapi(json.dumps(OPENAPI)), "search": True},
    "openapi-search-paths": {**_paths(many(5_000, f'"/p<i>/{{id}}":{GET}')), "search": True},
    # GraphQL
    "sdl": _sdl(SDL.decode()),
    "introspection": {"kind": "graphql", "text": ['{"data":', INTROSPECTED.decode(), "}"]},
    "sdl-fields": _sdl("type Query {", {"count": 10_000, "of": " f<i>: Int"}, "}"),
    "sdl-arguments": _sdl("type Query { f(", {"count": 5_000, "of": " a<i>: Int"}, "): Int }"),
    "sdl-types": _sdl("type Query { f: A0 }", {"count": 5_000, "of": " type A<i> { n: A<j> m: A<j> }"}, " scalar A5000"),
    "sdl-inputs": _sdl(
        "type Query { f(a: I0): Int }", {"count": 3_000, "of": " input I<i> { n: I<j> m: I<j> }"}, " input I3000 { a: Int }"
    ),
    "sdl-interfaces": _sdl(
        "type Query { f: N0 }",
        {"count": 300, "of": " interface N<i> { a: Int }"},
        " type T implements ",
        {"count": 300, "of": "N<i>", "join": " & "},
        " { a: Int }",
    ),
    "sdl-union": _sdl(
        "type Query { f: U } union U = ",
        {"count": 3_000, "of": "T<i>", "join": "|"},
        {"count": 3_000, "of": " type T<i> { a: Int }"},
    ),
    "sdl-lists": _sdl("type Query { f: ", nest(10_000, "[", "Int", "]"), " }"),
    "sdl-values": _sdl("type Query { f(a: [Int] = ", nest(10_000, "[", "1", "]"), "): Int }"),
    "sdl-strings": _sdl('"""', times(300_000, '\\"""'), '""" type Query { f: Int }'),
    "sdl-block-lines": _sdl('"""', times(100_000, "\n a"), '""" type Query { f: Int }'),
    "sdl-escapes": _sdl('"', times(200_000, "\\u0041"), '" type Query { f: Int }'),
    "sdl-enum": _sdl("enum E {", {"count": 20_000, "of": " V<i>"}, "} type Query { f: E }"),
    "sdl-misspelt": _sdl(
        "type Query {", {"count": 500, "of": " f<i>: Typ<i>"}, "}", {"count": 2_000, "of": " scalar Type<i>"}
    ),
    "sdl-directives": _sdl("type Query { f: Int", times(20_000, " @deprecated"), "}"),
    "sdl-extends": _sdl("type Query { f: Int }", {"count": 5_000, "of": " extend type Query { f<i>: Int }"}),
    "sdl-commas": _sdl(times(1_000_000, ","), "type Query { f: Int }"),
    "sdl-braces": _sdl(times(300_000, "{")),
    # MCP
    "mcp-tools": _mcp(many(9_000, _tool("t<i>"))),
    "mcp-changed-list": {**_mcp(many(500, _tool("u<i>"))), "before": _mcp(many(9_000, _tool("t<i>")))["text"]},
    "mcp-long-name": _mcp(_tool(times(1_000_000, "a"))),
    "mcp-marks-name": _mcp(_tool(["a", times(40_000, "\u0345\u0301")])),
    "mcp-ligature-names": _mcp(many(500, _tool([times(200, "\ufdfa"), "<i>"]))),
    "mcp-same-names": _mcp(many(9_000, _tool("same"))),
    "mcp-confusable-names": _mcp(many(3_000, _tool("g\u0435t-t<i>"))),
    "mcp-description": _mcp(_tool("t", description=times(2_000_000, "x\\n"))),
    "mcp-description-spaces": _mcp(_tool("t", description=["\u00e9", times(17_000, " "), "x"])),
    "mcp-marks-description": _mcp(_tool("t", description=times(300_000, MARKS))),
    "mcp-nested-schema": _mcp(_tool("t", nest(2_000, '{"type":"object","properties":{"a":', "{}", "}}"))),
    "mcp-wide-schema": _mcp(_tool("t", ['{"type":"object","properties":{', many(5_000, '"p<i>":{"type":"string"}'), "}}"])),
    "mcp-wide-schemas": _mcp(
        many(
            40,
            _tool("t<i>", ['{"type":"object","properties":{', many(220, f'"p<i>":{{"anyOf":[{NESTED},{NESTED}]}}'), "}}"]),
        )
    ),
    "mcp-changed-schemas": {
        **_mcp(many(40, _tool("t<i>"))),
        "before": _mcp(
            many(40, _tool("t<i>", ['{"type":"object","properties":{', many(400, f'"p<i>":{NESTED}'), "}}"])),
        )["text"],
    },
    "mcp-long-names": {**_mcp(many(9_000, _tool(["t<i>", times(180, "a")]))), "search": True},
    "mcp-common-words": {**_mcp(many(9_000, _tool("t<i>", description=COMMON_WORDS))), "search": True},
    # UTCP
    "utcp": _utcp(_utcp_tool("a", "/a")),
    "utcp-file": {**_utcp(_utcp_tool("a", "/a")), "kind": "utcp-file"},
    "utcp-tools": _utcp(many(9_000, _utcp_tool("t<i>", "/a<i>"))),
    "utcp-places": _utcp(
        _utcp_tool(
            "a",
            ["/", {"count": 40_000, "of": "{p<i>}"}],
            ['{"type":"object","properties":{', many(40_000, '"p<i>":{}'), "}}"],
        )
    ),
    "utcp-braces": _utcp(_utcp_tool("a", ["/", times(1_000_000, "{")])),
    "utcp-schemes": _utcp(
        many(4_900, _utcp_tool("t<i>", "/a<i>", more=',"auth":{"auth_type":"api_key","var_name":"X-<i>"}'))
    ),
    "utcp-marks": _utcp(_utcp_tool(["a", times(300_000, "\u0345\u0301")], ["/", times(300_000, "\u0345\u0301")])),
    "utcp-inputs": _utcp(_utcp_tool("a", "/a", nest(2_000, '{"properties":{"a":', "{}", "}}"))),
    "utcp-headers": _utcp(_utcp_tool("a", "/a", more=[',"headers":{', many(90_000, '"h<i>":"v"'), "}"])),
    "utcp-keys": _utcp("{", many(300_000, '"k<i>":1'), "}"),
    "mcp-patterns": _mcp(
        _tool(
            "t",
            ['{"type":"object","properties":{', many(600, '"p<i>":{"type":"string","pattern":"^\\\\p{L}{60}$"}'), "}}"],
        )
    ),
    "mcp-fan-out": _mcp(
        _tool(
            "t",
            [
                '{"type":"object","$defs":{',
                many(200, '"A<i>":{"anyOf":[{"$ref":"#/$defs/A<j>"},{"$ref":"#/$defs/A<j>"}]}'),
                ',"A200":{}},"properties":{"a":{"$ref":"#/$defs/A0"}}}',
            ],
        )
    ),
    "mcp-numbers": _mcp(_tool("t", ['{"type":"object","minProperties":', times(500_000, "9"), "}"])),
    "mcp-depth": _mcp(nest(300_000, "[", "", "]")),
    "mcp-items": _mcp(many(300_000, "1")),
    "mcp-stdio-tools": _mcp(many(3_000, _tool("t<i>")), kind="mcp-stdio"),
    "mcp-stdio-spaces": _mcp(times(8_000_000, " "), kind="mcp-stdio"),
    "mcp-stdio-marks-name": _mcp(_tool(["a", times(40_000, "\u0345\u0301")]), kind="mcp-stdio"),
}
WORDS = (
    '"$ref":"#/components/schemas/A0"',
    '"$anchor":"a"',
    '"$id":"x"',
    '"allOf":[',
    '"anyOf":[',
    '"properties":{',
    '"pattern":"',
    '"enum":[',
    '"type":"object"',
    '"items":',
    '"operationId":"',
    '"parameters":[',
    "{a}",
    "/v1",
    "&a ",
    "*a",
    "<<: ",
    "- ",
    ": ",
    "\n",
    "  ",
    "type ",
    "input ",
    "interface ",
    "implements ",
    "union ",
    "enum ",
    "[",
    "]",
    "{",
    "}",
    "!",
    "@",
    '"""',
    "\u0345",
    "\ufdfa",
    "9",
    "%25",
    "~1",
)
ENTRANCE = Entrance("definitions", __name__, opened, SEEDS, _openapi(json.dumps(OPENAPI)), WORDS, 8 * MIB)
