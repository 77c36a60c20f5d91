"""Hostile schemas, and a hostile compiler: the host neither stops nor sends anything but names of GraphQL (N10, N11, M3)."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gloveport.errors import SourceError, TooComplexError, ToolError
from gloveport.sources.context import Answer, SourceContext
from gloveport.sources.graphql.call.document import Documents
from gloveport.sources.graphql.opening import open_graphql
from gloveport.sources.graphql.source import GraphQLSource
from tests.sources.graphql.compiled import compiled, stored
from tests.sources.graphql.conftest import settings
from tests.sources.graphql.server import SDL
from tests.sources.heartbeat import assert_no_stall
from tests.sources.in_process_tasks import InProcessTasks

Forge = Callable[[list[dict[str, Any]]], Any]


class ForgedTasks:
    """A task process that a hostile schema has taken over: it returns what it likes."""

    def __init__(self, batches: list[bytes]) -> None:
        self._batches = batches

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        return self._batches


class ExhaustedTasks:
    """A task process that was killed."""

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        raise TooComplexError("reading the definition takes too much CPU time")


async def opened(outside: SourceContext, text: str | bytes = SDL) -> GraphQLSource:
    file = outside.cache / "schema.graphql"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return await open_graphql(settings(file, base_url="https://example.com/graphql"), outside)


def rows_of(kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["row"] == kind]


def changed(kind: str, **changes: Any) -> Forge:
    def forge(rows: list[dict[str, Any]]) -> None:
        rows_of(kind, rows)[0].update(changes)

    return forge


def schema(**keywords: Any) -> Forge:
    def forge(rows: list[dict[str, Any]]) -> None:
        rows_of("tool", rows)[0]["schema"]["properties"]["id"] = keywords

    return forge


FORGED: dict[str, Forge] = {
    "a name that closes a brace": changed("tool", name="x } mutation { deleteBook"),
    "an argument that is no name": changed("tool", arguments={"id: 1) { x } #": "ID"}),
    "a type that is no type": changed("tool", arguments={"id": "ID) { id } query x($y: Int"}),
    "a type with an open bracket": changed("tool", arguments={"id": "[ID"}),
    "an answer that is no type": changed("tool", answer="Book } }"),
    "an answer without a schema": changed("tool", answer="Absent"),
    "an address that is not legal": changed("tool", address="constructor"),
    "an address with dots": changed("tool", address="other.tool"),
    "an address of combining marks": changed("tool", address="a" + "\u0301\u0316" * 100_000),
    "a tool that says it does not write": changed("tool", writes=False),
    "an operation that is none": changed("tool", operation="subscription"),
    "the address of another tool": lambda rows: rows_of("tool", rows)[0].update(
        address=rows_of("tool", rows)[1]["address"]
    ),
    "another argument in the schema": lambda rows: rows_of("tool", rows)[0]["schema"]["properties"].update(more={}),
    "a pattern": schema(type="string", pattern="(?:x{1,50}){1,50}y"),
    "a reference elsewhere": schema(**{"$ref": "https://example.com/schema"}),
    "alternatives": schema(anyOf=[{"$ref": "#/$defs/Genre"}, {"$ref": "#/$defs/Genre"}]),
    "a schema without end": schema(items=json.loads('{"items":' * 900 + "{}" + "}" * 900)),
    "an input that is itself": changed("input", schema={"$ref": "#/$defs/Genre"}),
    "a missing input": lambda rows: rows.remove(rows_of("input", rows)[0]),
    "a field that is no name": changed("field", name="a b"),
    "a type name that is none": changed("type", name="Book { id }"),
    "a required argument that is none": changed("field", required=["x"]),
    "a row that is too large": changed("type", overlaps=[f"T{n}" for n in range(10_000)]),
    "a description that is too long": changed("tool", description="x" * 3000),
    "a name of a megabyte": changed("names", names=["x" * 1_000_000]),
    "a row of an unknown kind": lambda rows: rows.append({"row": "code"}),
    "no end": lambda rows: rows.remove(rows_of("facts", rows)[0]),
}


@pytest.mark.parametrize("what", FORGED)
async def test_what_no_compiler_returns_is_refused(outside: SourceContext, what: str) -> None:
    rows = [row for batch in compiled(SDL.encode()) for row in msgspec.json.decode(batch)]
    FORGED[what](rows)
    forged = replace(outside, tasks=ForgedTasks([msgspec.json.encode(rows)]))
    with pytest.raises(SourceError, match=r"source lib: .*schema\.graphql: its compiled form can't be used"):
        await opened(forged)
    assert list(outside.cache.glob("*.sqlite")) == []


@pytest.mark.parametrize("batch", [b"", b"7", b"[[]]", b"\xff", b"[" * 100_000, b"[" + b" " * 3_000_000 + b"]"])
async def test_bytes_that_are_no_rows_are_refused(outside: SourceContext, batch: bytes) -> None:
    with pytest.raises(SourceError, match="its compiled form can't be used"):
        await opened(replace(outside, tasks=ForgedTasks([batch])))


async def test_a_schema_that_takes_too_long_is_refused_with_its_name_and_place(outside: SourceContext) -> None:
    with pytest.raises(SourceError, match=r"source lib: .*schema\.graphql: reading the definition") as caught:
        await opened(replace(outside, tasks=ExhaustedTasks()))
    assert caught.value.code == "definition-too-complex"
    assert caught.value.hint


async def test_a_schema_that_was_compiled_before_starts_no_process(outside: SourceContext) -> None:
    tasks = InProcessTasks()
    first = await opened(replace(outside, tasks=tasks))
    second = await opened(replace(outside, tasks=tasks))
    assert len(tasks.ran) == 1
    assert first.source_info() == second.source_info()
    await opened(replace(outside, tasks=tasks), SDL.replace("One book.", "A book."))
    assert len(tasks.ran) == 2


HOSTILE: dict[str, Callable[[], str]] = {
    "10,000 queries": lambda: f"type Query {{ {' '.join(f'q{n}(a: Int): Int' for n in range(10_000))} }}",
    "50,000 fields": lambda: (
        "\n".join(f"type T{t} {{ {' '.join(f'f{n}(a: Int): T{n % 200}' for n in range(250))} }}" for t in range(200))
        + "type Query { t: T0 }"
    ),
    "an enum of 100,000 values": lambda: (
        f"enum E {{ {' '.join(f'V{n}' for n in range(100_000))} }} type T {{ f(e: E): E }} type Query {{ t(e: E): T }}"
    ),
    "inputs that take each other": lambda: (
        "\n".join(f"input I{one} {{ {' '.join(f'f{n}: [I{n}!]' for n in range(100))} }}" for one in range(100))
        + f"type Query {{ {' '.join(f'q{n}(i: I{n}): Int' for n in range(100))} }}"
    ),
    "combining marks": lambda: "\n".join(
        f'"{"a" + chr(0x301) * 20_000 + chr(0x316) * 20_000}" type T{n} {{ "{chr(0x301) * 40_000}" a: Int }}' for n in range(20)
    ) + f'type Query {{ "{chr(0x316) * 90_000 + chr(0x301) * 90_000}" t: T0 }}',
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_schema_does_not_stop_the_host(outside: SourceContext, what: str) -> None:
    text = HOSTILE[what]().encode()
    source = None
    with_compiled = replace(outside, tasks=ForgedTasks(compiled(text)))
    async with assert_no_stall():
        try:
            source = await opened(with_compiled, text)
        except SourceError as error:
            assert error.hint
    if source:
        async with assert_no_stall():
            dict(source.tools()[0].input_schema)


@pytest.mark.parametrize("what", ["field", "type", "argument", "value"])
def test_a_name_of_a_megabyte_is_refused(what: str) -> None:
    names = {"field": "a", "type": "T", "argument": "b", "value": "V", what: "x" * 1_000_000}
    text = f"enum E {{ {names['value']} }} type {names['type']} {{ {names['field']}({names['argument']}: E): Int }}"
    with pytest.raises(SourceError, match=r"the name x{40}… has more than 255 characters"):
        compiled(f"{text} type Query {{ t: {names['type']} }}".encode())


WIDE = (
    "\n".join(
        f"type T{one} implements {' & '.join(f'I{n}' for n in range(400))} {{ id: ID f0: Int "
        + " ".join(f"g{n}({' '.join(f'a{k}: Int' for k in range(150))}): T{(one + n + 1) % 150}" for n in range(3))
        + " }"
        for one in range(150)
    )
    + "\n".join(f"interface I{n} {{ id: ID }}" for n in range(400))
    + f"enum E {{ {' '.join(f'V{n}' for n in range(1800))} }} input In {{ a: In b: [In] e: E es: [E] }}"
    + f"type Big {{ {' '.join(f'n{n}_{chr(120) * 30}: Int' for n in range(3000))} f(i: In e: [E]): Int }}"
    + "type Query { t: T0 i: I0 big: Big }"
)
SELECTS = {
    "fragments on objects": ("i", " ".join(f"... on T{n} {{ f0 }}" for n in range(149))),
    "fragments on interfaces": ("i", " ".join(f"... on I{n} {{ id }}" for n in range(149))),
    "defaults everywhere": ("i", " ".join(f"... on T{n} {{ g0 g1 g2 }}" for n in range(70))),
    "levels": ("t", "g0 {" * 11 + "g0 g1 g2" + "}" * 11),
    "an unknown field": ("big", "n7_" + "x" * 28 + "y"),
    "an unknown value": ("big", "f(e: [V1x])"),
    "values": ("big", f"f(e: [{'V1799 ' * 2900}])"),
    "inputs": ("big", f"f(i: {{ b: [{'{ e: V1799 es: [V1] } ' * 270}] }})"),
    "inputs in inputs": ("big", "f(i: " + "{ a: " * 98 + "{}" + "}" * 98 + ")"),
    "an open string": ("big", 'f(e: "' + "\\n" * 9000),
    "strings": ("big", "f(e: [" + '"" ' * 2900 + "])"),
    "comments": ("big", "#\n" * 9000 + "f"),
    "commas": ("big", "," * 19_999 + "f"),
    "names": ("big", "f " * 9000),
    "a long name": ("big", "f" * 20_000),
    "digits": ("big", f"f(e: {'1' * 19_000})"),
    "braces": ("big", "{" * 20_000),
    "marks": ("big", "!" * 20_000),
    "combining marks": ("big", "\u0301\u0316" * 10_000),
}


@pytest.fixture(scope="module")
def wide() -> Documents:
    return Documents(stored(WIDE))


@pytest.mark.long
@pytest.mark.parametrize("what", SELECTS)
def test_no_selection_takes_long_to_check(wide: Documents, what: str) -> None:
    address, select = SELECTS[what]
    took = []
    for _ in range(3):  # the shortest counts: the first time reads from the disk
        began = time.process_time()
        try:
            wide._build(address, (), select, False)
        except ToolError as error:
            assert error.code == "bad-arguments"
        took.append(time.process_time() - began)
    assert min(took) < 0.05


@pytest.mark.integration
def test_the_host_never_loads_the_parser_of_schemas() -> None:
    code = "import sys, gloveport.sources.graphql.opening; print([name for name in sys.modules if name == 'graphql'])"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == "[]"
