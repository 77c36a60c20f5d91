"""A compiler that a hostile definition has taken over can't make the host store what an honest one would never send."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import CredentialSlot, ToolHead
from gloveport.sources.context import Answer
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi import frame_check
from gloveport.sources.openapi.compile.task import compile_definition
from gloveport.sources.openapi.frames import FACTS, SHARED_SCHEMA, TOOL, CompiledHead, DocumentFacts
from gloveport.sources.openapi.loading import LoadedDefinition
from gloveport.sources.openapi.opening import compile_to_cache
from gloveport.sources.openapi.operation import CompiledOperation, MediaContent, Operation, Parameter, RequestBody
from tests.sources.openapi.compiled import is_incomplete

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
FACTS_OF_THINGS = DocumentFacts("Things", "1", "", "openapi", ("https://api.example.com",), {}, (), ())


class HostileCompiler:
    """Implements `TaskRunner`: it sends these frames, whatever the definition is."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self.frames = list(frames)

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        return self.frames


def tool(address: str = "things.get", operation: Operation | None = None, schema: Any = SCHEMA, **head: Any) -> bytes:
    stated = CompiledHead(address, **{"description": "A thing.", **head})
    compiled = CompiledOperation(operation or Operation("GET", "/things"), schema)
    return TOOL + msgspec.json.encode(stated) + b"\n" + msgspec.json.encode(compiled)


def facts(**changed: Any) -> bytes:
    return FACTS + msgspec.json.encode(msgspec.structs.replace(FACTS_OF_THINGS, **changed))


async def stored(folder: Path, *frames: bytes) -> DefinitionCache:
    definition = LoadedDefinition(b"{}", "https://api.example.com/")
    return await compile_to_cache(definition, "the definition of the source things", folder, HostileCompiler(frames))


async def only_head(folder: Path, *frames: bytes) -> ToolHead:
    cache = await stored(folder, *frames)
    cache.close()
    (head,) = cache.heads()
    return head


REFUSED: dict[str, tuple[bytes, ...]] = {
    "no facts": (tool(),),
    "no tool": (facts(),),
    "an unknown frame": (tool(), b"X", facts()),
    "a frame after the facts": (tool(), facts(), tool("things.more")),
    "an empty frame": (tool(), b"", facts()),
    "an illegal address": (tool("things.get it"), facts()),
    "a prototype's address": (tool("things.constructor"), facts()),
    "an empty step": (tool("things..get"), facts()),
    "a long address": (tool("a" * 2000), facts()),
    "one address twice": (tool(), tool(), facts()),
    "a tool below a tool": (tool("things"), tool("things.get"), facts()),
    "an unknown method": (tool(operation=Operation("CONNECT", "/things")), facts()),
    "a relative path": (tool(operation=Operation("GET", "@evil.example/")), facts()),
    "a long path": (tool(operation=Operation("GET", "/" + "a" * 30_000)), facts()),
    "a body with too many names": (tool(operation=Operation("POST", "/", body=RequestBody((MediaContent("a/b", "json", properties=("a",) * 1000),)))), facts()),
    "a body with a long name": (tool(operation=Operation("POST", "/", body=RequestBody((MediaContent("a/b", "json", takes=("a" * 10_000,)),)))), facts()),
    "an unknown style": (tool(operation=Operation("GET", "/", parameters=(Parameter("a", "a", "query", style="x"),))), facts()),
    "a long name": (tool(operation=Operation("GET", "/", parameters=(Parameter("a" * 3000, "a", "query"),))), facts()),
    "a server that is a file": (tool(), facts(servers=("file:///etc/passwd",))),
    "a server of the operation": (tool(operation=Operation("GET", "/", servers=("javascript:x",))), facts()),
    "a server with a line break": (tool(), facts(servers=("https://a.example/\r\nHost: b",))),
    "a long server": (tool(), facts(servers=("https://" + "a" * 9000,))),
    "many servers": (tool(), facts(servers=tuple(f"https://{n}.example" for n in range(200)))),
    "an unknown credential": (tool(operation=Operation("GET", "/", security=(("token",),))), facts()),
    "an illegal credential slot": (tool(), facts(slots=(CredentialSlot("a b", "header", "x"),))),
    "one credential slot twice": (tool(), facts(slots=(CredentialSlot("a", "header", "x"),) * 2)),
    "many warnings": (tool(), facts(warnings=("x",) * 100)),
    "no JSON": (TOOL + b"{}\n{}", facts()),
    "deep JSON": (TOOL + b"[" * 100_000 + b"\n", facts()),
    "a name that is a pointer": (tool(), SHARED_SCHEMA + b"a/b\n{}", facts()),
    "one schema twice": (tool(), SHARED_SCHEMA + b"A\n{}", SHARED_SCHEMA + b"A\n{}", facts()),
    "a schema after the facts": (tool(), facts(), SHARED_SCHEMA + b"A\n{}"),
    "a large frame": (tool(), SHARED_SCHEMA + b"A\n" + b" " * 3_000_000 + b"{}", facts()),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_what_no_honest_compiler_sends_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="the definition of the source things") as caught:
        await stored(tmp_path, *REFUSED[name])
    assert len(caught.value.message) < 500
    assert os.listdir(tmp_path) == []


async def test_the_sum_of_all_frames_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = [SHARED_SCHEMA + b"A%d\n{}" % n for n in range(100)]
    monkeypatch.setattr(frame_check, "MAX_COMPILED_BYTES", 500)
    with pytest.raises(SourceError, match="too large"):
        await stored(tmp_path, tool(), *schemas, facts())


async def test_the_number_of_tools_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_check, "MAX_OPERATIONS", 2)
    with pytest.raises(SourceError, match="more than 2 operations"):
        await stored(tmp_path, *(tool(f"things.get{n}") for n in range(3)), facts())


@pytest.mark.parametrize(
    ("operation", "schema", "writes"),
    [
        (Operation("GET", "/things"), SCHEMA, False),
        (Operation("DELETE", "/things"), SCHEMA, True),
        (Operation("GET", "/things?_method=DELETE"), SCHEMA, True),
        (Operation("GET", "/things", parameters=(Parameter("X-HTTP-Method-Override", "m", "header"),)), SCHEMA, True),
        (Operation("GET", "/things"), {"properties": {"_method": {}}}, True),
    ],
)
async def test_whether_a_tool_writes_is_not_believed(
    tmp_path: Path, operation: Operation, schema: Any, writes: bool
) -> None:
    assert (await only_head(tmp_path, tool(operation=operation, schema=schema), facts())).writes is writes


async def test_the_fingerprint_is_computed_from_what_is_stored(tmp_path: Path) -> None:
    forged = tool().replace(b'"address"', b'"fingerprint":"f00","address"')
    honest = await only_head(tmp_path / "1", tool(), facts())
    assert (await only_head(tmp_path / "2", forged, facts())).fingerprint == honest.fingerprint
    other = tool(operation=Operation("GET", "/other"))
    assert (await only_head(tmp_path / "3", other, facts())).fingerprint != honest.fingerprint
    shared = tool(schema={"properties": {"id": {"$ref": "#/$defs/A"}}})
    prints = [
        (await only_head(tmp_path / kind, shared, SHARED_SCHEMA + b'A\n{"type":"%s"}' % kind.encode(), facts())).fingerprint
        for kind in ("string", "integer")
    ]
    assert prints[0] != prints[1]


async def test_texts_are_cleaned_and_cut(tmp_path: Path) -> None:
    long = "a\u202eb\u200b " + "c" * 9000
    cache = await stored(tmp_path, tool(description=long), facts(title=long, warnings=(long,)))
    cache.close()
    texts = (cache.heads()[0].description, cache.facts["title"], cache.facts["warnings"][0])
    assert all(text.startswith("ab ccc") for text in texts)
    assert [len(text) for text in texts] == [1000, 200, 1000]


async def test_the_names_of_arguments_are_those_of_the_schema(tmp_path: Path) -> None:
    assert (await only_head(tmp_path, tool(), facts())).parameters == ("id",)


@pytest.mark.parametrize(
    "schema",
    [
        {"$anchor": "/$defs/A"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "#/$defs/Missing"}}},
        {"properties": {"a": {"$id": "https://example.com"}}},
        {"properties": {"a": 7}},
        {"anyOf": 7},
    ],
)
async def test_a_schema_that_is_not_in_the_normal_form_is_never_used(tmp_path: Path, schema: dict[str, Any]) -> None:
    cache = await stored(
        tmp_path, tool(schema={"type": "object"}), SHARED_SCHEMA + b"A\n" + msgspec.json.encode(schema), facts()
    )
    with pytest.raises(SourceError, match="damaged"):
        cache.schema(msgspec.json.encode({"properties": {"a": {"$ref": "#/$defs/A"}}}))
    cache.close()


async def test_a_large_schema_is_cut_where_it_is_furthest_away(tmp_path: Path) -> None:
    wide = msgspec.json.encode({"properties": {f"p{n}": {"type": "string"} for n in range(10_000)}, "$ref": "#/$defs/B"})
    shared = (SHARED_SCHEMA + b"A\n" + wide, SHARED_SCHEMA + b"B\n" + wide.replace(b"/B", b"/A"))
    cache = await stored(tmp_path, tool(schema={"type": "object"}), *shared, facts())
    made = cache.schema(b'{"$ref":"#/$defs/A"}')
    cache.close()
    assert len(made["$defs"]["A"]["properties"]) == 10_000 and is_incomplete(made["$defs"]["B"])


class Siblings:
    """Implements `TaskRunner`: it asks for these files, and then compiles the definition."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self.answers: list[bytes | None] = []

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        assert answer is not None
        self.answers = [await answer(file.encode(errors="surrogateescape")) for file in self._files]
        return list(compile_definition(list(parts), lambda _: None))


def definition(folder: Path) -> LoadedDefinition:
    return LoadedDefinition(b'{"openapi":"3.1.0","paths":{"/a":{"get":{}}}}', str(folder))


async def test_a_compiler_gets_no_file_outside_of_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "api"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    (inside / "pet.json").write_text("{}")
    (inside / "link").symlink_to(tmp_path / "secret")
    outside = [
        "../secret",
        str(tmp_path / "secret"),
        "link",
        "/etc/passwd",
        "../api/../secret",
        "a\0b",
        "\udcff",
        "x" * 9000,
        ".",
    ]
    runner = Siblings(["pet.json", *outside])
    cache = await compile_to_cache(definition(inside), "it", tmp_path / "cache", runner)
    cache.close()
    assert runner.answers == [b"{}", *[None] * len(outside)]
    assert cache.facts["siblings"]["pet.json"] == hashlib.sha256(b"{}").hexdigest()


async def test_the_files_of_a_definition_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gloveport.sources.openapi.opening.MAX_DOCUMENT_BYTES", 1000)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b" " * 400)
    runner = Siblings(["a", "a", "b", "c"])
    (await compile_to_cache(definition(tmp_path), "it", tmp_path / "cache", runner)).close()
    assert [answer is not None for answer in runner.answers] == [True, True, False, False]


async def test_the_compiler_does_not_learn_where_the_folder_is(tmp_path: Path) -> None:
    seen: list[bytes] = []

    class Spy:
        async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
            seen.extend(parts)
            return list(compile_definition(list(parts), lambda _: None))

    (await compile_to_cache(definition(tmp_path), "it", tmp_path / "cache", Spy())).close()
    assert str(tmp_path.parent).encode() not in b"".join(seen)
