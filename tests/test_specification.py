"""Every promise of SPECIFICATION.md names what holds it, and what it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SPECIFICATION.md").read_text()
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<number>[^|]+) \| (?P<holders>[^|]+) \|$", re.MULTILINE)
_HEADS = {"promise", "---"}


def promises() -> dict[tuple[str, str], str]:
    """What is promised, with its number, and what holds it."""
    rows = [match.groupdict() for match in _ROW.finditer(PAGE)]
    return {(row["promise"], row["number"]): row["holders"] for row in rows if row["promise"] not in _HEADS}


def holders(text: str) -> list[str]:
    """What a promise names; nothing while it is pending."""
    return [] if text.startswith("**pending**: ") else re.findall(r"`([^`]+)`", text)


def names_in(path: Path) -> set[str]:
    """The names of the tests in a module."""
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def exists(holder: str) -> bool:
    """Whether there is such a test, row of the benchmarks, or target."""
    if holder.startswith("bench: "):
        rows = (ROOT / "benchmarks" / "results.md").read_text()
        return f"\n| {holder.removeprefix('bench: ')} | " in rows
    if holder.startswith("make "):
        return (
            re.search(rf"^{re.escape(holder.removeprefix('make '))}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
            is not None
        )
    place, _, name = holder.partition("::")
    return name.startswith("test_") and (ROOT / place).is_file() and name in names_in(ROOT / place)


def test_every_promise_names_what_holds_it_or_says_that_nothing_does_yet() -> None:
    assert len(promises()) >= 50
    assert [promise for promise, text in promises().items() if not holders(text) and "**pending**: `" not in text] == []


def test_what_a_promise_names_exists() -> None:
    missing = {(promise, name) for promise, text in promises().items() for name in holders(text) if not exists(name)}
    assert missing == set()


def test_every_row_of_the_page_is_read() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith(("| promise", "|---"))]
    assert len(lines) == len(promises())


def test_the_check_can_fail() -> None:
    assert not exists("tests/test_specification.py::test_that_is_not_there")
    assert not exists("tests/nowhere.py::test_the_check_can_fail")
    assert not exists("tests/test_specification.py::exists")
    assert not exists("bench: nothing")
    assert not exists("make nothing")
    assert exists("make test")
