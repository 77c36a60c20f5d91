"""A heartbeat: the longest time for which an event loop did not turn, in CPU time of its process, and what ran meanwhile."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from fuzz.stall.standstill import Standstill

MAX_GAP_SECONDS = 0.05
BEAT_SECONDS = 0.002  # short: the CPU time of other threads between two beats counts, too


class Heartbeat:
    """Beats in every event loop that `attach` gets. Only one exists in a process: it owns SIGPROF.

    The kernel's own timer of CPU time goes off when a beat is late, and the C handler of `faulthandler` writes the stacks at
    once, even while the interpreter is inside a C function.
    """

    of_process: ClassVar[Heartbeat | None] = None

    def __init__(self) -> None:
        Heartbeat.of_process = self
        self.longest = 0.0
        self.is_measuring = False
        self._standstill = Standstill()
        self._loops: list[asyncio.AbstractEventLoop] = []
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        faulthandler.register(signal.SIGPROF, self._stacks, all_threads=True)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat whenever this loop turns, and let it turn all the time.

        Each turn is a beat: in a lap of several turns, a busy machine would make the thread wait more often than is excused.
        """
        self._loops.append(loop)
        turn: Callable[[], None] = loop._run_once

        def turn_and_count() -> None:
            turn()
            if self.is_measuring:
                self._count()

        loop._run_once = turn_and_count
        loop.call_soon(self._turn_again, loop)

    def start_in_fork(self) -> None:
        """Forget the loops of the parent, and beat outside of loops whenever the process would take a signal."""
        self._loops.clear()
        signal.signal(signal.SIGVTALRM, self._beat_outside_loops)
        signal.setitimer(signal.ITIMER_VIRTUAL, BEAT_SECONDS, BEAT_SECONDS)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure in this block; time before the first beat and after the last counts, too."""
        self._stacks.seek(0)
        self._stacks.truncate()
        self.longest, self._standstill, self.is_measuring = 0.0, Standstill(), True
        signal.setitimer(signal.ITIMER_PROF, MAX_GAP_SECONDS)
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """End the measurement; the time since the last beat counts."""
        self._count()
        self.is_measuring = False
        signal.setitimer(signal.ITIMER_PROF, 0)

    def stacks(self) -> str:
        """Return the stacks of the moments at which a beat was late."""
        self._stacks.seek(0)
        return self._stacks.read().decode("utf-8", "replace")

    def close(self) -> None:
        """Give SIGPROF back."""
        faulthandler.unregister(signal.SIGPROF)
        self._stacks.close()
        Heartbeat.of_process = None

    def _turn_again(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(BEAT_SECONDS, self._turn_again, loop)

    def _beat_outside_loops(self, *_: object) -> None:
        self._loops = [loop for loop in self._loops if not loop.is_closed()]
        if self.is_measuring and not any(loop.is_running() for loop in self._loops):
            self._count()

    def _count(self) -> None:
        self.longest = max(self.longest, self._standstill.lap())
        signal.setitimer(signal.ITIMER_PROF, MAX_GAP_SECONDS)
