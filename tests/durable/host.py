"""A host in a process of its own, whose tools have their effects at a service in another one: it can be killed at any moment.

    python -m tests.durable.host STORE EFFECTS run CODE LANGUAGE ENGINE
    python -m tests.durable.host STORE EFFECTS plan CODE LANGUAGE ENGINE
    python -m tests.durable.host STORE EFFECTS apply RUN
    python -m tests.durable.host STORE EFFECTS resume RUN
    python -m tests.durable.host STORE EFFECTS rollback RUN

EFFECTS is the URL of a list of the receiver (`receiver.py`). It prints the outcome as JSON. With KILL_AT in the environment,
it kills itself at that point of the store. With BANK, the service is also a source, by its definition in that file.
With SESSION, a run uses the session of this name.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

from gloveport import Gloveport, OptionError, Outcome, Rule, SourceConfig, tool
from gloveport.store.event_log import EventLog
from gloveport.types import Language, RunMode
from tests.durable.receiver import post_line

EFFECTS = sys.argv[2] if __name__ == "__main__" else ""


async def note(line: str) -> None:
    """Have an effect: the service gets the line."""
    await asyncio.to_thread(post_line, EFFECTS or os.environ["EFFECTS"], line)  # the tests' own ports have no command line


@tool(writes=True)
async def refund(receipt: str) -> None:
    """Take a payment back."""
    await note(f"refund {receipt}")
    await asyncio.sleep(0.002)


@tool(writes=True, undo="refund(receipt = result)")
async def pay(n: int) -> str:
    """Pay an amount."""
    await note(f"pay {n}")
    await asyncio.sleep(0.002)
    return f"paid {n}"


@tool(writes=True)
async def slow_pay(n: int) -> str:
    """Pay an amount, and never return."""
    await note(f"pay {n}")
    await asyncio.Event().wait()
    return f"paid {n}"


async def look(n: int) -> int:
    """Look something up."""
    await asyncio.sleep(0.001 * (n % 4))
    return n * 2


TOOLS = (pay, refund, slow_pay, look)


def kill_at(point: int) -> None:
    """Die before or after the commits of the writer: at an odd point before the next one, at an even one after it."""
    write = EventLog._write
    count = 0

    def counted(self: EventLog, *args: Any) -> Any:
        nonlocal count
        count += 1
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)
        found = write(self, *args)
        count += 1
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    EventLog._write = counted


def port(store: Path) -> Gloveport:
    """A port that allows `pay`, and asks about `slow_pay` only when ASK is set."""
    rules = [Rule("*", "allow")] if not os.environ.get("ASK") else []
    sources = []
    if definition := os.environ.get("BANK"):
        undo = {"pay": "payments.refund(id = result.id)"}
        sources.append(SourceConfig("bank", "openapi", definition, base_url=EFFECTS, allow_private=True, undo=undo))
    return Gloveport(tools=TOOLS, sources=sources, store=store, rules=rules, spare=1)


def set_lock_timeout(opened: Gloveport, milliseconds: int) -> None:
    """Let a port wait so long for the lock of the store, on the connections that it writes with.

    A test sets it while it holds the lock itself: the connections of one port also wait for each other, on a busy machine long.
    """
    assert opened._store is not None
    for writer in (opened._store._log, opened._store._link and opened._store._link._shelf):
        if writer is not None and writer._connection is not None:
            writer._connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


def document(outcome: Outcome) -> dict[str, Any]:
    """What the tests want to know of an outcome."""
    return {
        "run": outcome.run,
        "status": outcome.status,
        "value": outcome.value,
        "error": outcome.error and outcome.error.code,
        "calls": [[call.tool, call.status] for call in outcome.calls],
        "logs": [line.text for line in outcome.logs],
        "waiting": list(outcome.waiting),
    }


async def main(store: Path, what: str, *rest: str) -> None:
    """Run or resume."""
    async with port(store) as opened:
        try:
            if what in ("run", "plan"):
                code, language, engine = rest
                mode = cast("RunMode", what)
                options: dict[str, Any] = {"mode": mode, "session": os.environ.get("SESSION")}
                outcome = await opened.run(code, language=cast("Language", language), engine=engine, **options)
                told = document(outcome)
            elif what == "apply":
                plan = (await opened.resume(rest[0])).plan
                assert plan is not None
                told = document(await opened.apply(plan))
            elif what == "rollback":
                told = {"status": "rollback", "writes": [one.status for one in (await opened.rollback(rest[0])).writes]}
            else:
                told = document(await opened.resume(rest[0]))
        except OptionError as error:
            told = {"status": "failed", "error": error.code}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    if "KILL_AT" in os.environ:
        kill_at(int(os.environ["KILL_AT"]))
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[3:]))
