"""The search index on disk ranks as the one in memory does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.catalog import NOUNS, QUERIES, VERBS, WHERE

from gloveport.catalog.search import SearchIndex, WordIndex
from gloveport.catalog.stored_index import StoredTool, load_index, store_index
from gloveport.types import Tool

TOOLS = [
    Tool(f"hub.{place}.{noun}s.{verb}", f"{verb} one {noun} of the {place}", {}, named=("id",), kind="openapi")
    for place in WHERE
    for noun in NOUNS
    for verb in VERBS[:6]
]
STORED = [StoredTool(tool.address, tool.description, tool.kind, tool.writes, False) for tool in TOOLS]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "index.sqlite"
    store_index(path, STORED, WordIndex(TOOLS))
    return path


def test_it_finds_the_same_tools_in_the_same_order(file: Path) -> None:
    found = load_index(file)
    assert found is not None
    stored, memory = SearchIndex(*found), SearchIndex(TOOLS, WordIndex(TOOLS))
    task = "I would like to see which of the people in my group have uploaded a file to the folder since yesterday"
    for query in (*QUERIES, task, "hub.group.files.get", "comp", "", "the", "zzzz", "\0"):
        one, other = stored.search(query, None, 10), memory.search(query, None, 10)
        assert [tool.address for tool in one.tools] == [tool.address for tool in other.tools], query
        assert one.total == other.total
    assert stored.search("list issues", None, 1).tools == (
        next(tool for tool in STORED if tool.address == memory.search("list issues", None, 1).tools[0].address),
    )


def test_a_damaged_or_missing_file_is_no_index(file: Path, tmp_path: Path) -> None:
    assert load_index(tmp_path / "other.sqlite") is None
    file.write_bytes(file.read_bytes()[:100] + b"\0" * 5000)
    assert load_index(file) is None
    assert not file.exists()


def test_a_file_that_is_damaged_where_only_a_search_reads_it_raises_what_its_reader_expects(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE words SET weights = x'00'")
    found = load_index(file)
    assert found is not None
    with pytest.raises(ValueError, match="bytes length not a multiple of item size"):
        SearchIndex(*found).search("issue", None, 3)


def test_a_folder_that_can_not_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store_index(tmp_path / "file" / "index.sqlite", STORED, WordIndex(TOOLS))
