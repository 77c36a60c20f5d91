"""Running a recording again: the same events, in their order, to a fresh worker; the same frames must come back."""

from __future__ import annotations

import asyncio

from gloveport.errors import WireError
from gloveport.sandbox import wire
from gloveport.sandbox.worker import Worker
from gloveport.types import Divergence, Limits, Recording


async def replay(worker: Worker, recording: Recording, limits: Limits) -> Divergence | None:
    """The first difference between the recording and what the worker says now; None when there is none.

    Nothing is called and nothing is decided: every reply is in the recording. The clock of the host plays no part.
    """
    loop = asyncio.get_running_loop()
    reader = wire.FrameReader(limits.max_frame_bytes, 2**40)
    ended: asyncio.Future[Divergence | None] = loop.create_future()
    seen = 0

    def receive(data: bytes) -> None:
        nonlocal seen
        if ended.done():
            return
        try:
            frames = reader.feed(data) if data else [None]
        except WireError:
            frames = [data]
        for frame in frames:
            recorded = recording.frames[seen] if seen < len(recording.frames) else None
            if frame != recorded:
                ended.set_result(Divergence(seen, recorded, frame))
                return
            seen += 1
            if seen == len(recording.frames):
                ended.set_result(None)
                return

    worker.limit(memory_mb=limits.memory_mb, cpu_seconds=limits.cpu_seconds)
    worker.listen(receive)
    worker.send(b"".join(wire.pack(event) for event in recording.events))
    try:
        async with asyncio.timeout(limits.wall_seconds):
            return await ended
    except TimeoutError:
        recorded = recording.frames[seen] if seen < len(recording.frames) else None
        return Divergence(seen, recorded, None)
    finally:
        worker.end()
