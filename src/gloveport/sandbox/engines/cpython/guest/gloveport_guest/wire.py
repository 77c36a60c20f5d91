"""Frames over one stream socket: a four-byte length, then JSON text.

Reading blocks the whole guest: between two events nothing of it moves, which is what makes a run a function of its events.
"""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

from __future__ import annotations

import json
import os
import socket
from collections import deque
from typing import Any

from .values import decode

HEADER = 4
WHOLE = socket.MSG_WAITALL
MAX_FRAME = 16 * 1024 * 1024
LARGE = 1024 * 1024  # what lies here counts as the program's memory

_scan = json.JSONDecoder().scan_once
_write = os.write
_exit = os._exit


class FrameTooLarge(ValueError):
    """One message has more bytes than a message may have."""


class Channel:
    """The guest's end of the socket.

    How the host's bytes happen to be cut must not show in the program's memory: not in the addresses of what it makes
    afterwards (which `repr` tells), nor in when the garbage collector runs. So the kernel puts the pieces together: one
    read gives the four bytes of a length, the next gives the whole frame, and nothing is left over from either.
    """

    def __init__(self) -> None:
        self._fd = -1
        self._receive: Any = None
        self._held: deque[list[Any]] = deque()
        self._out: list[bytes] = []
        self._out_size = 0
        self.max_frame = MAX_FRAME

    def open(self, fd: int) -> None:
        """Take the socket."""
        self._fd = fd
        self._receive = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd).recv

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
        size = int.from_bytes(self._receive(HEADER, WHOLE), "big")
        data = self._receive(size, WHOLE)
        if not size or len(data) < size:
            _exit(0)  # the host is gone, and nothing of the program matters any more
        text = data.decode()
        event = _scan(text, 0)[0]
        if '"$' in text and event[0] == "reply":
            event[4] = decode(event[4])
        return event

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
        if self._out_size > LARGE:
            self.flush()
        self._out.append(size.to_bytes(HEADER, "big") + payload)
        self._out_size += size

    def flush(self) -> None:
        """Writes what was added since the last flush, in one go."""
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_size = 0
        sent = _write(self._fd, data)
        while sent < len(data):
            data = data[sent:]
            sent = _write(self._fd, data)
