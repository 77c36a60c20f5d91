"""For how long a thread could not go on because of its own process, in CPU time, on a machine that may be busy."""

from __future__ import annotations

import time
from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
# A thread that may go on waits for a processor three times: to wake up, to ask for the interpreter lock, and to take it.
# One that is kept from the lock asks again and again: its further waits cost nothing that it could have had.
EXCUSED_WAITS = 3


class Standstill:
    """Counts what the process computed between two calls of `lap`, which one thread makes whenever it can."""

    def __init__(self) -> None:
        self._last = _clocks()

    def lap(self) -> float:
        """Return the seconds since the last lap, without those in which the kernel did not let the thread run."""
        before, self._last = self._last, _clocks()
        computed, own, waited, waits = (now - then for now, then in zip(self._last, before, strict=True))
        return max(own, computed - waited * min(1, EXCUSED_WAITS / max(waits, 1)))


def _clocks() -> tuple[float, float, float, float]:
    """Return the CPU time of the process and of this thread; for how long this thread waited for a processor, and how often."""
    _, waited, waits = map(int, _SCHEDSTAT.read_bytes().split())
    return time.process_time(), time.thread_time(), waited / 1e9, waits
