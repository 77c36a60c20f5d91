"""Schemas of a hostile definition with arguments of a hostile program: the validator, and the explanation of what is wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fuzz.stall.definitions import refusal_of, source_config, warm_compilers
from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take, use_empty_folders
from fuzz.stall.recipe import PUNCTUATION, many, nest, times
from fuzz.stall.service import service
from gloveport import Gloveport, bounded_json
from gloveport.errors import GloveportError
from gloveport.sandbox.wire import MESSAGE_LIMITS

TOO_DEEP = "the arguments of a mutation are no JSON object"


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Define a tool with each schema, and call it with the arguments."""
    async with service() as hostile, warm_compilers():
        hostile.put("tools.call", b'{"content":[]}')
        hostile.put_reply("send", b"{}")
        ports: list[Gloveport] = []

        async def take(document: Document) -> Attack:
            while ports:
                await ports.pop().close()
            sent = document["arguments"].encode("utf-8", "surrogatepass")
            try:
                bounded_json.check(sent, MESSAGE_LIMITS)
            except bounded_json.JsonLimitError:
                raise ValueError("a program can't send so much") from None
            args = json.loads(sent)
            if not isinstance(args, dict):
                raise ValueError(TOO_DEEP)
            kind, schema = document["kind"], document["schema"]
            text = _tool_list(schema) if kind == "mcp" else _operation(schema)
            config = source_config(hostile, kind, text.encode("utf-8", "surrogatepass"))
            use_empty_folders()
            port = Gloveport(sources=[config], spare=0)
            ports.append(port)

            async def attack() -> Refusal | None:
                await port.connect()
                try:
                    if (broken := refusal_of(port)) is not None:
                        return broken
                    await port.call("api.send", args)
                except GloveportError as error:
                    return Refusal.of(error)
                return None

            return attack

        yield take
        while ports:
            await ports.pop().close()


def _tool_list(schema: str) -> str:
    return f'{{"tools":[{{"name":"send","inputSchema":{schema}}}]}}'


def _operation(schema: str) -> str:
    body = f'{{"required":true,"content":{{"application/json":{{"schema":{schema}}}}}}}'
    return f'{{"openapi":"3.1.0","paths":{{"/send":{{"post":{{"operationId":"send","requestBody":{body},"responses":{{}}}}}}}}}}'


def _mcp(schema: Any, *arguments: Any) -> Document:
    return {"kind": "mcp", "schema": schema, "arguments": list(arguments)}


def _value(schema: Any, *value: Any, **more: Any) -> Document:
    """A tool whose argument `a` has this schema; `defs` are definitions beside it."""
    defs = ['"$defs":{', more["defs"], "},"] if "defs" in more else ""
    return _mcp(['{"type":"object",', defs, '"properties":{"a":', schema, "}}"], '{"a":', *value, "}")


def _fan_out(number: int, of: str, last: str = '{"const":0}') -> list[Any]:
    """Definitions that each refer twice to the next: 2^number ways."""
    return [many(number, of), f',"A{number}":', last]


SEEDS: dict[str, Document] = {
    # known ways
    "anchors": _value(
        '{"$ref":"#a0"}',
        "1",
        defs=_fan_out(
            22, '"A<i>":{"$anchor":"a<i>","anyOf":[{"$ref":"#a<j>"},{"$ref":"#a<j>"}]}', '{"$anchor":"a22","const":0}'
        ),
    ),
    "ids": _value(
        '{"$ref":"x:a0"}',
        "1",
        defs=_fan_out(
            22, '"A<i>":{"$id":"x:a<i>","anyOf":[{"$ref":"x:a<j>"},{"$ref":"x:a<j>"}]}', '{"$id":"x:a22","const":0}'
        ),
    ),
    "percent-pointers": _value(
        '{"$ref":"#/%24defs/A0"}',
        "1",
        defs=_fan_out(22, '"A<i>":{"anyOf":[{"$ref":"#/%24defs/A<j>"},{"$ref":"#/%24defs/A<j>"}]}'),
    ),
    "dependent-schemas": _value(
        '{"$ref":"#/$defs/A0"}',
        '{"k":1}',
        defs=_fan_out(
            22,
            '"A<i>":{"dependentSchemas":{"k":{"anyOf":[{"$ref":"#/$defs/A<j>"},{"$ref":"#/$defs/A<j>"}]}}}',
            '{"required":["no"]}',
        ),
    ),
    "repeated-pattern": _value('{"type":"string","pattern":"(?:x{1,50}){1,50}y"}', '"', times(100_000, "x"), '"'),
    "pattern-properties": _value(
        '{"$ref":"#/$defs/A0"}',
        nest(14, '{"k":', "0", "}"),
        defs=_fan_out(
            14,
            '"A<i>":{"patternProperties":{"k":{"$ref":"#/$defs/A<j>"},"^k":{"$ref":"#/$defs/A<j>"},"k$":{"$ref":"#/$defs/A<j>"}}}',
        ),
    ),
    "items-contains": _value(
        '{"$ref":"#/$defs/A0"}',
        nest(22, "[", "0", "]"),
        defs=_fan_out(22, '"A<i>":{"items":{"$ref":"#/$defs/A<j>"},"contains":{"$ref":"#/$defs/A<j>"}}'),
    ),
    "wide-pattern-properties": _value(
        ['{"patternProperties":{', many(4_800, '"^.*<i>?":{"type":"object"}'), "}}"], "{", many(1_000, '"k<i>":{}'), "}"
    ),
    "many-patterns": _mcp(
        ['{"type":"object","properties":{', many(600, '"p<i>":{"type":"string","pattern":"^\\\\p{L}{60}<i>$"}'), "}}"],
        '{"p1":"',
        times(60, "a"),
        '"}',
    ),
    # references
    "references": _value('{"$ref":"#/$defs/A0"}', "1", defs=_fan_out(150, '"A<i>":{"$ref":"#/$defs/A<j>"}')),
    "fan-out": _value(
        '{"$ref":"#/$defs/A0"}',
        "1",
        defs=_fan_out(22, '"A<i>":{"anyOf":[{"$ref":"#/$defs/A<j>"},{"$ref":"#/$defs/A<j>"}]}'),
    ),
    "all-of-fan-out": _value(
        '{"$ref":"#/$defs/A0"}',
        "1",
        defs=_fan_out(22, '"A<i>":{"allOf":[{"$ref":"#/$defs/A<j>"},{"$ref":"#/$defs/A<j>"}]}', '{"type":"integer"}'),
    ),
    "tilde-fan-out": _value(
        '{"$ref":"#/$defs/~0A0"}',
        "1",
        defs=_fan_out(22, '"~A<i>":{"anyOf":[{"$ref":"#/$defs/~0A<j>"},{"$ref":"#/$defs/~0A<j>"}]}'),
    ),
    "nested-fan-out": _value(
        '{"$ref":"#/$defs/A0"}',
        nest(22, '{"n":', "1", "}"),
        defs=_fan_out(
            22,
            '"A<i>":{"anyOf":[{"properties":{"n":{"$ref":"#/$defs/A<j>"}}},{"properties":{"n":{"$ref":"#/$defs/A<j>"}}}]}',
        ),
    ),
    "property-fan-out": _value(
        '{"$ref":"#/$defs/A0"}',
        '{"n":1}',
        defs=_fan_out(
            22, '"A<i>":{"properties":{"n":{"not":{"$ref":"#/$defs/A<j>"}}},"additionalProperties":{"$ref":"#/$defs/A<j>"}}'
        ),
    ),
    "recursive": _value(
        '{"$ref":"#/$defs/A"}',
        nest(60, '{"n":', "1", "}"),
        defs='"A":{"anyOf":[{"properties":{"n":{"$ref":"#/$defs/A"}}},{"properties":{"n":{"$ref":"#/$defs/A"}},"required":["no"]}]}',
    ),
    "recursive-dynamic": _value(
        '{"$dynamicRef":"#n"}',
        nest(60, '{"n":', "1", "}"),
        defs='"A":{"$dynamicAnchor":"n","anyOf":[{"properties":{"n":{"$dynamicRef":"#n"}}},{"properties":{"n":{"$dynamicRef":"#n"}},"required":["no"]}]}',
    ),
    "unevaluated": _value(
        '{"$ref":"#/$defs/A0","unevaluatedProperties":false}',
        "{",
        many(300, '"k<i>":1'),
        "}",
        defs=_fan_out(
            100, '"A<i>":{"anyOf":[{"$ref":"#/$defs/A<j>"},{"properties":{"k<i>":{}}}],"unevaluatedProperties":true}'
        ),
    ),
    "unevaluated-items": _value(
        '{"allOf":[{"contains":{"const":1}},{"contains":{"const":2}}],"unevaluatedItems":false}',
        "[",
        many(20_000, "<i>"),
        "]",
    ),
    "property-names": _value('{"propertyNames":{"pattern":"^(a|b|ab)*$"}}', "{", many(20_000, '"abababab<i>":1'), "}"),
    "conditions": _value(nest(200, '{"if":{"type":"string"},"then":true,"else":', "{}", "}"), "1"),
    "alternatives": _value(['{"anyOf":[', many(1_900, '{"const":"v<i>"}'), "]}"], '"', times(100_000, "v"), '"'),
    "object-alternatives": _value(
        ['{"oneOf":[', many(1_500, '{"type":"object","required":["r<i>"]}'), "]}"], "{", many(2_000, '"k<i>":1'), "}"
    ),
    # patterns
    "nested-quantifiers": _value('{"pattern":"^(a+)+$"}', '"', times(50_000, "a"), '!"'),
    "counted": _value('{"pattern":"^(?:a{0,1000}){1,20}$"}', '"', times(50_000, "a"), '!"'),
    "look-ahead": _value('{"pattern":"(?=(a+))\\\\1b"}', '"', times(20_000, "a"), '"'),
    "back-reference": _value('{"pattern":"(a*)\\\\1\\\\1b"}', '"', times(20_000, "a"), '"'),
    "alternation": _value(
        ['{"pattern":"', {"count": 2_000, "of": "a<i>b", "join": "|"}, '"}'], '"', times(100_000, "a1"), '"'
    ),
    "unicode-classes": _value('{"pattern":"^[\\\\p{L}\\\\p{N}]{1,200}$"}', '"', times(100_000, "\u00e9"), '"'),
    "many-unicode": _value(['{"allOf":[', many(100, '{"pattern":"\\\\p{L}{<i>,80}"}'), "]}"], '"x"'),
    "pattern-names": _value(['{"patternProperties":{', many(200, '"\\\\p{L}{<i>,60}":{}'), "}}"], '{"x":1}'),
    # numbers, texts, sizes
    "multiple-of": _value('{"multipleOf":0.0000000001}', "1e300"),
    "wide-numbers": _value('{"maximum":1}', times(4_000, "9")),
    "unique-items": _value('{"uniqueItems":true}', "[", many(20_000, '{"a":<i>}'), "]"),
    "unique-numbers": _value('{"uniqueItems":true}', "[", many(100_000, "<i>"), "]"),
    "unique-lists": _value('{"uniqueItems":true}', "[", many(3_000, ["[", times(100, "1,"), "<i>]"]), "]"),
    "contains": _value('{"contains":{"const":-1},"maxContains":3}', "[", many(300_000, "<i>"), "]"),
    "enum": _value(['{"enum":[', many(20_000, '"v<i>"'), "]}"], '"', times(100, "v"), '"'),
    "enum-of-objects": _value(['{"enum":[', many(5_000, '{"v":<i>}'), "]}"], "[", many(10_000, "<i>"), "]"),
    "items-enum": _value(['{"items":{"enum":[', many(5_000, '{"v":<i>}'), "]}}"], "[", many(5_000, '{"v":-<i>}'), "]"),
    "lengths": _value('{"type":"string","maxLength":3}', '"', times(3_000_000, "\u0301"), '"'),
    "required": _mcp(['{"type":"object","required":[', many(5_000, '"r<i>"'), "]}"], "{}"),
    "unknown-keys": _mcp(
        ['{"type":"object","additionalProperties":false,"properties":{', many(2_000, '"name<i>":{}'), "}}"],
        "{",
        many(100_000, '"nmae<i>":1'),
        "}",
    ),
    "long-keys": _mcp(
        '{"type":"object","additionalProperties":false,"properties":{"name":{}}}', '{"', times(3_000_000, "n"), '":1}'
    ),
    "marks-keys": _mcp(
        '{"type":"object","additionalProperties":false,"properties":{"name":{}}}',
        '{"',
        times(500_000, "\u0345\u0301"),
        '":1}',
    ),
    "wide-argument": _value("{}", "{", many(300_000, '"k<i>":1'), "}"),
    "wide-wrong-argument": _value('{"additionalProperties":{"type":"string"}}', "{", many(300_000, '"k<i>":1'), "}"),
    "list-argument": _value('{"items":{"type":"string"}}', "[", many(600_000, "1"), "]"),
    "nested-argument": _value("{}", nest(100, "[", "1", "]")),
    "nested-lists": _value("{}", "[", {"times": 900, "of": nest(100, "[", "1", "]"), "join": ","}, "]"),
    "formats": _value('{"format":"email"}', '"', times(300_000, "a@"), '"'),
    "dates": _value('{"format":"date-time"}', '"', times(300_000, "1"), '"'),
    # OpenAPI's own ways to write arguments
    "openapi-body": {
        "kind": "openapi",
        "schema": '{"type":"object","properties":{"a":{"type":"string","pattern":"(?:x{1,50}){1,50}y"}}}',
        "arguments": ['{"a":"', times(100_000, "x"), '"}'],
    },
    "openapi-anchors": {
        "kind": "openapi",
        "schema": [
            '{"type":"object","properties":{"a":{"$ref":"#a0"}},"$defs":{',
            *_fan_out(
                22, '"A<i>":{"$anchor":"a<i>","anyOf":[{"$ref":"#a<j>"},{"$ref":"#a<j>"}]}', '{"$anchor":"a22","const":0}'
            ),
            "}}",
        ],
        "arguments": '{"a":1}',
    },
    "openapi-wide-body": {
        "kind": "openapi",
        "schema": '{"type":"object"}',
        "arguments": ['{"body":{', many(300_000, '"k<i>":1'), "}}"],
    },
    "openapi-formats": {
        "kind": "openapi",
        "schema": '{"type":"object","properties":{"a":{"type":"string","format":"binary"}}}',
        "arguments": ['{"a":"', times(3_000_000, "x"), '"}'],
    },
}
WORDS = (
    '"$ref":"#/$defs/A0"',
    '"$ref":"#a0"',
    '"$anchor":"a0"',
    '"anyOf":[',
    '"allOf":[',
    '"oneOf":[',
    '"not":',
    '"if":',
    '"then":',
    '"else":',
    '"properties":{',
    '"patternProperties":{',
    '"additionalProperties":',
    '"propertyNames":',
    '"unevaluatedProperties":false',
    '"dependentSchemas":{',
    '"items":',
    '"contains":',
    '"prefixItems":[',
    '"uniqueItems":true',
    '"pattern":"',
    '"format":"',
    '"enum":[',
    '"const":',
    '"type":"string"',
    "x{1,50}",
    "(?:",
    ")",
    "*",
    "+",
    "?",
    "|",
    "\\\\p{L}",
    "^",
    "$",
    *PUNCTUATION,
    "%24",
    "~0",
    "~1",
    "a",
    "1",
)
ENTRANCE = Entrance("schemas", __name__, opened, SEEDS, _value('{"type":"integer"}', "1"), WORDS, 4 * MIB)
