"""What processes have used: those that run and those that have ended."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> dict[int, tuple[str, float]]:
    """The processor time of a process and of all below it, those that have ended with their parents: name and seconds."""
    found: dict[int, tuple[int, str, float]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            head, _, tail = (entry / "stat").read_text().rpartition(")")
            fields = tail.split()
            found[int(entry.name)] = int(fields[1]), head.partition("(")[2], sum(map(int, fields[11:15])) / TICKS
    below, todo = {}, [pid]
    while todo:
        parent = todo.pop()
        below[parent] = found[parent][1:]
        todo += [child for child, (above, _, _) in found.items() if above == parent]
    return below


def resident_mb(pid: int) -> float:
    """The memory of a process and of all below it, as each one sees it."""
    total = 0
    for below in spent(pid):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{below}/statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def seconds_of(pid: int) -> float:
    """The processor time of a process and of all below it, in seconds."""
    return sum(seconds for _, seconds in spent(pid).values())
