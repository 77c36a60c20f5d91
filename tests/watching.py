"""Looks at what runs cost their host while they run, and whether their processes are gone afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gloveport.sandbox.process_status import held_bytes
from gloveport.sandbox.worker import Worker
from gloveport.types import MIB, Limits

SAMPLE_SECONDS = 0.01
GONE_SECONDS = 120.0
MAX_GROWTH_BYTES = 50 * MIB


class Watch:
    """What was seen: how much this process grew at most, and the processes of the runs that were started."""

    def __init__(self) -> None:
        self._before = held_bytes(os.getpid())
        self.growth = 0
        self.pids: list[int] = []

    async def sample(self) -> None:
        """Look again and again; a peak that the kernel keeps would hide what comes after a higher one."""
        while True:
            self.growth = max(self.growth, held_bytes(os.getpid()) - self._before)
            await asyncio.sleep(SAMPLE_SECONDS)

    async def all_gone(self) -> bool:
        """Whether every process is gone, to the last trace of it, soon after its run has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_SECONDS):
                while self._alive():  # noqa: ASYNC110 - they are not our children
                    await asyncio.sleep(SAMPLE_SECONDS)
        return not self._alive()

    def _alive(self) -> bool:
        return any(Path(f"/proc/{pid}").exists() for pid in self.pids)


@contextlib.asynccontextmanager
async def watching() -> AsyncIterator[Watch]:
    """Watch this process, and the processes of the runs that are started inside of `with`."""
    watch = Watch()
    limit = Worker.limit

    def noted(self: Worker, limits: Limits, on_exceeded: Callable[[], None]) -> None:
        watch.pids.append(self.guest.pid)
        limit(self, limits, on_exceeded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "limit", noted)
        sampling = asyncio.create_task(watch.sample())
        try:
            yield watch
        finally:
            sampling.cancel()
