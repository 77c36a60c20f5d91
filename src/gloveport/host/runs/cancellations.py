"""Ends runs of this host that somebody asks to end in the store, such as `gloveport runs cancel` in another process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gloveport.errors import GloveportError
from gloveport.types import Failure, Outcome

POLL_SECONDS = 0.5

logger = logging.getLogger("gloveport")


class WatchedRun:
    """A run of this host: the task that makes its attempt, and who has asked to end it. It leaves `runs` at its end."""

    def __init__(self, run: str, task: asyncio.Task[object], runs: dict[str, WatchedRun]) -> None:
        self._run = run
        self._task = task
        self._runs = runs
        self._who: str | None = None
        runs[run] = self

    def __enter__(self) -> WatchedRun:
        return self

    def __exit__(self, *error: object) -> None:
        del self._runs[self._run]

    def cancel(self, who: str) -> None:
        """End the attempt, once."""
        if self._who is None:
            self._who = who
            self._task.cancel()

    @property
    def was_asked(self) -> bool:
        """Whether its task was cancelled for this reason, and for no other."""
        return self._who is not None and self._task.uncancel() == 0

    def outcome(self) -> Outcome:
        """Return the outcome of the run that was ended."""
        error = Failure("cancelled", "GloveportError", f"the run was cancelled by {self._who}")
        return Outcome(self._run, "cancelled", error=error)


class Cancellations:
    """The runs of this host that can be ended. `asked` returns the runs that somebody wants to end, and who does.

    It looks only while runs go on.
    """

    def __init__(self, asked: Callable[[], Awaitable[dict[str, str]]]) -> None:
        self._asked = asked
        self._runs: dict[str, WatchedRun] = {}
        self._next: asyncio.TimerHandle | None = None
        self._looking: asyncio.Future[None] | None = None

    @property
    def watches(self) -> bool:
        """Whether runs go on."""
        return bool(self._runs)

    def watching(self, run: str) -> WatchedRun:
        """Watch a run while the current task makes an attempt at it. Somebody has to call `look`."""
        task = asyncio.current_task()
        assert task is not None
        return WatchedRun(run, task, self._runs)

    def look(self) -> None:
        """Look for wishes to end runs from now on."""
        if self._next is None and self._looking is None:
            self._look_later()

    def close(self) -> None:
        """Look no more."""
        if self._next is not None:
            self._next.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _look_later(self) -> None:
        self._next = asyncio.get_running_loop().call_later(POLL_SECONDS, self._look_now)

    def _look_now(self) -> None:
        self._next = None
        if self._runs:
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        try:
            for run, who in (await self._asked()).items():
                if run in self._runs:
                    self._runs[run].cancel(who)
        except GloveportError as error:
            logger.warning("wishes to cancel runs can't be read: %s", error.message)
        finally:
            self._looking = None
        if self._runs:
            self._look_later()
