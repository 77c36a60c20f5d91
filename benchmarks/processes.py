"""CPU time and memory of processes, running and ended."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> dict[int, tuple[str, float]]:
    """Return name and CPU seconds of a process and its descendants. Ended ones count for their parents."""
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
    """Return the resident memory of a process and its descendants."""
    total = 0
    for below in spent(pid):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{below}/statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def proportional_mb(pid: int) -> tuple[float, int]:
    """Return the memory of a process and its descendants, what they share counted once (PSS), and how many they are."""
    total = count = 0
    for below in spent(pid):
        with contextlib.suppress(OSError):
            total += int(re.findall(r"(?m)^Pss: +(\d+)", Path(f"/proc/{below}/smaps_rollup").read_text())[0])
            count += 1
    return total / 1024, count


def seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants."""
    return sum(seconds for _, seconds in spent(pid).values())
