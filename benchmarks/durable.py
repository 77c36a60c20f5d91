"""What it costs to go on with runs: a run of 1,000 calls that is resumed, and runs that wait without a process."""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from pathlib import Path

from benchmarks.governance import read, write
from benchmarks.sampling import Row, median
from gloveport import Answer, Gloveport, Rule
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.types import Language, Outcome

CALLS = 1000
WAITING = 10_000
WARM, BATCH, CONCURRENT = 500, 250, 5
PROGRAMS: dict[Language, str] = {
    "typescript": f"let n = 0; for (let i = 1; i < {CALLS}; i++) n += await tools.read({{n: i}}); return n + await tools.write({{n: 1}})",
    "python": f"n = 0\nfor i in range(1, {CALLS}):\n    n += await tools.read(n=i)\nn + await tools.write(n=1)",
}
ENGINES: tuple[tuple[Language, str], ...] = (
    ("typescript", "deno"),
    ("typescript", "quickjs"),
    ("python", "cpython"),
    ("python", "monty"),
)


async def rows(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        found = [await resumed(path / f"{engine}.sqlite", language, engine, rounds) for language, engine in ENGINES]
        return [*found, await waiting(path, WAITING)]


async def resumed(store: Path, language: Language, engine: str, rounds: int) -> Row:
    """The processor time of the guest in a resumed run, beside that in the same run without a pause."""
    whole, rest = [], []
    for _ in range(max(3, rounds // 6)):
        async with Gloveport(tools=[read, write], store=store, rules=[Rule("*", "allow")]) as port:
            whole.append(cpu(await port.run(PROGRAMS[language], language=language, engine=engine)))
        async with Gloveport(tools=[read, write], store=store) as port:
            run = (await port.run(PROGRAMS[language], language=language, engine=engine)).run
        answer(store)
        async with Gloveport(tools=[read, write], store=store) as port:
            rest.append(cpu(await port.resume(run)))
    name = f"processor time of a resumed run of {CALLS:,} calls, {engine}, beside the whole run"
    ratio = median(rest) / median(whole)
    return name, f"{median(rest) * 1e3:.0f} ms", f"{median(whole) * 1e3:.0f} ms", f"{ratio:.2f} ×", "≤ 2.0 ×"


def cpu(outcome: Outcome) -> float:
    """The processor time of the guest, if the run has ended well."""
    assert outcome.value == CALLS * (CALLS - 1) // 2 + 1, outcome
    return outcome.usage.cpu_seconds


def answer(store: Path) -> None:
    """Approve what waits."""
    shelf = ApprovalShelf(store)
    try:
        for one in shelf.waiting():
            shelf.answer({one.request.id: one.request.digest}, Answer(True, "ada"))
    finally:
        shelf.close()


async def waiting(folder: Path, count: int) -> Row:
    """The memory that runs add to their host which wait for a person and have released their processes."""
    settings = folder / "gloveport.toml"
    settings.write_text("[approvals]\nhold_seconds = 0\n")
    async with Gloveport(tools=[write], store=folder / "store.sqlite", config=settings) as port:
        await wait_all(port, range(-WARM, 0))  # what the first runs load is not theirs
        before = resident_mb()
        for first in range(0, count, BATCH):
            await wait_all(port, range(first, first + BATCH))
        added = resident_mb() - before
    return f"memory that {count:,} waiting runs add to the host", f"{added:.1f} MB", "", "", "≤ 20 MB"


async def wait_all(port: Gloveport, numbers: range) -> None:
    """Start runs that wait, and return when all have released their processes."""

    async def one(n: int) -> None:
        outcome = await port.run(f"return await tools.write({{n: {n}}})", engine="quickjs")
        assert outcome.status == "waiting", outcome.error

    for n in numbers[::CONCURRENT]:
        await asyncio.gather(*(one(n + more) for more in range(CONCURRENT)))
    held = port._held
    assert held is not None
    while held._runs:  # noqa: ASYNC110 - held runs have no event for this
        await asyncio.sleep(0.01)


def resident_mb() -> float:
    """The resident memory of this process, with what the allocator keeps of the programs that ran."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 18)):
        print(" | ".join(row))
