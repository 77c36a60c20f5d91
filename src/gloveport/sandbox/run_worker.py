"""What a run needs of its worker, wherever that is: a process of this machine, or one at a sandbox host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from gloveport.sandbox.guest import Exit
from gloveport.sandbox.start_event import Preparation
from gloveport.sandbox.watchdog import ExceededLimit
from gloveport.types import Limits


class RunWorker(Protocol):
    """A started, jailed engine that waits for a program. It is used for one run and then ended."""

    engine: str
    idle_mb: float
    lost: str | None
    """Why nobody can tell what became of the process; None for one that this machine has started."""
    prepared: Preparation | None
    """How the process was prepared for its run; None if it was not."""

    def alive(self) -> bool:
        """Return whether it can take a program."""
        ...

    async def prepare(self, preparation: Preparation) -> bool:
        """Have the process import modules; return whether it did only that. Otherwise it is of no use any more."""
        ...

    def take_workspace(self) -> int | None:
        """Return the descriptor of the workspace, which is then the caller's to close; None if it has none."""
        ...

    def limit(self, limits: Limits, on_exceeded: Callable[[], None]) -> None:
        """Set the run's limits, until the process is dead. `on_exceeded` is called in the loop, soon."""
        ...

    def pause_clock(self) -> None:
        """Stop the wall clock of the run until `resume_clock`. CPU time and memory stay limited."""
        ...

    def resume_clock(self) -> None:
        """Let the wall clock go on."""
        ...

    def run_cpu_seconds(self) -> float:
        """Return the CPU time used since the worker's run began."""
        ...

    def peak_mb(self) -> float:
        """Return the peak memory of the process."""
        ...

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        """Pass everything that the guest sends to `on_bytes`; empty bytes mean that it has ended."""
        ...

    def pause(self) -> None:
        """Stop listening until `resume`."""
        ...

    def resume(self) -> None:
        """Listen again."""
        ...

    def send(self, data: bytes) -> int:
        """Send bytes, now or when the guest takes them; return how many bytes still wait."""
        ...

    @property
    def unsent(self) -> int:
        """The number of bytes that wait to be sent."""
        ...

    def when_sent(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when everything is sent."""
        ...

    def limit_of(self, exit_: Exit) -> ExceededLimit | None:
        """Return the limit for which the process has died."""
        ...

    def death(self, exit_: Exit, stderr: str, limits: Limits) -> dict[str, Any]:
        """Return the error of a run whose process has died."""
        ...

    def end(self, delay: float = 0) -> asyncio.Task[tuple[Exit, str]]:
        """Kill the process, after a delay if one is given; the returned task yields its exit and the end of its stderr."""
        ...
