"""The hostile Python programs in surroundings of another kind: `python -m tests.escapes.elsewhere JSON` prints verdicts.

The surroundings are real: another user, and layers of the jail taken away, as `tests.sandbox.jail.host` does it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable

from gloveport.sandbox.launcher import Launcher
from tests.escapes import python_ways, ways
from tests.escapes.corpus import Escape, runnable
from tests.escapes.python_ways import ENGINES
from tests.escapes.ways import Verdict
from tests.sandbox.jail.host import become_nobody, open_the_way, take_away

AT_ONCE = 4


async def run_all(way: Callable[[Escape], Awaitable[Verdict]]) -> dict[str, Verdict]:
    """Every Python program in one way, a few at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(escape: Escape) -> tuple[str, Verdict]:
        async with room:
            return escape.name, await way(escape)

    return dict(await asyncio.gather(*(one(escape) for escape in runnable(python=True))))


async def try_all() -> dict[str, object]:
    """How strong the jail is here, and what tripped: sealed on each engine, and in the bare interpreter."""
    launcher = Launcher(python_ways.plain_launch())
    report = await launcher.start()
    try:
        found = {"fallen": await run_all(lambda escape: ways.fallen(escape, launcher))}
    finally:
        await launcher.close()
    with python_ways.eavesdropping() as said:
        async with python_ways.open_port() as port:
            for engine in ENGINES:
                found[engine] = await run_all(lambda escape: python_ways.sealed(escape, port, said, engine))  # noqa: B023
    tripped = {
        f"{way}: {name}": [sorted(verdict.tripped), verdict.text[-2000:]]
        for way, verdicts in found.items()
        for name, verdict in verdicts.items()
        if verdict.tripped
    }
    return {"strength": report.strength, "tried": sum(map(len, found.values())), "tripped": tripped}


def main() -> None:
    """Take up the surroundings that the argument describes, and try all programs there."""
    wanted = json.loads(sys.argv[1])
    if wanted["user"] == "nobody":
        become_nobody()
    else:
        open_the_way()
    take_away(wanted["without"])
    print(json.dumps(asyncio.run(try_all())))


if __name__ == "__main__":
    main()
