"""When a server that died may be started again: soon, but never in a loop (R3)."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0
STABLE_AFTER_SECONDS = 30.0


class RestartBackoff:
    """No wait after the first death, then 1, 2, 4 … 60 seconds after each further one in a row.

    A session that lived for `STABLE_AFTER_SECONDS` ends the row.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deaths = 0
        self._started = clock()
        self._next_start = clock()

    def started(self) -> None:
        """Note that a session has begun."""
        self._started = self._clock()

    def died(self) -> None:
        """Note that a session has ended by itself, or could not begin."""
        now = self._clock()
        self._deaths = 1 if now - self._started >= STABLE_AFTER_SECONDS else self._deaths + 1
        wait = 0.0 if self._deaths == 1 else min(FIRST_WAIT_SECONDS * 2 ** min(self._deaths - 2, 10), MAX_WAIT_SECONDS)
        self._next_start = now + wait

    @property
    def deaths(self) -> int:
        """The number of deaths in a row."""
        return self._deaths

    @property
    def wait(self) -> float:
        """The seconds until the next start is allowed; 0 when it is now."""
        return max(0.0, self._next_start - self._clock())
