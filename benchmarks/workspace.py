"""What a workspace of 5 MB adds to a run of a session, beside a session with one small file.

`python -m benchmarks.workspace [rounds]` runs it. The program looks at no file, so it measures what each run pays.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.sampling import Row, interleaved, median, p95
from gloveport import Gloveport
from gloveport.types import MIB

PAUSE_SECONDS = 0.1  # so that the next process is ready
FILES = {"large": 5 * MIB, "small": 1}


async def row(language: str, store: Path, rounds: int) -> Row:
    """Measure runs of both sessions in turn."""
    async with Gloveport(store=store) as port:
        for session, size in FILES.items():
            await port.session(session).files.put("data.bin", os.urandom(size))

        async def run(session: str) -> float:
            await asyncio.sleep(PAUSE_SECONDS)
            began = time.perf_counter()
            outcome = await port.run("1 + 1", language=language, session=session)  # type: ignore[arg-type]
            seconds = time.perf_counter() - began
            assert outcome.value == 2, outcome.error
            return seconds

        large, small = await interleaved(rounds, lambda: run("large"), lambda: run("small"))
    told = [f"{median(times) * 1e3:.2f} ms ({p95(times) * 1e3:.2f})" for times in (large, small)]
    added = (median(large) - median(small)) * 1e3
    return f"run of a session with 5 MB in {language}, p50 (p95)", *told, f"{added:+.2f} ms", "≤ +10 ms"


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this module."""
    with tempfile.TemporaryDirectory() as folder:
        return [await row(language, Path(folder, f"{language}.sqlite"), rounds) for language in ("typescript", "python")]


if __name__ == "__main__":
    for line in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 40)):
        print(" | ".join(line))
