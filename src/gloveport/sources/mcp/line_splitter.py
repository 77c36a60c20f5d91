"""Splits bytes from an untrusted peer into lines of bounded length, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

EDGE_BYTES = 256


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line that exceeded a bound and was dropped; `id` is the JSON-RPC id that it probably answers, if known."""

    id: int | None

    @classmethod
    def of(cls, line: bytes) -> OverlongLine:
        """Return what is known of a line that will not be read."""
        return cls(_find_id(line[:EDGE_BYTES], line[-EDGE_BYTES:]))


class LineSplitter:
    """Cuts chunks into lines. Of a line longer than `max_bytes` only the edges are kept.

    Each byte is copied once: the pieces of a line are joined when it ends. (To append each chunk to the rest and split that
    again is quadratic: a line of 16 MB then costs seconds.)
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    @property
    def overlong(self) -> bool:
        """Whether the line that has not ended yet is already longer than allowed."""
        return self._size > self._max_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes | OverlongLine]:
        """Yield the lines that this chunk completes."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._end()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if not self.overlong:
            self._pieces.append(piece)
            return
        if self._pieces or not self._head:
            self._head = b"".join([*self._pieces, piece])[:EDGE_BYTES]
            self._pieces = []
        self._tail = (self._tail + piece)[-EDGE_BYTES:]

    def _end(self) -> bytes | OverlongLine:
        line = OverlongLine(_find_id(self._head, self._tail)) if self.overlong else b"".join(self._pieces)
        self._pieces, self._size, self._head, self._tail = [], 0, b"", b""
        return line


def _find_id(head: bytes, tail: bytes) -> int | None:
    """Return the id of a JSON-RPC message; servers write it at the beginning or at the end."""
    for found in (
        re.search(rb'^\s*\{[^{[]*?"id"\s*:\s*(\d{1,15})\b', head),
        re.search(rb'"id"\s*:\s*(\d{1,15})\s*\}\s*$', tail),
    ):
        if found:
            return int(found[1])
    return None
