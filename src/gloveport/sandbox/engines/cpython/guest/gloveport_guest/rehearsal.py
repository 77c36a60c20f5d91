"""A small program with prepared answers, run in advance because the first use of a code path is slow.

Before the fork it warms caches. In a trial fork it shows which memory any program writes to. Every guest then gets those
pages at once instead of copying them one by one while its program waits. It is short, because all guests pay for the
memory that it touches: a script with more in it (dataclasses, regular expressions) saves another 0.5 ms for a similar
program and costs 0.7 MB more per process.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import asyncio
import builtins
import io
import sys
from asyncio import events
from collections.abc import Callable
from typing import Any

from .wire import Channel

SCRIPT = """
import json
class Row:
    size = 1.5
async def fetch(number):
    return [await tools.warm.up(number=number, deep={"a": [1.5, None]}), json.dumps({"number": number})]
both = await asyncio.gather(fetch(1), fetch(2))
print(f"{both[0]} rows", sum(row.size for row in [Row()]))
await fetch(3)
"""
CALLS = 3
TAIL = SCRIPT.count("\n")
SETUP = {
    "seed": "",
    "env": {},
    "has_input": False,
    "entry": "body",
    "sources": [],
    "max_frame_bytes": 1024 * 1024,
    "max_log_bytes": 1000,
}


class Stage(Channel):
    """A channel without a host, with the answers to three calls."""

    def __init__(self) -> None:
        super().__init__()
        replies = [f'["reply",1,{number},true,{{"a":[1,2.5,{{"$":"undefined"}}]}}]' for number in range(1, CALLS + 1)]
        answers = io.BytesIO(b"".join(len(reply).to_bytes(4, "big") + reply.encode() for reply in replies))
        self._receive = lambda size, _flags: answers.read(size)

    def flush(self) -> None:
        """Drop the frames."""
        self._out.clear()


def play(perform: Callable[[Stage, str], Any]) -> Any:
    """Have `perform` run the script, restore what it changed in the interpreter, and return its result."""
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
