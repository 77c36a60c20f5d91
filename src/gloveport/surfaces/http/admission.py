"""Admission for runs: so many at a time, so many that wait for their turn, and no more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from gloveport.errors import CODES, GloveportError

MAX_CONCURRENT_RUNS = max(4, 2 * (os.cpu_count() or 2))
MAX_WAITING_RUNS = 256


class Admission:
    """Counts requests and runs. A request may end before its run does (its client went away), so both are counted."""

    def __init__(self, at_once: int = MAX_CONCURRENT_RUNS, waiting: int = MAX_WAITING_RUNS) -> None:
        self._most = at_once + waiting
        self._turns = asyncio.Semaphore(at_once)
        self._requests = 0
        self._runs = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def full(self) -> bool:
        """True when nobody else may come in."""
        return max(self._requests, self._runs) >= self._most

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around a request that asks for a run."""
        self._requests += 1
        self._count()
        try:
            yield
        finally:
            self._requests -= 1
            self._count()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Around a run: waits for its turn; raises `busy` when too many wait already."""
        if self._runs >= self._most:
            raise GloveportError("too many runs are waiting", code="busy", hint=CODES["busy"].fix)
        self._runs += 1
        self._count()
        try:
            async with self._turns:
                yield
        finally:
            self._runs -= 1
            self._count()

    async def emptied(self) -> None:
        """Waits until there is neither a request nor a run."""
        await self._empty.wait()

    def _count(self) -> None:
        if self._requests or self._runs:
            self._empty.clear()
        else:
            self._empty.set()
