"""Replay a recording: send its events to a fresh worker, in order, and expect the same frames back."""

from __future__ import annotations

import asyncio

from gloveport.errors import SandboxError, WireError
from gloveport.large_values import off_loop
from gloveport.sandbox import wire
from gloveport.sandbox.history import RepeatedFrames, prepared_events
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import Divergence, Limits, Recording


async def replay(worker: RunWorker, recording: Recording, limits: Limits) -> Divergence | None:
    """Return the first difference between the recording and the worker's frames; None when they are equal.

    A replay makes no tool call and no decision: the recording holds every reply. It does not depend on the host's clock.
    """
    loop = asyncio.get_running_loop()
    reader = wire.FrameReader(limits.max_frame_bytes, 2**40)
    ended: asyncio.Future[Divergence | None] = loop.create_future()
    repeated = await off_loop(RepeatedFrames, recording)
    preparation, sent = await off_loop(prepared_events, recording.events)
    events = await off_loop(lambda: b"".join(wire.pack(event) for event in sent))

    def receive(data: bytes) -> None:
        if ended.done():
            return
        try:
            frames = reader.feed(data)
        except WireError:
            frames = [data]
        for frame in frames:
            if (difference := repeated.take(frame)) is not None:
                ended.set_result(difference)
                return
            if repeated.are_complete:
                ended.set_result(repeated.difference)
                return
        if not data and worker.lost:
            ended.set_exception(SandboxError(worker.lost, code="sandbox-lost"))
        elif not data:
            ended.set_result(repeated.ended())

    if repeated.are_complete:
        return None
    if preparation is not None and not await worker.prepare(preparation):
        return repeated.ended()
    worker.limit(limits, lambda: receive(b""))  # over a limit is the same as dead
    worker.listen(receive)
    worker.send(events)
    try:
        return await ended
    finally:
        worker.end()
