"""Each promise of SPECIFICATION.md has an entry in specification.toml, and what an entry names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import COLLECTED

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SPECIFICATION.md").read_text()
ENTRIES: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("specification.toml").read_text())
MAX_LINE_CHARS = 119
_ROW = re.compile(r"^\| (?P<id>[a-z0-9-]+) \| (?P<promise>[^|]+) \| (?P<number>[^|]+) \|$", re.MULTILINE)
_PENDING = "pending: "


def rows() -> list[tuple[str, str]]:
    """Return the id and the number of each promise, in the order of the page."""
    return [(row["id"], row["number"]) for row in _ROW.finditer(PAGE) if row["id"] != "id"]


@cache
def defined_tests(path: Path) -> set[str]:
    """Return the names of the test functions that a module defines."""
    tree = ast.parse(path.read_text())
    functions = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {name for name in functions if name.startswith("test_")}


def exists(proof: str) -> bool:
    """Return whether there is such a test, row of the benchmarks, or target of the Makefile."""
    if proof.startswith("bench: "):
        return f"\n| {proof.removeprefix('bench: ')} | " in (ROOT / "benchmarks" / "results.md").read_text()
    if proof.startswith("make "):
        target = re.escape(proof.removeprefix("make "))
        return re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None
    place, _, name = proof.partition("::")
    path = ROOT / place
    return place.startswith("tests/") and path.name.startswith("test_") and path.is_file() and name in defined_tests(path)


def collected_tests(config: pytest.Config) -> dict[str, set[str]]:
    """Return what pytest has collected, by file; nothing when it was asked for single tests."""
    if any("::" in argument for argument in config.args):
        return {}
    found: dict[str, set[str]] = {}
    for nodeid in config.stash[COLLECTED]:
        path, _, name = nodeid.partition("::")
        found.setdefault(path, set()).add(name.partition("[")[0])
    return found


def test_every_promise_has_an_entry_and_every_entry_a_promise() -> None:
    ids = [name for name, _ in rows()]
    assert len(ids) >= 70
    assert len(ids) == len(set(ids)), "two promises have one id"
    assert set(ids) == ENTRIES.keys()


def test_every_entry_names_what_enforces_it_or_says_what_is_missing() -> None:
    for name, proofs in ENTRIES.items():
        pending = [proof for proof in proofs if proof.startswith(_PENDING)]
        assert len(proofs) == len(set(proofs)) > 0, name
        assert not pending or (len(proofs) == 1 and len(pending[0]) > len(_PENDING)), name


def test_a_promise_is_marked_as_pending_exactly_where_nothing_enforces_it() -> None:
    pending = {name for name, proofs in ENTRIES.items() if proofs[0].startswith(_PENDING)}
    assert {name for name, number in rows() if "**pending**" in number} == pending


def test_what_an_entry_names_exists() -> None:
    proofs = [(name, proof) for name, each in ENTRIES.items() for proof in each if not proof.startswith(_PENDING)]
    assert [(name, proof) for name, proof in proofs if not exists(proof)] == []


def test_what_an_entry_names_is_collected(request: pytest.FixtureRequest) -> None:
    """The whole suite is collected when it is run, so that a test which pytest passes over fails here."""
    collected = collected_tests(request.config)
    named = [proof.split("::") for proofs in ENTRIES.values() for proof in proofs if "::" in proof]
    assert [(path, name) for path, name in named if path in collected and name not in collected[path]] == []


def test_every_line_of_the_page_is_short_and_every_row_is_read() -> None:
    lines = PAGE.splitlines()
    assert [line for line in lines if len(line) > MAX_LINE_CHARS] == []
    assert len([line for line in lines if line.startswith("| ") and not line.startswith("| id ")]) == len(rows())


@pytest.mark.parametrize(
    "proof",
    [
        "tests/test_specification.py::test_that_is_not_there",
        "tests/test_specification.py::exists",
        "tests/nowhere.py::test_what_an_entry_names_exists",
        "tests/nowhere.py",
        "bench: nothing",
        "make nothing",
    ],
)
def test_the_check_can_fail(proof: str) -> None:
    assert not exists(proof)
    assert exists("make test")
