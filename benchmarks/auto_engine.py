"""What `engine="auto"` costs: every program on Deno, on QuickJS and as `auto` chooses, in turn.

`python -m benchmarks.auto_engine [rounds]` runs it alone. The programs are those of `tests/programs` in TypeScript and
JavaScript, and those of the other benchmarks. A program that ends at a limit of time is left out.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import dialects, large_values
from benchmarks.beside.shop import add, double, label
from benchmarks.processes import seconds_of
from benchmarks.programs import PROGRAM_JS, PROGRAM_TS, unread
from benchmarks.sampling import Row, median
from gloveport import Gloveport, Outcome
from gloveport.config import SourceConfig
from gloveport.sources.functions.modules import load_module

MAX_RATIO = 1.5
PROGRAMS = Path(__file__).parents[1] / "tests" / "programs"
EXAMPLES = PROGRAMS.parents[1] / "examples"
ENDLESS = "49_endless_loop.ts"
ENGINES = ("deno", "quickjs", "auto")
QUIET_SECONDS = 0.1  # a pool refills in this time
CPU_RUNS = 10


def programs() -> dict[str, str]:
    """Return the programs by name."""
    found = [path for kind in ("*.ts", "*.js") for path in sorted(PROGRAMS.rglob(kind)) if path.name != ENDLESS]
    others = dialects.TYPESCRIPT
    return {
        **{path.relative_to(PROGRAMS).as_posix(): path.read_text() for path in found},
        "20 lines": PROGRAM_TS,
        "20 lines of JavaScript": PROGRAM_JS,
        "3 calls, one after another": others.calls,
        "100 calls": others.hundred,
        "200 calls, one after another": "let n = 0; for (let i = 0; i < 200; i++) n = await tools.add({a: n, b: 1}); return n",
        "a loop, a sort, a join": others.work,
        "5 MB in and out": large_values.MEASURED_ENGINES[0][2],
    }


@dataclass(slots=True)
class Figures:
    """What was measured of one program: seconds by engine, and the engine that `auto` chose."""

    name: str
    code: str
    chosen: str = ""
    lacking: bool = False
    seconds: dict[str, list[float]] = field(default_factory=lambda: {engine: [] for engine in ENGINES})
    cpu: dict[str, float] = field(default_factory=dict)

    def p50(self, engine: str) -> float:
        """Return the median time on an engine; NaN where the program can't run."""
        return median(self.seconds[engine]) if self.seconds[engine] else math.nan

    @property
    def ratio(self) -> float:
        """How much longer `auto` takes than Deno."""
        return self.p50("auto") / self.p50("deno")


async def run(port: Gloveport, one: Figures, engine: str) -> Outcome:
    """Run a program as a text that nobody has read before."""
    text = one.code if one.name.endswith("06_fenced.ts") else unread(one.code, "typescript")
    return await port.run(text, engine=engine)


async def measure(rounds: int) -> list[Figures]:
    """Measure every program on every engine, and what each run costs in processor time with all processes."""
    tools = [*load_module(str(EXAMPLES / "demo_tools.py")), add, double, label, large_values.load, large_values.save]
    shop = SourceConfig("shop", "openapi", str(EXAMPLES / "shop.json"))
    found = [Figures(name, code) for name, code in programs().items()]
    async with Gloveport(tools=tools, sources=[shop], limits={"memory_mb": 1024}, rules="open") as port:
        for index in range(rounds + 1):
            for one in found:
                for engine in ENGINES:
                    if engine == "quickjs" and one.lacking:
                        continue
                    await asyncio.sleep(QUIET_SECONDS)
                    began = time.perf_counter()
                    outcome = await run(port, one, engine)
                    took = time.perf_counter() - began
                    one.lacking |= outcome.error is not None and outcome.error.code == "engine-lacks"
                    if engine == "auto":
                        assert one.chosen in ("", outcome.engine), "the same text got another engine"
                        one.chosen = str(outcome.engine)
                    if index and not (engine == "quickjs" and one.lacking):
                        one.seconds[engine].append(took)
        for one in found:
            if "/" not in one.name:
                await _measure_cpu(port, one)
    return found


async def _measure_cpu(port: Gloveport, one: Figures) -> None:
    for engine in ("deno", "auto"):
        await asyncio.sleep(5 * QUIET_SECONDS)
        before = seconds_of(os.getpid())
        for _ in range(CPU_RUNS):
            await run(port, one, engine)
        await asyncio.sleep(5 * QUIET_SECONDS)  # the processes that replace those of the runs start
        one.cpu[engine] = (seconds_of(os.getpid()) - before) / CPU_RUNS


def rows(found: list[Figures]) -> list[Row]:
    """Return the row of the program that loses most, and of all programs together."""
    worst = max(found, key=lambda one: one.ratio)
    light = [one for one in found if one.chosen == "quickjs"]
    with_cpu = [one for one in found if one.cpu]
    ours, floor = (sum(one.cpu[engine] for one in with_cpu) / len(with_cpu) * 1e3 for engine in ("auto", "deno"))
    slowest = f"{worst.p50('auto') * 1e3:.1f} ms: {worst.name}", f"{worst.p50('deno') * 1e3:.1f} ms"
    programs = f"{ours:.1f} ms, {len(light)} of {len(found)} programs in quickjs"
    return [
        ('the slowest program with `engine="auto"` beside Deno, p50', *slowest, f"{worst.ratio:.2f} ×", f"≤ {MAX_RATIO} ×"),
        ('processor time of a run with `engine="auto"`, mean', programs, f"{floor:.1f} ms", f"{ours / floor:.2f} ×", ""),
    ]


def section(found: list[Figures]) -> str:
    """Return the table of all programs."""
    lines = [
        "| program | `auto` chooses | deno, p50 ms | quickjs | auto | auto/deno | CPU ms a run: deno | auto |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(found, key=lambda one: -one.ratio):
        times = [f"{one.p50(engine) * 1e3:.1f}" for engine in ENGINES]
        cpu = [f"{one.cpu[engine] * 1e3:.1f}" if one.cpu else "" for engine in ("deno", "auto")]
        lines.append(f"| {' | '.join([one.name, one.chosen, *times, f'{one.ratio:.2f}', *cpu])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    measured = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
    print(section(measured))
    for row in rows(measured):
        print(" | ".join(row))
