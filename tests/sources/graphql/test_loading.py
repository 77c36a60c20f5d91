"""Where schemas come from, and what becomes of those that are wrong or hostile: a SourceError, soon."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema, introspection_from_schema

from gloveport.errors import SourceError
from gloveport.sources.context import SourceContext
from gloveport.sources.graphql.opening import open_graphql
from tests.sources.graphql.compiled import compiled
from tests.sources.graphql.conftest import call, settings
from tests.sources.graphql.server import SDL, Library

INTROSPECTED = introspection_from_schema(build_schema(SDL), input_value_deprecation=True)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("library.graphql", SDL),
        ("library.gql", "\ufeff" + SDL),
        ("library.json", json.dumps(INTROSPECTED)),
        ("reply.json", json.dumps({"data": INTROSPECTED, "extensions": {"took": 1}})),
    ],
)
async def test_a_file_gives_the_same_tools_as_the_endpoint(
    library: Library, outside: SourceContext, tmp_path: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    url = f"{library.url}/graphql"
    from_file = await open_graphql(settings(tmp_path / file, base_url=url), outside)
    assert library.asked == []
    from_endpoint = await open_graphql(settings(url), outside)
    assert from_file.source_info().fingerprints == from_endpoint.source_info().fingerprints
    assert await call(from_file, "hello", name="file") == "hello file"


async def test_a_file_without_a_base_url_says_what_to_add(outside: SourceContext, tmp_path: Path) -> None:
    (tmp_path / "library.graphql").write_text(SDL)
    with pytest.raises(SourceError, match="where its endpoint is") as caught:
        await open_graphql(settings(tmp_path / "library.graphql"), outside)
    assert "base_url" in (caught.value.hint or "")


async def test_a_file_that_is_not_there_is_named(outside: SourceContext, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"source lib: .*absent\.graphql can't be read: No such file"):
        await open_graphql(settings(tmp_path / "absent.graphql", base_url="https://example.com/graphql"), outside)


async def test_a_pipe_is_no_file_and_is_not_waited_for(outside: SourceContext, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "schema.graphql")
    with pytest.raises(SourceError, match="no plain file"):
        async with asyncio.timeout(5):
            await open_graphql(settings(tmp_path / "schema.graphql", base_url="https://example.com"), outside)


@pytest.mark.integration
@pytest.mark.parametrize("status", [401, 403])
async def test_an_endpoint_that_refuses_says_how_to_give_it_a_credential(
    library: Library, outside: SourceContext, status: int
) -> None:
    library.token, library.refusal = "t", status
    with pytest.raises(SourceError) as caught:
        await open_graphql(settings(f"{library.url}/graphql"), outside)
    assert "GLOVEPORT_LIB_TOKEN" in (caught.value.hint or "")


@pytest.mark.integration
async def test_an_endpoint_without_introspection_says_what_to_give(library: Library, outside: SourceContext) -> None:
    library.introspection = False
    with pytest.raises(SourceError, match="does not give its schema: GraphQL introspection is not allowed") as caught:
        await open_graphql(settings(f"{library.url}/graphql"), outside)
    assert "SDL" in (caught.value.hint or "") and "base_url" in (caught.value.hint or "")


@pytest.mark.integration
async def test_an_endpoint_of_an_older_specification_is_asked_again(library: Library, outside: SourceContext) -> None:
    library.old = True
    source = await open_graphql(settings(f"{library.url}/graphql"), outside)
    assert len(library.asked) == 2
    assert len(source.tools()) == 13


@pytest.mark.integration
@pytest.mark.parametrize(
    ("path", "said"), [("plain", "answered 200, not GraphQL"), ("absent", "answered 404, not GraphQL")]
)
async def test_a_url_that_is_no_endpoint_says_so(library: Library, outside: SourceContext, path: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        await open_graphql(settings(f"{library.url}/{path}"), outside)


async def test_an_endpoint_that_is_down_is_a_source_error(outside: SourceContext) -> None:
    with pytest.raises(SourceError, match=r"source lib: http://127\.0\.0\.1:9/graphql"):
        await open_graphql(settings("http://127.0.0.1:9/graphql"), outside)


@pytest.mark.integration
async def test_a_private_endpoint_needs_a_grant(library: Library, outside: SourceContext) -> None:
    config = replace(settings(f"{library.url}/graphql"), allow_private=False)
    with pytest.raises(SourceError, match=r"source lib: http://127\.0\.0\.1"):
        await open_graphql(config, outside)
    assert library.asked == []


@pytest.mark.integration
async def test_an_endpoint_that_wants_a_credential_names_the_variable(library: Library, outside: SourceContext) -> None:
    library.token = "another"
    with pytest.raises(SourceError) as caught:
        await open_graphql(settings(f"{library.url}/graphql"), outside)
    assert "GLOVEPORT_LIB_TOKEN" in (caught.value.hint or "")


@pytest.mark.parametrize("url", ["ftp://host/graphql", "https://user:pass@host/graphql", "https://", "host/graphql"])
async def test_a_base_url_that_is_no_url_is_refused(outside: SourceContext, tmp_path: Path, url: str) -> None:
    (tmp_path / "library.graphql").write_text(SDL)
    with pytest.raises(SourceError, match="source lib:"):
        await open_graphql(settings(tmp_path / "library.graphql", base_url=url), outside)


def _type(name: str, fields: list[dict[str, Any]], kind: str = "OBJECT", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "fields": fields, "interfaces": [], **more}


def _field(name: str, kind: Any, args: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"name": name, "args": args or [], "type": kind, "isDeprecated": False}


def _named(name: str, kind: str = "SCALAR") -> dict[str, Any]:
    return {"kind": kind, "name": name, "ofType": None}


def _schema(*types: dict[str, Any]) -> bytes:
    scalar = {"kind": "SCALAR", "name": "String"}
    return json.dumps({"__schema": {"queryType": {"name": "Query"}, "types": [scalar, *types], "directives": []}}).encode()


def _deep(levels: int) -> Any:
    kind: Any = _named("String")
    for _ in range(levels):
        kind = {"kind": "LIST", "name": None, "ofType": kind}
    return kind


WRONG = {
    "nothing": (b"", "no queries|Syntax Error"),
    "no text": (b"\xff\xfe\x00", "decode"),
    "no schema": (b'{"openapi": "3.0.0"}', "no `__schema`"),
    "errors": (b'{"errors": [{"message": "no"}]}', "no `__schema`"),
    "no JSON": (b'{"__schema": ', "."),
    "types of the wrong kind": (b'{"__schema": {"types": 5}}', r"\$\.__schema\.types"),
    "fields of the wrong kind": (_schema({"kind": "OBJECT", "name": "Query", "fields": {}}), r"types\[1\]\.fields"),
    "a type that is nowhere": (_schema(_type("Query", [_field("a", _named("Absent", "OBJECT"))])), "Absent"),
    "a name that is no name": (_schema(_type("Query", [_field("a b", _named("String"))])), "Names must only contain"),
    "a kind that is none": (_schema(_type("Query", [], "SPHERE")), "SPHERE"),
    "an input as an answer": (
        _schema(
            _type("Query", [_field("a", _named("I", "INPUT_OBJECT"))]),
            {"kind": "INPUT_OBJECT", "name": "I", "inputFields": []},
        ),
        "I",
    ),
    "SDL with a mistake": (b"type Query {\n  a: String\n  b: [Int\n}", r"line 4, column 1"),
    "SDL with a type that is nowhere": (b"type Query { a: Absent }", "Absent"),
    "SDL without roots": (b"type Book { id: ID }", "no queries or mutations"),
    "a query": (b"query { a }", "."),
    "mutations of a scalar": (b"type Query { a: Int } schema { query: Query mutation: Int }", "Int is no type for"),
    "a union with a scalar": (b"union U = Query | Int type Query { a: U }", "union U has a member that is no object"),
    "a value that is no name": (
        _schema(
            _type("Query", [_field("a", _named("E", "ENUM"))]), {"kind": "ENUM", "name": "E", "enumValues": [{"name": 5}]}
        ),
        "name to be a string",
    ),
    "only a subscription": (b"type S { a: Int } schema { subscription: S }", "no queries or mutations"),
    "lists without end": (b"type Query { a: " + b"[" * 100_000 + b"Int" + b"]" * 100_000 + b" }", "."),
    "lists without end in JSON": (_schema(_type("Query", [_field("a", _deep(900))])), "."),
    "values without end": (b"type Query { a(b: Int = " + b"[" * 5000 + b"]" * 5000 + b"): Int }", "."),
    "JSON without end": (b'{"__schema":' * 100_000, "."),
}

HUGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "50 MB of JSON": (lambda: b'{"__schema": {"types": [' + b" " * 50_000_000 + b"]}}", "bytes; at most"),
    "50 MB of SDL": (lambda: b"# nothing but words\n" * 2_500_000, "bytes; at most"),
    "a million tokens": (lambda: b"type Query { a: Int } " + b"scalar X" * 200_000, "."),
    "100,000 types": (
        lambda: _schema(*[_type(f"T{n}", [_field("a", _named("String"))]) for n in range(100_000)]),
        "100,001 types",
    ),
    "240,000 fields": (
        lambda: _schema(_type("Query", [_field(f"f{n}", _named("String")) for n in range(120_000)] * 2)),
        "240,000 fields",
    ),
    "20,000 queries": (
        lambda: _schema(_type("Query", [_field(f"f{n}", _named("String")) for n in range(20_000)])),
        "20,000 queries",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_definition_that_is_wrong_or_hostile_is_refused_with_a_reason(what: str) -> None:
    _refuses(*WRONG[what])


@pytest.mark.long
@pytest.mark.parametrize("what", HUGE)
def test_a_definition_that_is_too_large_is_refused_with_a_reason(what: str) -> None:
    make, said = HUGE[what]
    _refuses(make(), said)


def _refuses(raw: bytes, said: str) -> None:
    began = time.process_time()
    with pytest.raises(SourceError, match=f"(?s){said}"):
        compiled(raw)
    assert time.process_time() - began < 30


async def test_a_type_that_is_none_for_input_is_named(outside: SourceContext, tmp_path: Path) -> None:
    (tmp_path / "odd.graphql").write_text("input I { a: T } type T { b: Int } type Query { c(i: I): Int }")
    with pytest.raises(SourceError, match=r"odd\.graphql: the type T is used as input, and is no input type"):
        await open_graphql(settings(tmp_path / "odd.graphql", base_url="https://example.com/graphql"), outside)


@pytest.mark.parametrize("levels", [21, 150, 300])
def test_lists_nested_deeper_than_anyone_means_are_refused(levels: int) -> None:
    with pytest.raises(SourceError, match=r"lists of Query\.a are nested too deeply"):
        compiled(_schema(_type("Query", [_field("a", _deep(levels))])))


def _tangled() -> Iterator[str]:
    """As large as is read: every query takes every input and answers a type that leads to every other."""
    types, queries = 180, 5000
    for one in range(types):
        inputs = " ".join(f"f{other}: I{other}" for other in range(0, types, 2))
        yield f"input I{one} {{ {inputs} }}"
        fields = " ".join(f"f{other}: T{other} s{other}: String" for other in range(0, types, 2))
        yield f"type T{one} {{ {fields} }}"
    roots = " ".join(f"q{one}(i: I{one % types}): T{one % types}" for one in range(queries))
    yield f"type Query {{ {roots} }}"


@pytest.mark.long
async def test_a_tangle_as_large_as_is_read_is_compiled_within_its_budget(outside: SourceContext, tmp_path: Path) -> None:
    (tmp_path / "tangle.graphql").write_text("\n".join(_tangled()))
    source = await open_graphql(settings(tmp_path / "tangle.graphql", base_url="https://example.com/"), outside)
    assert len(source.tools()) == 5000
