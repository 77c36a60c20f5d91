"""Tells whether the process that wrote a mark still lives: by its id and start time, where this process can see it."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

LEASE_SECONDS = 60.0
"""A host that can't be seen from here, as in another container, counts as dead when it has written nothing for so long."""


@cache
def process_mark(pid: int | None = None) -> str:
    """Return the mark of a process: where it is seen, its id, and its start time, which tells it from a later one."""
    return _mark(os.getpid() if pid is None else pid)


def lives(mark: str, seen: float) -> bool:
    """Return whether a process lives; `seen` is when it wrote last, in seconds since 1970."""
    place, _, rest = mark.partition(" ")
    if place != _place():
        return abs(time.time() - seen) < LEASE_SECONDS  # after a clock that was ahead, the dead must not live for ever
    pid = rest.partition(" ")[0]
    return pid.isdecimal() and _mark(int(pid)) == mark


def _mark(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        started = "gone" if fields[0] in "ZX" else fields[19]  # a dead one may wait for its parent
    except (OSError, IndexError):
        started = "gone"
    return f"{_place()} {pid} {started}"


@cache
def _place() -> str:
    """Return what processes that can see each other share: the boot of the machine, and the namespace of their ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot[:13]}/{os.readlink('/proc/self/ns/pid')[5:-1]}"
    except OSError:
        return "unknown"
