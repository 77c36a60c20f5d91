"""A small program, run against answers that are already there: the first use of a path is the slow one.

Before the fork it fills caches. In a fork that is made for it alone, it shows which memory any program writes to; every
guest then gets that at once, where it would otherwise be copied page by page while the program waits. It is short because
what it touches, all guests have: a script with more in it (dataclasses, regular expressions) takes another 0.5 ms off a
program like it, and 0.7 MB more per process.
"""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

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


class Stage(Channel):
    """A channel to nobody, with the answers to three calls."""

    def __init__(self) -> None:
        super().__init__()
        replies = [f'["reply",1,{number},true,{{"a":[1,2.5,{{"$":"undefined"}}]}}]' for number in range(1, CALLS + 1)]
        answers = io.BytesIO(b"".join(len(reply).to_bytes(4, "big") + reply.encode() for reply in replies))
        self._receive = lambda size, _flags: answers.read(size)

    def flush(self) -> None:
        """Forget what was said."""
        self._out.clear()


def play(perform: Callable[[Stage, str], Any]) -> Any:
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
