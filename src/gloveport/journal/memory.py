"""Recordings of runs in memory, behind the `Journal` Protocol that a store on disk will implement."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from gloveport.types import MIB, Recording

MAX_RECORDING_BYTES = 64 * MIB


class RunRecorder:
    """Records one run: the events that it is sent and the frames that it sends, in order.

    A run can receive gigabytes, one reply after the other. Past `MAX_RECORDING_BYTES` the recorder drops everything.
    """

    def __init__(self, run: str, engine: str, memory_mb: int) -> None:
        self._run, self._engine, self._memory_mb = run, engine, memory_mb
        self._events: list[bytes] = []
        self._frames: list[bytes] = []
        self._size = 0

    def event(self, payload: bytes) -> None:
        """Record an event before it is sent."""
        self._append(self._events, payload)

    def frame(self, payload: bytes) -> None:
        """Record a frame that the guest sent."""
        self._append(self._frames, payload)

    def _append(self, kept: list[bytes], payload: bytes) -> None:
        self._size += len(payload)
        if self._size <= MAX_RECORDING_BYTES:
            kept.append(payload)
        else:
            self._events.clear()
            self._frames.clear()

    def recording(self) -> Recording | None:
        """Return the recording so far; None when it grew too large, because a part of a run can't be replayed."""
        if self._size > MAX_RECORDING_BYTES:
            return None
        return Recording(self._run, self._engine, self._memory_mb, tuple(self._events), tuple(self._frames))


class Journal(Protocol):
    """Stores the recordings of runs."""

    def keep(self, recording: Recording) -> None:
        """Store the recording of a run that has ended."""
        ...

    def find(self, run: str) -> Recording | None:
        """Return the recording of a run, or None."""
        ...


class MemoryJournal:
    """The last recordings, in memory. The oldest are dropped when all together exceed `most_bytes`."""

    def __init__(self, most_bytes: int = MAX_RECORDING_BYTES) -> None:
        self._max_bytes = most_bytes
        self._size = 0
        self._recordings: OrderedDict[str, Recording] = OrderedDict()

    def keep(self, recording: Recording) -> None:
        """Store the recording of a run that has ended."""
        self._recordings[recording.run] = recording
        self._size += _size(recording)
        while self._size > self._max_bytes and len(self._recordings) > 1:
            _, oldest = self._recordings.popitem(last=False)
            self._size -= _size(oldest)

    def find(self, run: str) -> Recording | None:
        """Return the recording of a run, or None."""
        return self._recordings.get(run)


def _size(recording: Recording) -> int:
    return sum(map(len, recording.events)) + sum(map(len, recording.frames))
