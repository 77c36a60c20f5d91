"""Frames over one stream socket: a four-byte length, then JSON text.

Reading blocks the whole guest: between two events nothing of it moves, which is what makes a run a function of its events.
"""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

from __future__ import annotations

import json
import os
from collections import deque
from io import FileIO
from typing import Any

from .values import decode

HEADER = 4
CHUNK = 65536
MAX_FRAME = 16 * 1024 * 1024

_scan = json.JSONDecoder().scan_once
_write = os.write
_exit = os._exit


class FrameTooLarge(ValueError):
    """One message has more bytes than a message may have."""


class Channel:
    """The guest's end of the socket.

    What is read is copied out of one fixed buffer by byte arrays only, which the garbage collector does not count: how the
    host's bytes happen to be cut must not move a collection, nor the addresses of what the program makes afterwards.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._readinto = FileIO(fd, "r", closefd=False).readinto
        self._chunk = bytearray(CHUNK)
        self._data = bytearray()
        self._at = 0
        self._held: deque[list[Any]] = deque()
        self._out: list[bytes] = []
        self.max_frame = MAX_FRAME

    # In.

    def next_event(self) -> list[Any]:
        """The next event in the order of the host's stream. Blocks."""
        return self._held.popleft() if self._held else self._read_frame()

    def wait_for(self, kind: str, call_id: int | None = None, at: int = 0) -> list[Any]:
        """The reply to the call `call_id`, or the timer event from `at` on; what comes before it is held back. Blocks."""
        while True:
            event = self._read_frame()
            if event[0] == kind and (event[2] == call_id if kind == "reply" else event[1] >= at):
                return event
            self._held.append(event)

    def _read_frame(self) -> list[Any]:
        if not self._data:
            got = self._read()
            if got >= HEADER and int.from_bytes(self._chunk[:HEADER], "big") == got - HEADER:
                return _parse(self._chunk[HEADER:got].decode())
            self._data += self._chunk[:got]
        length = int.from_bytes(self._cut(HEADER), "big")
        text = self._cut(length).decode()
        if self._at == len(self._data):
            self._data, self._at = bytearray(), 0
        return _parse(text)

    def _cut(self, count: int) -> bytearray:
        while len(self._data) - self._at < count:
            if self._at > CHUNK:
                del self._data[: self._at]
                self._at = 0
            self._data += self._chunk[: self._read()]
        start, self._at = self._at, self._at + count
        return self._data[start : self._at]

    def _read(self) -> int:
        got = self._readinto(self._chunk)
        if not got:
            _exit(0)  # the host is gone, and nothing of the program matters any more
        return got

    # Out.

    def send(self, text: str) -> None:
        """Adds a frame, given as JSON text, to what the next flush sends. One that is too large is a FrameTooLarge."""
        try:
            payload = text.encode()
        except UnicodeEncodeError:  # a lone surrogate, which has no form in UTF-8
            payload = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        size = len(payload)
        if size > self.max_frame:
            raise FrameTooLarge(f"{size:,} bytes are over the limit of {self.max_frame:,} for one message")
        self._out.append(size.to_bytes(HEADER, "big") + payload)

    def flush(self) -> None:
        """Writes what was added since the last flush, in one go."""
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        sent = _write(self._fd, data)
        while sent < len(data):
            data = data[sent:]
            sent = _write(self._fd, data)


def _parse(text: str) -> list[Any]:
    event = _scan(text, 0)[0]
    if '"$' in text and event[0] == "reply":
        event[4] = decode(event[4])
    return event
