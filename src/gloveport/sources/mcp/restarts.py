"""When a server that died may be started again: soon, but never in a loop (R3)."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
SETTLED_SECONDS = 30.0


class Restarts:
    """After one death at once; after each further one in a row 1, 2, 4 … 60 seconds later. A long life ends the row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deaths = 0
        self._born = clock()
        self._next = clock()

    def born(self) -> None:
        """A session has begun."""
        self._born = self._clock()

    def died(self) -> None:
        """A session has ended by itself, or could not begin."""
        now = self._clock()
        self._deaths = 1 if now - self._born >= SETTLED_SECONDS else self._deaths + 1
        wait = 0.0 if self._deaths == 1 else min(FIRST_SECONDS * 2 ** min(self._deaths - 2, 10), LONGEST_SECONDS)
        self._next = now + wait

    @property
    def deaths(self) -> int:
        """How often in a row it died."""
        return self._deaths

    @property
    def wait(self) -> float:
        """In how many seconds it may be started; 0 when it may be now."""
        return max(0.0, self._next - self._clock())
