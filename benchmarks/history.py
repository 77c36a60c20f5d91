"""What the history costs: `gloveport runs` over 100,000 runs, without the start of Python and the imports."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.sampling import Row, median
from gloveport.store.database import open_database
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.runs.command import RunFilter, list_command
from gloveport.surfaces.cli.view import ViewOptions

RUNS = 100_000
FILTERS: dict[str, dict[str, Any]] = {
    "": {},
    " --failed": {"failed": True},
    " --waiting": {"waiting": True},
    " --tool 'shop.*'": {"tool": "shop.*"},
    " --tool 'rare.*' --failed": {"tool": "rare.*", "failed": True},
    " --agent bot": {"agent": "bot"},
}


def rows(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, settings = Path(folder) / "store.sqlite", Path(folder) / "gloveport.toml"
        settings.write_text(f'[store]\npath = "{path}"\n')
        fill(path)
        view = ViewOptions(False, "never", str(settings))
        slowest = max(FILTERS, key=lambda name: cpu_seconds(lambda: command(view, FILTERS[name]), 3))
        whole = cpu_seconds(lambda: command(view, FILTERS[slowest]), rounds) * 1000
        query = cpu_seconds(lambda: listed(path), rounds) * 1000
    return [
        (f"`gloveport runs` over {RUNS:,} runs, slowest filter", f"{whole:.1f} ms", "", slowest.strip(), "≤ 100 ms"),
        (f"the latest 50 of {RUNS:,} runs from the store", f"{query:.1f} ms", "", "", ""),
    ]


def fill(path: Path) -> None:
    """Write a store with many runs, of which every tenth has failed and every tenth waits."""
    with closing(open_database(path)) as connection:
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO runs (id, agent, status, fence, started, ended, language, engine, calls, request, outcome)"
            " VALUES (?, ?, ?, 1, ?, ?, 'typescript', 'deno', 3, ?, ?)",
            many(),
        )
        for tool, agents in {"shop.look": ("default", "bot"), "mail.send": ("other", "other")}.items():
            connection.execute("INSERT INTO run_tools SELECT ?, id FROM runs WHERE agent IN (?, ?)", (tool, *agents))
        connection.execute("INSERT INTO run_tools SELECT 'rare.tool', id FROM runs LIMIT 3")
        connection.execute("COMMIT")


def many() -> Iterator[tuple[Any, ...]]:
    chance, now = random.Random(1), time.time_ns() // 1000
    request = b'{"code":"%b","limits":{"memory_mb":64,"wall_seconds":30}}' % (b"0" * 64)
    for number in range(RUNS):
        status = {0: "failed", 1: "waiting"}.get(number % 10, "completed")
        agent, at = ("default", "bot", "other")[number % 3], now - number * 1_000_000
        yield chance.randbytes(16).hex(), agent, status, at, at + 5000, request, b'{"usage":{},"warnings":[]}'


def command(view: ViewOptions, given: dict[str, Any]) -> None:
    wanted = RunFilter(
        **{"failed": False, "waiting": False, "tool": None, "agent": None, "since": None, "limit": 50} | given
    )
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert list_command(view, wanted) == 0


def listed(path: Path) -> None:
    with closing(StoredRuns(path)) as runs:
        assert len(runs.latest()) == 50


def cpu_seconds(work: Callable[[], None], rounds: int) -> float:
    samples = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        samples.append(time.process_time() - began)
    return median(samples)


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 30):
        print(" | ".join(row))
