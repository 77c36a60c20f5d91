"""Who watches the runs of a port from beginning to end: metrics and traces. Without any, a run costs nothing more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from gloveport.host.runs.run_request import RunRequest
from gloveport.types import Outcome

OnEnd = Callable[[Outcome | None], None]
"""Gets the outcome of a run; None if it was cancelled, or released to the store."""


class RunObserver(Protocol):
    """Watches runs. It must not raise."""

    def begun(self, request: RunRequest) -> OnEnd:
        """Note that a run begins, in the task that runs it; return what is called at its end."""
        ...


class RunObservers:
    """The observers of one port."""

    def __init__(self) -> None:
        self._all: list[RunObserver] = []

    def add(self, observer: RunObserver) -> None:
        """Let an observer watch the runs that begin from now on."""
        self._all.append(observer)

    async def watch(self, run: Callable[[RunRequest], Awaitable[Outcome]], request: RunRequest) -> Outcome:
        """Run a program, and tell the observers."""
        if not self._all:
            return await run(request)
        on_end = [observer.begun(request) for observer in self._all]
        outcome: Outcome | None = None
        try:
            outcome = await run(request)
            return outcome
        finally:
            for end in reversed(on_end):
                end(outcome)
