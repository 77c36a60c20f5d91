"""Frames from a worker that was taken over: any values, calls, questions, logs and errors, within the size of a frame."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take
from fuzz.stall.programs import MARKS, PRIME, TOOLS
from fuzz.stall.recipe import PUNCTUATION, many, nest, times
from gloveport import Gloveport, ToolError
from gloveport.errors import CODES
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.launcher import Launch
from gloveport.sandbox.wire import pack

LIMITS = {"wall_seconds": 5, "cpu_seconds": 5}
FORGER = "/guest/forger.js"
DONE = '["done","value",1,{}]'
SEPARATOR = "\x1e"  # between the frames of an input
HONEST_LAUNCH = DENO.launch(ProcessOptions("deno"))


async def fail(message: str = "", data: Any = None) -> None:
    """Fail as asked."""
    raise ToolError(message, data=data)


def _launch(_options: ProcessOptions) -> Launch:
    argv = ("deno", "run", "-A", "--no-config", "--no-lock", "--no-remote", FORGER)
    files = {FORGER: Path(__file__).with_name("forger.js").read_bytes()}
    env = {**HONEST_LAUNCH.env, "DENO_DIR": f"{FORGER}/none"}
    return replace(HONEST_LAUNCH, argv=argv, files=files, env=env, first_input=b"", idle_input=b"")


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Send each text as frames of a forged worker to a real run."""
    type(DENO).launch = lambda _self, options: _launch(options)  # this process has no other use of the engine
    async with Gloveport(tools=[*TOOLS, fail], spare=2) as port:

        async def take(document: Document) -> Attack:
            said = b"".join(pack(frame.encode("utf-8", "surrogatepass")) for frame in document["frames"].split(SEPARATOR))
            sent = b64encode(gzip.compress(said, 1)).decode()

            async def attack() -> Refusal | None:
                refusal = Refusal.ending(await port.run("1", input=sent, limits=LIMITS))
                # The guest may claim any code but ours for a defect.
                claimed = refusal is not None and (refusal.code not in CODES or refusal.code == "program-failed")
                return None if claimed else refusal

            return attack

        yield take


def _value(*value: Any) -> Document:
    return {"frames": ['["done","value",', *value, ",{}]"]}


def _call(name: str, *args: Any) -> Document:
    return {"frames": [f'["call",1,"{name}",[', *args, "]]", SEPARATOR, DONE]}


def _ask(name: str, *args: Any, times: int = 1) -> Document:
    return {"frames": [{"count": times, "first": 1, "of": [f'["call_sync",<i>,"{name}",[', *args, "]]", SEPARATOR]}, DONE]}


def _error(*fields: Any) -> Document:
    return {"frames": ['["done","error",{', *fields, "},{}]"]}


def _tag(kind: str, *content: Any) -> list[Any]:
    return [f'{{"$":"{kind}","v":', *content, "}"]


LONG = times(3_000_000, "a")
MANY_MARKS = {"times": 500_000, "of": MARKS}
NEST = nest(110, "[", "1", "]")
SEEDS: dict[str, Document] = {
    # values
    "numbers": _value("[", many(1_900_000, "1"), "]"),
    "floats": _value("[", many(500_000, "<i>.5e10"), "]"),
    "long-floats": _value("[", many(400, ["0.", times(20_000, "1")]), "]"),
    "whole-numbers": _value("[", many(800_000, "<i>", first=2**52, step=1), "]"),
    "texts": _value("[", many(900_000, '"a<i>"'), "]"),
    "one-text": _value('"', times(8_000_000, "x"), '"'),
    "escaped-text": _value('"', times(1_300_000, "\\u0301"), '"'),
    "marks": _value('"', {"times": 1_000_000, "of": MARKS}, '"'),
    "empty-lists": _value("[", many(99_000, "[]"), "]"),
    "objects": _value("[", many(99_000, '{"a":1}'), "]"),
    "keys": _value("{", many(900_000, '"k<i>":1'), "}"),
    "dollar-keys": _value("{", many(600_000, '"$k<i>":1'), "}"),
    "nests": _value("[", many(800, NEST), "]"),
    "deep": _value(nest(1_000_000, "[", "", "]")),
    "quotes": _value(times(8_000_000, '"')),
    "backslashes": _value('"', times(8_000_000, "\\")),
    "spaces": _value(times(16_000_000, " "), "1"),
    "undefineds": _value("[", many(99_000, '{"$":"undefined"}'), "]"),
    "bigints": _value("[", many(2_000, _tag("bigint", '"', times(3_990, "9"), '"')), "]"),
    "short-bigints": _value("[", many(99_000, _tag("bigint", '"<i>"'), first=10**20), "]"),
    "dates": _value("[", many(99_000, _tag("date", "<i>"), step=10**6), "]"),
    "special-numbers": _value("[", many(99_000, _tag("number", '"-0"')), "]"),
    "many-bytes": _value("[", many(99_000, _tag("bytes", '"AAAA"')), "]"),
    "bytes": _value(_tag("bytes", '"', times(2_000_000, "AAAA"), '"')),
    "bad-bytes": _value(_tag("bytes", '"', times(8_000_000, "%"), '"')),
    "map": _value(_tag("map", "[", many(49_000, "[<i>,0]"), "]")),
    "map-of-texts": _value(_tag("map", "[", many(49_000, '["k<i>",0]'), "]")),
    "map-of-wide-integers": _value(_tag("map", "[", many(900, ["[", _tag("bigint", '"<i>"'), ",0]"], step=PRIME), "]")),
    "map-of-float-keys": _value(_tag("map", "[", many(49_000, "[<i>.5,0]", step=2**20), "]")),
    "map-of-dates": _value(_tag("map", "[", many(33_000, ["[", _tag("date", "<i>"), ",0]"], step=2**20), "]")),
    "set": _value(_tag("set", "[", many(1_500_000, "<i>", step=2**26), "]")),
    "set-of-lists": _value(_tag("set", "[", many(99_000, "[]"), "]")),
    "set-of-sets": _value("[", many(33_000, _tag("set", "[1,2]")), "]"),
    "set-of-texts": _value(_tag("set", "[", many(600_000, '"a<i>"'), "]")),
    "error-value": _value(_tag("error", '{"name":"E","message":"', LONG, '"}')),
    "error-causes": _value(nest(40, '{"$":"error","v":{"name":"E","message":"m","cause":', "null", "}}")),
    "error-data": _value(_tag("error", '{"name":"E","message":"m","data":{', many(300_000, '"k<i>":1'), "}}")),
    # errors of the guest
    "message": _error('"message":"', LONG, '"'),
    "marks-message": _error('"message":"', MANY_MARKS, '"'),
    "paths-message": _error('"message":"', times(500_000, "/home/x "), '"'),
    "name-error": _error('"type":"ReferenceError","message":"', LONG, ' is not defined"'),
    "commas-message": _error('"message":"', times(8_000_000, ","), '"'),
    "lines-message": _error('"message":"', times(500_000, "\\n"), '"'),
    "place": _error('"message":"m","line":1,"column":1,"hint":"', LONG, '"'),
    "causes": _error('"message":"m","cause":', nest(60, '{"message":"a","cause":', "null", "}")),
    "wide-error": _error(many(600_000, '"k<i>":1')),
    "data-error": _error('"message":"m","data":{', many(600_000, '"k<i>":1'), "}"),
    "tool-error": _error('"message":"m","tool":"', LONG, '","code":"', LONG, '"'),
    "wide-notes": {
        "frames": ['["done","value",1,{"pending":[', many(1_000_000, "<i>"), '],"unhandled":[', many(50_000, "{}"), "]}]"]
    },
    "long-notes": {
        "frames": ['["done","value",1,{"unhandled":[', many(20, ['{"type":"', times(300_000, "a"), '"}']), "]}]"]
    },
    "nested-notes": {"frames": ['["done","value",1,{"unhandled":[{"type":[', many(99_000, "[]"), "]}]}]"]},
    # calls
    "long-name": {"frames": ['["call",1,"', times(15_000_000, "a"), '",[]]', SEPARATOR, DONE]},
    "marks-name": {"frames": ['["call",1,"', {"times": 1_000_000, "of": MARKS}, '",[]]', SEPARATOR, DONE]},
    "dotted-name": {"frames": ['["call",1,"', times(5_000_000, "a."), '",[]]', SEPARATOR, DONE]},
    "unknown-names": {"frames": [{"count": 900, "first": 1, "of": ['["call",<i>,"get_wether<i>",[]]', SEPARATOR]}, DONE]},
    "echo-keys": _call("echo", '{"value":{', many(1_200_000, '"k<i>":1'), "}}"),
    "echo-list": _call("echo", '{"value":[', many(1_900_000, "1"), "]}"),
    "echo-text": _call("echo", '{"value":"', times(15_000_000, "x"), '"}'),
    "echo-surrogates": _call("echo", '{"value":"', times(2_000_000, "\\ud800"), '"}'),
    "echo-objects": _call("echo", '{"value":[', many(99_000, '{"a":[1]}'), "]}"),
    "echo-set": _call("echo", '{"value":', _tag("set", "[", many(1_000_000, "<i>"), "]"), "}"),
    "echo-map": _call("echo", '{"value":', _tag("map", "[", many(49_000, "[<i>,0]"), "]"), "}"),
    "echo-bytes": _call("echo", '{"value":', _tag("bytes", '"', times(3_000_000, "AAAA"), '"'), "}"),
    "echo-dates": _call("echo", '{"value":[', many(99_000, _tag("date", "<i>"), step=10**6), "]}"),
    "extra-keys": _call("add", "{", many(1_000_000, '"k<i>":1'), "}"),
    "near-keys": _call("get_weather", "{", many(100_000, '"ctiy<i>":1'), "}"),
    "positionals": _call("add", many(1_900_000, "1")),
    "nulls": _call("add", many(1_900_000, "null")),
    "wrong-type": _call("add", '{"a":[', many(1_900_000, "1"), '],"b":1}'),
    "wrong-text": _call("add", '{"a":"', times(10_000_000, "\u0301"), '","b":1}'),
    "failing": _call("fail", '{"message":"', times(1_000_000, "/etc/x:"), '"}'),
    "failing-quotes": _call("fail", '{"message":"', times(4_000_000, "'/"), '"}'),
    "failing-data": _call("fail", '{"data":{', many(600_000, '"k<i>":1'), "}}"),
    "many-calls": {
        "frames": [
            {
                "count": 1000,
                "first": 1,
                "of": ['["call",<i>,"echo",[{"value":"', times(10_000, "x"), '"}]]', SEPARATOR],
            },
            DONE,
        ]
    },
    "many-small-calls": {
        "frames": [{"count": 1000, "first": 1, "of": ['["call",<i>,"echo",[{"value":1}]]', SEPARATOR]}, DONE]
    },
    # questions
    "search": _ask("search", '"', LONG, '"'),
    "search-words": _ask("search", '"', {"count": 100_000, "of": "w<i> "}, '"'),
    "search-marks": _ask("search", '"', MANY_MARKS, '"'),
    "search-options": _ask("search", many(400_000, '{"query":"a"}')),
    "many-searches": _ask("search", '"weather in a city"', times=900),
    "describe": _ask("describe", '"', LONG, '"'),
    "describe-marks": _ask("describe", '"', MANY_MARKS, '"'),
    "many-describes": _ask("describe", '"get_weathr"', times=900),
    "names": _ask("names", '"', LONG, '"', times=3),
    "interfaces": _ask("interfaces", times=90),
    "unknown-question": _ask("x" * 5000, times=900),
    # output
    "long-log": {"frames": ['["log","log","', times(15_000_000, "x"), '"]', SEPARATOR, DONE]},
    "marks-log": {"frames": ['["log","log","', {"times": 2_000_000, "of": MARKS}, '"]', SEPARATOR, DONE]},
    "many-logs": {"frames": [{"times": 200_000, "of": ['["log","log","a"]', SEPARATOR]}, DONE]},
    "emit": {"frames": ['["emit",[', many(1_000_000, "1"), "]]", SEPARATOR, DONE]},
    "emits": {"frames": [{"times": 100_000, "of": ['["emit",1]', SEPARATOR]}, DONE]},
    "timers": {"frames": [{"times": 100_000, "of": ['["timer",0]', SEPARATOR]}, DONE]},
    "no-frames": {"frames": {"times": 2_000_000, "of": SEPARATOR}},
    "wide-frame": {"frames": ["[", many(1_900_000, '"done"'), "]"]},
}
WORDS = (
    '{"$":"map","v":[',
    '{"$":"set","v":[',
    '{"$":"bigint","v":"',
    '{"$":"date","v":',
    '{"$":"error","v":{',
    '{"$":"bytes","v":"',
    '["call",1,"echo",[',
    '["call_sync",1,"search",[',
    '["log","log","',
    '["emit",',
    '["done","value",',
    '["done","error",',
    *PUNCTUATION,
    "\\",
    "\\ud800",
    "\\u0301",
    "1e5",
    "0.1",
    "null",
    '"$":',
    SEPARATOR,
    "\u0345",
    "/home/",
    "'",
)

HONEST = ['["call",1,"echo",[{"value":[1]}]]', SEPARATOR, '["call_sync",2,"search",["a"]]', SEPARATOR, DONE]
ENTRANCE = Entrance("frames", __name__, opened, SEEDS, {"frames": HONEST}, WORDS, 15 * MIB)
