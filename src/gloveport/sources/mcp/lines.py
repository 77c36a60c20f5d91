"""Bytes from a server that may send anything → lines of bounded length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

EDGE = 256


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line that was more than allowed: of it only the request that it probably answered is known, or not even that."""

    id: int | None

    @classmethod
    def of(cls, line: bytes) -> Overlong:
        """What is known of a line that nobody will read."""
        return cls(_id(line[:EDGE], line[-EDGE:]))


class Lines:
    """Cuts chunks into lines. Of a line longer than `most` bytes nothing is kept but its edges."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The lines that this chunk ends."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._end()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._pieces.append(piece)
            return
        if self._pieces or not self._head:
            self._head = b"".join([*self._pieces, piece])[:EDGE]
            self._pieces = []
        self._tail = (self._tail + piece)[-EDGE:]

    def _end(self) -> bytes | Overlong:
        line = b"".join(self._pieces) if self._size <= self._most else Overlong(_id(self._head, self._tail))
        self._pieces, self._size, self._head, self._tail = [], 0, b"", b""
        return line


def _id(head: bytes, tail: bytes) -> int | None:
    """The id of a JSON-RPC message, which servers write at its beginning or its end."""
    for found in (
        re.search(rb'^\s*\{[^{[]*?"id"\s*:\s*(\d{1,15})\b', head),
        re.search(rb'"id"\s*:\s*(\d{1,15})\s*\}\s*$', tail),
    ):
        if found:
            return int(found[1])
    return None
