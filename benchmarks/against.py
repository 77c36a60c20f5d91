"""This tree beside an earlier one, run by run: `python -m benchmarks.against PYTHON [rounds] [seconds]`.

PYTHON is the interpreter of an environment in which the earlier tree is installed, such as `.venv/bin/python` of another
checkout after `make setup`. Each tree runs in its own process; they take turns, so that both meet the same machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.programs import PROGRAM_JS, PROGRAM_PY, PROGRAM_TS

DRIVER = Path(__file__).parent / "beside" / "tree.py"
PROGRAMS = {
    "trivial TypeScript in deno": ("1 + 1", "typescript", "deno"),
    "20 lines of TypeScript in deno": (PROGRAM_TS, "typescript", "deno"),
    "20 lines of JavaScript in quickjs": (PROGRAM_JS, "javascript", "quickjs"),
    "trivial Python in cpython": ("1 + 1", "python", "cpython"),
    "20 lines of Python, 3 calls, in cpython": (PROGRAM_PY, "python", "cpython"),
}
AT_ONCE = 8


class Tree:
    """One tree in a process of its own."""

    def __init__(self, python: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([python, str(DRIVER)], stdin=pipe, stdout=pipe, text=True)

    def ask(self, **question: Any) -> Any:
        """Return the answer to one question."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def main(python: str, rounds: int = 300, seconds: float = 3.0) -> None:
    """Print the ratios."""
    now, before = Tree(sys.executable), Tree(python)
    print("| program | now | before | ratio |\n|---|---|---|---|")
    for name, (code, language, engine) in PROGRAMS.items():
        run = {"code": code, "language": language, "engine": engine}
        times = {tree: [tree.ask(op="run", **run) for _ in range(20)][:0] for tree in (now, before)}
        for _ in range(rounds):
            for tree, found in times.items():
                found.append(tree.ask(op="run", **run))
        mine, theirs = (statistics.median(times[tree]) for tree in (now, before))
        print(f"| {name}, p50 | {mine:.2f} ms | {theirs:.2f} ms | {mine / theirs:.2f} × |", flush=True)
    for name, (code, language, engine) in PROGRAMS.items():
        run = {"code": code, "language": language, "engine": engine, "at_once": AT_ONCE}
        found = {tree: [] for tree in (now, before)}
        for _ in range(5):
            for tree, slices in found.items():
                slices.append(tree.ask(op="sustain", seconds=seconds, **run))
        mine, theirs = (sorted(found[tree])[2] for tree in (now, before))
        print(f"| {name}, {AT_ONCE} at once | {mine[0]:.0f} /s | {theirs[0]:.0f} /s | {mine[0] / theirs[0]:.2f} × |")
        print(
            f"| {name}, processor time | {mine[1]:.1f} ms | {theirs[1]:.1f} ms | {mine[1] / theirs[1]:.2f} × |", flush=True
        )
    now.end()
    before.end()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *map(float, sys.argv[3:4]))
