"""The longest time for which the event loop did not turn, in CPU time of this process: waiting for others does not count."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fuzz.stall.standstill import Standstill

MAX_STALL_SECONDS = 0.05


@asynccontextmanager
async def assert_no_stall() -> AsyncIterator[None]:
    """Fail when the loop stands still for more than 50 ms of CPU time while the block runs."""
    await asyncio.to_thread(int)  # which loads what threads need
    gc.collect()
    gc.freeze()  # to collect what the tests have made before is not what is measured
    longest, standstill = 0.0, Standstill()

    async def beat() -> None:
        nonlocal longest
        while True:
            longest = max(longest, standstill.lap())
            await asyncio.sleep(0.001)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0)
    try:
        yield
        await asyncio.sleep(0.002)
    finally:
        beating.cancel()
        gc.unfreeze()
    assert longest <= MAX_STALL_SECONDS, f"the event loop stood still for {longest * 1e3:.0f} ms of CPU time"
