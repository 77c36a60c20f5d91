"""A small program, run against answers that are already there: the first use of a path is the slow one.

Before the fork it fills caches; after the fork it makes this process own the memory that any program writes to, which
would otherwise be copied page by page (at some 5 µs each) while the program waits.
"""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

from __future__ import annotations

import asyncio
import builtins
import sys
from asyncio import events
from collections.abc import Callable
from typing import Any

from .wire import Channel

SCRIPT = '''
import json, re
from dataclasses import dataclass
from datetime import datetime, timedelta

@dataclass
class Row:
    name: str
    size: float = 1.5

class Table:
    """Rows."""
    def __init__(self, rows):
        self.rows = list(rows)
    def total(self, *, scale: int = 1) -> float:
        return sum(row.size for row in self.rows) * scale

async def fetch(number, **options):
    given = await tools.warm.up(number=number, text="x", deep={"a": [1.5, True, None]}, **options)
    return {"given": given, "json": json.loads(json.dumps({"number": number}))}

def words(text):
    return {word.lower(): len(word) for word in re.findall(r"\\w+", text) if word}

table = Table(Row(f"row {number}", number / 2) for number in range(8))
first = await fetch(1)
both = await asyncio.gather(fetch(2), fetch(3, extra="y"), return_exceptions=True)
try:
    first["missing"]
except KeyError as error:
    seen = f"{type(error).__name__}: {error}"
else:
    seen = ""
day = datetime(2024, 1, 2) + timedelta(days=1)
for row in sorted(table.rows, key=lambda row: -row.size)[:2]:
    print(row.name, round(row.size, 2), sep="\\t")
result = {"both": both, "seen": seen, "day": day.isoformat(), "words": words("so it goes")}
result | {"total": table.total(scale=2), "letters": [letter for letter in "abc"]}
'''
CALLS = 3


class Stage(Channel):
    """A channel to nobody, with the answers to three calls."""

    def __init__(self) -> None:
        super().__init__(0)
        replies = [f'["reply",1,{number},true,{{"a":[1,2.5,{{"$":"undefined"}}]}}]' for number in range(1, CALLS + 1)]
        self._answers = [len(reply).to_bytes(4, "big") + reply.encode() for reply in replies]

    def _read(self) -> int:
        answer = self._answers.pop(0)
        self._chunk[: len(answer)] = answer
        return len(answer)

    def flush(self) -> None:
        """Forget what was said."""
        self._out.clear()


def rehearse(perform: Callable[[Stage, str], Any]) -> Any:
    """Let `perform` run the script on the stage; what it changed of the interpreter is put back. Gives its result."""
    main_module, stdout, real_input = sys.modules["__main__"], sys.stdout, builtins.input
    known = set(vars(builtins))
    builtins.asyncio = asyncio
    try:
        return perform(Stage(), SCRIPT)
    finally:
        sys.stdout, sys.modules["__main__"], builtins.input = stdout, main_module, real_input
        events._set_running_loop(None)
        sys.set_asyncgen_hooks(None, None)
        for name in set(vars(builtins)) - known:
            delattr(builtins, name)
