"""Admission control: limits on concurrent runs, on those that wait for a slot, and on the bytes that requests hold."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from gloveport.errors import CODES, GloveportError
from gloveport.limits import MIB

MAX_CONCURRENT_RUNS = max(4, 2 * (os.cpu_count() or 2))
MAX_WAITING_RUNS = 512  # each with its connection: more would not fit into the usual limit of 1,024 descriptors
MAX_HELD_BYTES = 256 * MIB  # of requests that are read or answered, and of the runs that they have started


class Admission:
    """Counts requests and runs. A request can end before its run does (its client went away), so both are counted."""

    def __init__(self, max_concurrent: int = MAX_CONCURRENT_RUNS, max_waiting: int = MAX_WAITING_RUNS) -> None:
        self.max_runs = max_concurrent + max_waiting
        self._slots = asyncio.Semaphore(max_concurrent)
        self._requests = 0
        self._runs = 0
        self._held_bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False

    def check(self) -> None:
        """Raise GloveportError when no further run is admitted: `stopping` or `busy`."""
        if self.stopping:
            raise GloveportError("the server is about to stop", code="stopping", hint=CODES["stopping"].fix)
        if self.full:
            raise GloveportError("too many runs are waiting", code="busy", hint=CODES["busy"].fix)

    @property
    def runs(self) -> int:
        """The number of runs that run, or wait for a slot."""
        return self._runs

    @property
    def full(self) -> bool:
        """True when no further run is admitted."""
        return max(self._requests, self._runs) >= self.max_runs

    @contextmanager
    def memory(self) -> Iterator[Callable[[int], None]]:
        """Yield what counts bytes that are held while the block runs; it raises `busy` when all hold too many together."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self._held_bytes + size > MAX_HELD_BYTES:
                raise GloveportError("the requests at hand are too large together", code="busy", hint=CODES["busy"].fix)
            self._held_bytes += size
            held += size

        try:
            yield hold
        finally:
            self._held_bytes -= held

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request for a run while the block runs."""
        self._requests += 1
        self._update_idle()
        try:
            yield
        finally:
            self._requests -= 1
            self._update_idle()

    @asynccontextmanager
    async def run_slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it while the block runs; raises `busy` when too many runs wait already."""
        if self._runs >= self.max_runs:
            raise GloveportError("too many runs are waiting", code="busy", hint=CODES["busy"].fix)
        self._runs += 1
        self._update_idle()
        try:
            async with self._slots:
                yield
        finally:
            self._runs -= 1
            self._update_idle()

    async def wait_until_idle(self) -> None:
        """Wait until there is neither a request nor a run."""
        await self._idle.wait()

    def _update_idle(self) -> None:
        if self._requests or self._runs:
            self._idle.clear()
        else:
            self._idle.set()
