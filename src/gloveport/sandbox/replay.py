"""Replay a recording: send its events to a fresh worker, in order, and expect the same frames back."""

from __future__ import annotations

import asyncio

from gloveport.errors import WireError
from gloveport.sandbox import wire
from gloveport.sandbox.worker import Worker
from gloveport.types import Divergence, Limits, Recording


async def replay(worker: Worker, recording: Recording, limits: Limits) -> Divergence | None:
    """Return the first difference between the recording and the worker's frames; None when they are equal.

    A replay makes no tool call and no decision: the recording holds every reply. It does not depend on the host's clock.
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
            if frame is None or frame != recorded:
                ended.set_result(Divergence(seen, recorded, frame))
                return
            seen += 1
            if seen == len(recording.frames):
                ended.set_result(None)
                return

    worker.limit(limits, lambda: receive(b""))  # over a limit is the same as dead
    worker.listen(receive)
    worker.send(b"".join(wire.pack(event) for event in recording.events))
    try:
        return await ended
    finally:
        worker.end()
