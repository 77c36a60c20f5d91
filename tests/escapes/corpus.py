"""The hostile programs: where they lie, and what their texts say of themselves."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.escapes.calls import NUMBERS

HERE = Path(__file__).parent
NAIVE = frozenset({"prelude-hijack", "output-forging"})
TWICE = frozenset({"persistence-between-runs"})


@dataclass(frozen=True, slots=True)
class Escape:
    """A program of the corpus."""

    path: Path

    @property
    def name(self) -> str:
        """`category/name`."""
        return f"{self.category}/{self.path.stem}"

    @property
    def category(self) -> str:
        """Its folder."""
        return self.path.parent.name

    @property
    def python(self) -> bool:
        """Whether it is a Python program; all others are JavaScript or TypeScript."""
        return self.path.suffix == ".py"

    @property
    def code(self) -> str:
        """Its text."""
        return self.path.read_text()

    @property
    def naive(self) -> bool:
        """Whether its control is a host or a prelude that believes what it hears, because it attacks one."""
        return self.category in NAIVE or "control: naive prelude" in self.code

    @property
    def twice(self) -> bool:
        """Whether it runs twice, because it plants something for another run to find."""
        return self.category in TWICE

    @property
    def runnable(self) -> bool:
        """Whether the machine code in it, if there is any, is for this machine."""
        wanted = re.search(r"^(?://|#) machine: (\S+)$", self.code, re.MULTILINE)
        return wanted is None or wanted[1] == os.uname().machine

    @property
    def wrapped(self) -> str:
        """What an engine is given: a module that runs it, made without `prepare`, which would refuse some."""
        if self.python:
            return self._with_native_calls()
        if re.search(r"^export default", self.code, re.MULTILINE):
            return self.code
        return f"export default async (input, tools) => {{ {self.code}\n}}"

    def _with_native_calls(self) -> str:
        """Raw system calls are a part of the Python programs that make them: they run sealed, too, unlike those of Deno."""
        if "native." not in self.code:
            return self.code
        native = (HERE / "_harness" / "native.py").read_text().replace("NUMBERS = {}", f"NUMBERS = {NUMBERS!r}")
        return f"{native}\n{self.code}"

    @property
    def dialect(self) -> str:
        """What the engine is to take it for."""
        return {".js": "javascript", ".ts": "typescript", ".py": "python"}[self.path.suffix]


def corpus() -> list[Escape]:
    """Every program, in order."""
    found = [path for ending in ("ts", "js", "py") for path in HERE.glob(f"*/*.{ending}")]
    return [Escape(path) for path in sorted(found) if not path.parent.name.startswith("_")]


def runnable(*, python: bool) -> list[Escape]:
    """Those in Python, or the others, that can run on this machine."""
    return [escape for escape in corpus() if escape.python == python and escape.runnable]
