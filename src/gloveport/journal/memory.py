"""Recordings in memory, behind the interface that a store will fill."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from gloveport.types import MIB, Recording

MOST_BYTES = 64 * MIB


class Tape:
    """One run while it happens: what is sent to the guest and what it sends, in order.

    A run can be sent gigabytes, one reply after the other: past `MOST_BYTES` all of it is let go, and no more is taken.
    """

    def __init__(self, run: str, engine: str, memory_mb: int) -> None:
        self._run, self._engine, self._memory_mb = run, engine, memory_mb
        self._events: list[bytes] = []
        self._frames: list[bytes] = []
        self._size = 0

    def event(self, payload: bytes) -> None:
        """Takes an event before it is sent."""
        self._take(self._events, payload)

    def frame(self, payload: bytes) -> None:
        """Takes a frame that the guest sent."""
        self._take(self._frames, payload)

    def _take(self, kept: list[bytes], payload: bytes) -> None:
        self._size += len(payload)
        if self._size <= MOST_BYTES:
            kept.append(payload)
        else:
            self._events.clear()
            self._frames.clear()

    def recording(self) -> Recording | None:
        """What was taken so far; None when that was too much, since a part of a run can't be run again."""
        if self._size > MOST_BYTES:
            return None
        return Recording(self._run, self._engine, self._memory_mb, tuple(self._events), tuple(self._frames))


class Journal(Protocol):
    """Keeps the recordings of runs."""

    def keep(self, recording: Recording) -> None:
        """Takes the recording of a run that has ended."""
        ...

    def find(self, run: str) -> Recording | None:
        """The recording of a run; None when there is none."""
        ...


class MemoryJournal:
    """The last recordings, in memory; the oldest go when they are larger than `most_bytes` together."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._recordings: OrderedDict[str, Recording] = OrderedDict()

    def keep(self, recording: Recording) -> None:
        """Takes the recording of a run that has ended."""
        self._recordings[recording.run] = recording
        self._size += _size(recording)
        while self._size > self._most and len(self._recordings) > 1:
            _, oldest = self._recordings.popitem(last=False)
            self._size -= _size(oldest)

    def find(self, run: str) -> Recording | None:
        """The recording of a run; None when there is none."""
        return self._recordings.get(run)


def _size(recording: Recording) -> int:
    return sum(map(len, recording.events)) + sum(map(len, recording.frames))
