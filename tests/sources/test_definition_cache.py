"""The definition cache: compiled definitions on disk, complete or absent."""

import os
import stat
import time
from pathlib import Path

import msgspec
import pytest

from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.definition_cache import DefinitionCache, LazySchema, digest

HEADS = (
    ToolHead("pets.list", "All pets.", ("limit",), "f1"),
    ToolHead("pets.create", "A new pet.", ("name",), "f2", writes=True),
)
DEFINITIONS = [("pets.list", b'{"n":1}'), ("pets.create", b'{"n":2}')]
DEFS = [
    ("Pet", b'{"properties":{"owner":{"$ref":"#/$defs/Owner"}}}'),
    ("Owner", b'{"properties":{"pet":{"$ref":"#/$defs/Pet"}}}'),
    ("Unused", b'{"type":"string"}'),
]


def built(folder: Path, name: str = "abc") -> DefinitionCache:
    return DefinitionCache.build(folder, name, HEADS, DEFINITIONS, DEFS, {"title": "Pets"})


def test_a_built_definition_is_read_back(tmp_path: Path) -> None:
    built(tmp_path).close()
    cache = DefinitionCache.open(tmp_path, "abc")
    assert cache is not None
    assert cache.heads() == HEADS
    assert cache.definition("pets.create") == b'{"n":2}'
    assert cache.facts == {"title": "Pets"}
    cache.close()
    cache.close()


def test_a_schema_comes_with_exactly_what_it_reaches(tmp_path: Path) -> None:
    cache = built(tmp_path)
    assert "$defs" not in cache.schema(b'{"type":"string"}')
    assert set(cache.schema(b'{"items":{"$ref":"#/$defs/Pet"}}')["$defs"]) == {"Pet", "Owner"}
    cache.close()


def test_a_text_that_quotes_a_reference_reaches_nothing(tmp_path: Path) -> None:
    cache = built(tmp_path)
    text = msgspec.json.encode({"description": 'see {"$ref":"#/$defs/Pet"}', "const": {"$ref": "#/$defs/Nobody"}})
    assert "$defs" not in cache.schema(text)
    cache.close()


def test_only_the_user_can_read_a_definition_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    built(folder).close()
    assert [path.name for path in folder.iterdir()] == ["abc.sqlite"]
    assert stat.S_IMODE((folder / "abc.sqlite").stat().st_mode) == 0o600


def test_a_build_that_fails_leaves_nothing_and_keeps_the_old_definition(tmp_path: Path) -> None:
    built(tmp_path).close()

    def broken() -> object:
        yield "pets.list", b"{}"
        raise SourceError("the definition is bad")

    with pytest.raises(SourceError, match="the definition is bad"):
        DefinitionCache.build(tmp_path, "abc", (), broken(), (), {})
    assert [path.name for path in tmp_path.iterdir()] == ["abc.sqlite"]
    cache = DefinitionCache.open(tmp_path, "abc")
    assert cache is not None and cache.heads() == HEADS
    cache.close()


@pytest.mark.parametrize("damage", ["empty", "cut", "zeroed", "text"])
def test_a_damaged_definition_is_refused_and_deleted(tmp_path: Path, damage: str) -> None:
    built(tmp_path).close()
    path = tmp_path / "abc.sqlite"
    raw = path.read_bytes()
    harmed = {
        "empty": b"",
        "cut": raw[: len(raw) // 2],
        "zeroed": raw[:4096] + bytes(len(raw) - 4096),
        "text": b"hello" * 999,
    }
    path.write_bytes(harmed[damage])
    cache = DefinitionCache.open(tmp_path, "abc")
    if cache is not None:
        with pytest.raises(SourceError, match="damaged"):
            cache.definition("pets.create")
        cache.close()
        assert not path.exists()


def test_a_changed_text_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    built(tmp_path).close()
    path = tmp_path / "abc.sqlite"
    path.write_bytes(path.read_bytes().replace(b'{"n":2}', b'{"n":3}'))
    cache = DefinitionCache.open(tmp_path, "abc")
    assert cache is not None
    assert cache.definition("pets.list") == b'{"n":1}'
    with pytest.raises(SourceError, match="damaged"):
        cache.definition("pets.create")
    cache.close()


def test_a_folder_that_can_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="can't be written"):
        built(tmp_path / "file" / "below")


def test_definitions_unused_for_months_are_deleted(tmp_path: Path) -> None:
    for name, days in (("old.sqlite", 100), ("used.sqlite", 10), (".left.draft", 2), (".new.draft", 0), ("other.txt", 900)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (time.time() - days * 86400,) * 2)
    built(tmp_path).close()
    assert {path.name for path in tmp_path.iterdir()} == {"abc.sqlite", "used.sqlite", ".new.draft", "other.txt"}


def test_digests_tell_parts_apart() -> None:
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"ab", b"c") == digest(b"ab", b"c")


def test_a_lazy_schema_is_loaded_once_and_only_when_accessed() -> None:
    loads = []

    def load(key: str) -> dict[str, object]:
        loads.append(key)
        return {"type": "object", "properties": {}}

    schema = LazySchema(load, "pets.list")
    assert not loads
    assert dict(schema) == {"type": "object", "properties": {}}
    assert schema["type"] == "object" and len(schema) == 2 and "properties" in schema
    assert loads == ["pets.list"]
