"""Every threat to the sandbox (S1 to S22) is cited by a test that runs, and no test cites a threat that there is none of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
COUNTS = {"S": 22, "B": 16, "N": 13, "M": 16, "D": 8, "R": 7}
"""How many threats of each kind are numbered: sandbox, bridge, network, surfaces, data, reliability."""

_CITATION = re.compile(r"\b([SBNMDR])([1-9][0-9]?)\b")
_SPEAKS_OF_THREATS = re.compile(r"threats?\b|\([SBNMDR][1-9]|; [SBNMDR][1-9]|: [SBNMDR][1-9]", re.IGNORECASE)


def said(path: Path) -> list[str]:
    """The docstrings of a test module, its functions and classes: what it says that it tests."""
    tree = ast.parse(path.read_text())
    speakers = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))]
    return [text for node in speakers if (text := ast.get_docstring(node)) and _SPEAKS_OF_THREATS.search(text)]


def citations() -> dict[str, set[str]]:
    """The threats that test modules cite, and where."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.name != Path(__file__).name and "def test_" in path.read_text():
            for text in said(path):
                for kind, number in _CITATION.findall(text):
                    found.setdefault(f"{kind}{number}", set()).add(str(path.relative_to(TESTS)))
    return found


def test_every_threat_to_the_sandbox_is_cited_by_a_test() -> None:
    wanted = {f"S{number}" for number in range(1, COUNTS["S"] + 1)}
    assert wanted - citations().keys() == set()


def test_every_threat_that_is_cited_exists() -> None:
    known = {f"{kind}{number}" for kind, count in COUNTS.items() for number in range(1, count + 1)}
    assert {name: places for name, places in citations().items() if name not in known} == {}
