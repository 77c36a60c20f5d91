"""`make soak`: after 10,000 runs on every engine no memory, descriptors, tasks, threads, processes or files remain (R4, R5).

Programs call tools, fail, run out of time, are cancelled or can't be prepared, four at a time. After each twentieth of the runs
the pools settle and all resources are counted. `N=` sets the number of runs. Exits with 1 if anything grew.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.engines import ENGINES, Engine, Per, said
from tests.leftovers import Leftovers, settled

from gloveport import Gloveport, Outcome, ToolError

RUNS = int(os.environ.get("N", "10000"))
SEED = int(os.environ.get("SEED", "20261116"))
SAMPLES, WARM_UP, AT_ONCE = 20, 5, 4
HEAVY = {"deno": 0.15}  # the share of an engine with expensive process starts; the others share the rest
MAX_GROWTH_MB = 8.0  # of this process, from the first quarter after warm-up to the last: about a kilobyte per run
MAX_SERVER_GROWTH_MB = 4.0


class Kind(NamedTuple):
    """A kind of run: its share, its program, and its expected end."""

    share: float
    program: Per
    ends: tuple[str, ...]
    limits: dict[str, Any] = {}  # noqa: RUF012 - never changed
    cancelled: bool = False


KINDS = {
    "calls": Kind(
        0.45,
        Per(
            "const all = await Promise.all([1, 2, 3].map((n) => tools.add({ a: n, b: n })));\nreturn all",
            "import asyncio\nreturn await asyncio.gather(*(tools.add(a=n, b=n) for n in (1, 2, 3)))",
        ),
        ("ok",),
    ),
    "output": Kind(
        0.15,
        Per(
            "for (let i = 0; i < 50; i++) console.log('x'.repeat(2000));\nreturn { rows: Array(500).fill({ a: 1 }), input }",
            "for i in range(50): print('x' * 2000)\nreturn {'rows': [{'a': 1}] * 500, 'input': input}",
        ),
        ("ok",),
    ),
    "caught": Kind(
        0.1,
        Per(
            "try { await tools.refuse(); } catch (e) { return e.code }",
            "try:\n    await tools.refuse()\nexcept ToolError as e:\n    return e.code",
            monty="try:\n    await tools.refuse()\nexcept Exception as e:\n    return 'refused'",
        ),
        ("ok",),
    ),
    "uncaught": Kind(0.05, Per("await tools.refuse()", "await tools.refuse()"), ("refused",)),
    "error": Kind(0.08, Per("null.x", "None.x"), ("program-failed",)),
    "syntax": Kind(0.04, Per("const = 1", "x = = 1"), ("syntax-error",)),
    "time": Kind(0.04, Per("await tools.wait()", "await tools.wait()"), ("time-limit",), {"wall_seconds": 0.03}),
    "spin": Kind(0.03, Per("for (;;);", "while True: pass"), ("time-limit",), {"wall_seconds": 0.05}),
    "cancel": Kind(0.06, Per("await tools.wait()", "await tools.wait()"), ("cancelled",), cancelled=True),
}


class Sample(NamedTuple):
    """The resources in use while nothing runs."""

    runs: int
    seconds: float
    own_mb: float
    servers_mb: float
    descriptors: int
    tasks: int
    threads: int
    processes: int
    files: int


def _resident_mb(pid: int | str) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def _sample(port: Gloveport, runs: int, began: float) -> Sample:
    await settled(port)
    now = Leftovers.now()
    ctypes.CDLL(None).malloc_trim(0)  # count memory in use, not what the C library keeps
    servers = [pool._launcher._server for pool in port._pools.open.values()]
    return Sample(
        runs,
        time.monotonic() - began,
        _resident_mb("self"),
        sum(_resident_mb(server.process.pid) for server in servers if server is not None),
        len(now.files),
        now.tasks,
        now.threads,
        len(now.children),
        len(now.temporary),
    )


def _tools() -> list[Callable[..., Any]]:
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def refuse() -> None:
        """Fail."""
        raise ToolError("as asked", code="refused", data={"why": "x" * 1000})

    async def wait() -> None:
        """Never return."""
        await asyncio.Event().wait()

    return [add, refuse, wait]


async def _run(port: Gloveport, engine: Engine, kind: Kind, chance: random.Random) -> str:
    how: dict[str, Any] = {"language": engine.language, "engine": engine.name, "limits": kind.limits or None}
    task = asyncio.create_task(port.run(said(kind.program, engine), input={"given": "y" * 1000}, **how))
    if kind.cancelled:
        asyncio.get_running_loop().call_later(chance.uniform(0, 0.03), task.cancel)
    try:
        return _code(await task)
    except asyncio.CancelledError:
        return "cancelled"


def _code(outcome: Outcome) -> str:
    return "ok" if outcome.error is None else outcome.error.code


async def _batch(port: Gloveport, count: int, chance: random.Random, seen: Counter[str]) -> None:
    share = (1 - sum(HEAVY.values())) / max(1, len([engine for engine in ENGINES if engine.name not in HEAVY]))
    weights = [HEAVY.get(engine.name, share) for engine in ENGINES]
    planned = iter(
        [
            (chance.choices(ENGINES, weights)[0], chance.choices([*KINDS], [kind.share for kind in KINDS.values()])[0])
            for _ in range(count)
        ]
    )

    async def worker() -> None:
        for engine, name in planned:
            ended = await _run(port, engine, KINDS[name], chance)
            if ended not in KINDS[name].ends:
                raise SystemExit(f"a run of kind `{name}` on {engine} ended with {ended}")
            seen[engine.name] += 1
            seen[ended] += 1

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def _row(sample: Sample) -> str:
    return (
        f"| {sample.runs:,} | {sample.seconds:.0f} | {sample.own_mb:.1f} | {sample.servers_mb:.1f} | {sample.descriptors} "
        f"| {sample.tasks} | {sample.threads} | {sample.processes} | {sample.files} |"
    )


def judge(samples: list[Sample]) -> list[str]:
    """Return what grew between the first quarter after warm-up and the last."""
    warm = samples[WARM_UP:]
    quarter = max(1, len(warm) // 4)
    first, last = warm[:quarter], warm[-quarter:]
    grown: list[str] = []
    for name, most in (("own_mb", MAX_GROWTH_MB), ("servers_mb", MAX_SERVER_GROWTH_MB)):
        more = statistics.median(getattr(one, name) for one in last) - statistics.median(
            getattr(one, name) for one in first
        )
        if more > most:
            grown.append(f"{name} grew by {more:.1f} MB, {more * 2**20 / (last[0].runs - first[0].runs):.0f} bytes a run")
    for name in ("descriptors", "tasks", "threads", "processes", "files"):
        before, after = (statistics.median(getattr(one, name) for one in some) for some in (first, last))
        if after > before:
            grown.append(f"{name} grew from {before:g} to {after:g}")
    return grown


async def soak(runs: int) -> int:
    """Make the runs and report growth."""
    chance, seen, samples = random.Random(SEED), Counter[str](), list[Sample]()
    began = time.monotonic()
    print(f"{runs:,} runs, seed {SEED}, {AT_ONCE} at once\n")
    print("| runs | s | own MB | fork servers MB | descriptors | tasks | threads | processes | files |")
    print("|---|---|---|---|---|---|---|---|---|")
    before = Leftovers.now()
    async with Gloveport(tools=_tools(), spare=2) as port:
        for part in range(SAMPLES):
            await _batch(port, runs * (part + 1) // SAMPLES - runs * part // SAMPLES, chance, seen)
            samples.append(await _sample(port, runs * (part + 1) // SAMPLES, began))
            print(_row(samples[-1]), flush=True)
    grown = judge(samples)
    after = Leftovers.now()
    if (after.children, after.tasks) != (before.children, before.tasks) or len(after.files) > len(before.files):
        grown.append(f"after closing there are {after}, and there were {before}")
    print(f"\nengines and ends: {', '.join(f'{name} {count:,}' for name, count in sorted(seen.items()))}")
    print("\n".join(grown) if grown else "nothing grew")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(soak(RUNS)))
