"""For how long a thread could not go on because of its own process, in CPU time, on a machine that may be busy."""

from __future__ import annotations

import os
import time

_SCHEDSTAT = "/proc/thread-self/schedstat"
# A thread that may go on waits for a processor twice: to wake up, and to ask for the interpreter lock, which it then gets.
# One that is kept from the lock asks again and again: its further waits cost nothing that it could have had.
EXCUSED_WAITS = 2


class Standstill:
    """Counts what the process computed between two calls of `lap`, which the thread that made it makes whenever it can."""

    def __init__(self) -> None:
        self._schedstat = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        self._last = self._clocks()

    def __del__(self) -> None:
        os.close(self._schedstat)

    def lap(self) -> float:
        """Return the seconds since the last lap, without those in which the kernel did not let the thread run."""
        before, self._last = self._last, self._clocks()
        computed, own, waited, waits = (now - then for now, then in zip(self._last, before, strict=True))
        return max(own, computed - waited * min(1, EXCUSED_WAITS / max(waits, 1)))

    def _clocks(self) -> tuple[float, float, float, float]:
        """Return the CPU time of the process and of this thread; for how long this thread waited for a processor, and how often.

        It gives the interpreter lock back once: a thread that computes may keep it for 5 ms each time.
        """
        _, waited, waits = map(int, os.pread(self._schedstat, 128, 0).split())
        return time.process_time(), time.thread_time(), waited / 1e9, waits
