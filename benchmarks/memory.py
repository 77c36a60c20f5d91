"""The memory of a port that waits: after its start, after a burst of runs, and after it has shrunk.

`python -m benchmarks.memory` runs it alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from benchmarks.processes import proportional_mb
from benchmarks.sampling import Row
from gloveport import Gloveport
from gloveport.sandbox import pool
from gloveport.types import Language

BURST_RUNS = 40
SETTLE_SECONDS = 3.0
BURST_IDLE_SECONDS = 20.0  # in place of the five minutes after which a port shrinks
KINDS: list[tuple[str, list[Language], bool]] = [
    ("TypeScript and Python", ["typescript", "python"], False),
    ("TypeScript with its type check", ["typescript"], True),
]
PROGRAMS: dict[Language, str] = {"typescript": "const n: number = 1; return n + 1", "python": "n: int = 1\nn + 1"}


async def stages(languages: list[Language], check_types: bool) -> list[tuple[float, int]]:
    """Return megabytes and processes at each stage."""
    found = []
    pool.IDLE_SECONDS = BURST_IDLE_SECONDS
    async with Gloveport(check_types=check_types) as port:
        for runs in (1, BURST_RUNS):
            outcomes = await asyncio.gather(*(port.run(PROGRAMS[one], language=one) for one in languages * runs))
            assert all(outcome.value == 2 for outcome in outcomes)
            await asyncio.sleep(SETTLE_SECONDS)
            found.append(proportional_mb(os.getpid()))
        await asyncio.sleep(BURST_IDLE_SECONDS + SETTLE_SECONDS)
        found.append(proportional_mb(os.getpid()))
    return found


async def rows() -> list[Row]:
    """Return a row for each kind of use, measured in a process of its own."""
    made = []
    for number, (name, _, _) in enumerate(KINDS):
        command = [sys.executable, "-m", "benchmarks.memory", str(number)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        told, _ = await process.communicate()
        first, burst, shrunk = (f"{size:.0f} MB in {count}" for size, count in json.loads(told))
        title = f"memory (PSS) of an idle port, {name}: shrunk, beside after the first runs and after {BURST_RUNS} at once"
        made.append((title, shrunk, f"{first}; {burst}", "–", "–"))
    return made


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(stages(*KINDS[int(sys.argv[1])][1:]))))
    else:
        for line in asyncio.run(rows()):
            print(" | ".join(line))
