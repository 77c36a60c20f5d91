"""docs/threats.md, threats.toml, the tests and the comments in the source speak of the same threats."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.test_specification import exists

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "gloveport"
PAGE = (TESTS.parent / "docs" / "threats.md").read_text()
ENTRIES: dict[str, list[str]] = tomllib.loads((TESTS / "threats.toml").read_text())
COUNTS = {"S": 25, "B": 16, "N": 13, "M": 16, "D": 8, "R": 7}
"""The number of threats of each kind: sandbox, bridge, network, surfaces, data, reliability."""

_ID = "[SBNMDR][1-9][0-9]?"
_ROW = re.compile(
    rf"^\| (?P<id>{_ID}) \| (?P<threat>[^|]+) \| (?P<behaviour>[^|]+) \| (?P<state>\w+) \| (?P<tests>[^|]+) \|$",
    re.MULTILINE,
)
_CITATION = re.compile(rf"\b{_ID}\b")
_SPEAKS_OF_THREATS = re.compile(rf"threats?\b|[(;:] ?{_ID}\b", re.IGNORECASE)


def rows() -> dict[str, re.Match[str]]:
    """Return the rows of the page by their ids."""
    return {row["id"]: row for row in _ROW.finditer(PAGE)}


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a module, and those of a script as whole lines."""
    if path.suffix == ".js":
        yield from re.findall(r"//.*|/\*.*?\*/", path.read_text(), re.DOTALL)
        return
    yield from docstrings(path)
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def cited_in_source() -> dict[str, set[str]]:
    """Return the threats that comments and docstrings of the package cite, with the files that cite them."""
    found: dict[str, set[str]] = {}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]):
        for text in comments(path):
            for name in _CITATION.findall(text) if _SPEAKS_OF_THREATS.search(text) else ():
                found.setdefault(name, set()).add(str(path.relative_to(SOURCE)))
    return found


def cited_in_tests() -> dict[str, set[str]]:
    """Return the threats that docstrings of test modules cite, with the modules that cite them."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for text in docstrings(path) if path.name != Path(__file__).name else ():
            for name in _CITATION.findall(text) if _SPEAKS_OF_THREATS.search(text) else ():
                found.setdefault(name, set()).add(str(path.relative_to(TESTS)))
    return found


def test_the_page_lists_every_threat_once() -> None:
    listed = re.findall(rf"^\| ({_ID}) \|", PAGE, re.MULTILINE)
    assert listed == [f"{kind}{number}" for kind, count in COUNTS.items() for number in range(1, count + 1)]
    assert list(rows()) == listed, "a row has not the five columns of the others"


def test_every_threat_that_is_due_has_a_test_and_no_other_has_one() -> None:
    states = {name: row["state"] for name, row in rows().items()}
    assert set(states.values()) <= {"enforced", "partly", "planned"}
    assert {name for name, state in states.items() if state != "planned"} == ENTRIES.keys()
    due = [name for name in ENTRIES if name.startswith("S")]
    assert f" | {len(due)} of {COUNTS['S']} |" in (TESTS.parent / "SPECIFICATION.md").read_text()


def test_a_threat_that_is_partly_enforced_says_what_is_missing() -> None:
    partly = {name: row["behaviour"] for name, row in rows().items() if row["state"] == "partly"}
    assert {name for name, text in partly.items() if not re.search(r"Missing: |planned|comes with", text)} == set()


def test_the_tests_of_every_threat_exist() -> None:
    assert [(name, proof) for name, proofs in ENTRIES.items() for proof in proofs if not exists(proof)] == []


def test_the_page_names_the_files_of_those_tests() -> None:
    for name, row in rows().items():
        files = dict.fromkeys(proof.partition("::")[0] for proof in ENTRIES.get(name, []))
        assert row["tests"] == (", ".join(f"`{file}`" for file in files) or "–"), name


def test_every_threat_that_the_source_or_a_test_cites_is_on_the_page() -> None:
    cited = cited_in_source() | cited_in_tests()
    assert len(cited) >= 30
    assert {name: places for name, places in cited.items() if name not in rows()} == {}
