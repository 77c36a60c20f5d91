"""The section "Beside others": the same programs run in turn in our engines, in peers and in two controls.

`python -m benchmarks.beside_others [rounds]` runs it alone.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.peers import CONTENDERS, Contender, PeerError, Running
from benchmarks.probes import PROBES, Verdict, probe
from benchmarks.processes import seconds_of
from benchmarks.sampling import p95

PROGRAMS = {
    "lines": "20 lines without calls",
    "calls": "3 calls, one after another",
    "hundred": "100 calls",
    "work": "a loop, a sort, a join",
}
AT_ONCE, SLICES, SLICE_SECONDS = 8, 3, 3.0
QUIET_SECONDS = 0.15  # a pool refills in this time
SLOW_SECONDS, SLOW_SAMPLES = 1.0, 2


@dataclass
class Figures:
    """The measurements of one contender, or the `problem` that prevented them."""

    contender: Contender
    problem: str = ""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PROGRAMS})
    failures: dict[str, str] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Return whether this is one of our engines."""
        return bool(self.contender.engine)

    def p50(self, program: str) -> float | None:
        """Return the median time of a program, or None if it failed."""
        return statistics.median(self.seconds[program]) if self.seconds[program] else None


async def measure(rounds: int) -> list[Figures]:
    """Measure times, rates and probes of every contender."""
    found = {contender.name: Figures(contender) for contender in CONTENDERS}
    running: list[Running] = []
    for contender in CONTENDERS:
        try:
            running.append(await Running(contender).start())
        except PeerError as error:
            found[contender.name].problem = str(error)
    for program in PROGRAMS:
        await take_times(running, found, program, rounds)
    for _ in range(SLICES):
        for one in running:
            await take_rate(one, found[one.contender.name])
    for one in running:
        await one.close()
        if not one.contender.check_types:
            found[one.contender.name].verdicts = await probe(one.contender)
    return list(found.values())


async def take_times(running: list[Running], found: dict[str, Figures], program: str, rounds: int) -> None:
    """Run one program in every contender in turn. The first sample is dropped, and all values must agree."""
    expected: dict[str, str] = {}
    for index in range(rounds + 1):
        for one in running:
            figures = found[one.contender.name]
            times = figures.seconds[program]
            if program in figures.failures or (len(times) >= SLOW_SAMPLES and times[-1] > SLOW_SECONDS):
                continue
            await asyncio.sleep(QUIET_SECONDS)
            began = time.perf_counter()
            try:
                value = await one.run(getattr(one.contender.programs, program))
            except (PeerError, TimeoutError) as error:
                figures.failures[program] = str(error) or "no answer"
                continue
            took = time.perf_counter() - began
            shown = str(value["lines"] if isinstance(value, dict) else value)
            assert expected.setdefault(program, shown) == shown, (one.contender.name, shown, expected)
            if index:
                times.append(took)


async def take_rate(one: Running, figures: Figures) -> None:
    """Run programs with three calls, several at once, for a fixed time."""
    done = 0
    await asyncio.sleep(QUIET_SECONDS)
    before, began = seconds_of(one.pid), time.perf_counter()

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() < began + SLICE_SECONDS:
            await one.run(one.contender.programs.calls)
            done += 1

    await asyncio.gather(*(repeat() for _ in range(AT_ONCE)))
    figures.rates.append(done / (time.perf_counter() - began))
    figures.cpu.append((seconds_of(one.pid) - before) / done * 1e3)


def milliseconds(seconds: float) -> str:
    """Format a time in milliseconds with its significant digits."""
    return f"{seconds * 1e3:,.0f}" if seconds >= 0.1 else f"{seconds * 1e3:.1f}"


def cell(figures: Figures, program: str) -> str:
    """Format p50 and p95 of one program, or state that it failed."""
    times = figures.seconds[program]
    if not times:
        return "fails"
    one_by_one = program == "hundred" and not figures.contender.programs.hundred_at_once
    return f"{milliseconds(statistics.median(times))} ({milliseconds(p95(times))}){', one by one' if one_by_one else ''}"


def speeds(found: list[Figures]) -> Iterator[str]:
    """Yield the lines of the table of times."""
    yield f"| milliseconds: p50 (p95) | {' | '.join(PROGRAMS.values())} | runs a second, {AT_ONCE} at once | CPU ms a run |"
    yield "|---" * (len(PROGRAMS) + 3) + "|"
    for one in found:
        cells = [cell(one, program) for program in PROGRAMS]
        if one.problem:
            cells = [one.problem, *[""] * (len(PROGRAMS) + 1)]
        else:
            cells += [f"{statistics.median(one.rates):.0f}", f"{statistics.median(one.cpu):.1f}"]
        yield f"| {' | '.join([one.contender.name, *cells])} |"


def isolation(found: list[Figures]) -> Iterator[str]:
    """Yield the lines of the table of probes."""
    yield f"| what held | {' | '.join(PROBES)} | isolation |"
    yield "|---" * (len(PROBES) + 2) + "|"
    for one in found:
        if one.verdicts:
            told = [f"{'held' if verdict.held else '**fell**'}: {verdict.told}" for verdict in one.verdicts.values()]
            yield f"| {' | '.join([one.contender.name, *told, one.contender.isolation])} |"


def losses(found: list[Figures]) -> Iterator[str]:
    """Yield a line for each program in which a peer is faster, with the probes that the peer fails."""
    mine = [one for one in found if one.is_ours and not one.problem]
    peers = [one for one in found if one.contender.packages and not one.problem]
    if not peers:
        yield "- No peer could be measured in this run."
        return
    for program, name in PROGRAMS.items():
        best, ours = min((seconds, one.contender.name) for one in mine if (seconds := one.p50(program)))
        told = [
            f"{one.contender.name} {milliseconds(seconds)} ms{lacking(one)}"
            for one in peers
            if (seconds := one.p50(program)) and seconds < best
        ]
        if told:
            yield f"- {name}: our best is {milliseconds(best)} ms ({ours}); faster: {'; '.join(told)}."
    rate, ours = max((statistics.median(one.rates), one.contender.name) for one in mine)
    told = [
        f"{one.contender.name} {statistics.median(one.rates):.0f} /s{lacking(one)}"
        for one in peers
        if statistics.median(one.rates) > rate
    ]
    if told:
        yield f"- {AT_ONCE} runs with 3 calls at once: our best is {rate:.0f} /s ({ours}); more: {'; '.join(told)}."
    dearest = max(mine, key=lambda one: statistics.median(one.cpu))
    rate, cpu = statistics.median(dearest.rates), statistics.median(dearest.cpu)
    yield f"- The dearest of ours is {dearest.contender.name}: {rate:.0f} /s, {cpu:.0f} ms of processor time a run."


def lacking(one: Figures) -> str:
    """Return the probes that a contender fails, in brackets."""
    fell = [name for name, verdict in one.verdicts.items() if not verdict.held]
    return f" (which does not hold {', '.join(fell)})" if fell else ""


def section(found: list[Figures]) -> str:
    """Return the text of the section."""
    failures = [
        f"- {one.contender.name} fails at {PROGRAMS[program]}: {' '.join(said.split())[:200]}"
        for one in found
        for program, said in one.failures.items()
    ]
    lines = [
        "## Beside others",
        "",
        "Each in a process of its own, spoken to over a pipe, in turn in one run; from the program's text to its value. Ours",
        "with types checked is what `gloveport serve` and `gloveport mcp` do; the library leaves it out unless asked.",
        "",
        *speeds(found),
        "",
        *(["What could not be run:", "", *failures, ""] if failures else []),
        "What a program got away with, tried for real in each one's documented safe configuration (`benchmarks/probes.py`). The",
        "controls show that the ways work where nothing is in the way. That none of these few ways worked proves no wall.",
        "",
        *isolation(found),
        "",
        "## Where we lose",
        "",
        *losses(found),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(section(asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
