"""Frames over one stream socket: a four-byte length, then JSON text.

Reading blocks the whole guest. Nothing runs between two events, so a run is a function of its events.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import json
import os
import socket
from collections import deque
from typing import Any

from .values import decode

HEADER = 4
WHOLE = socket.MSG_WAITALL
MAX_FRAME_BYTES = 16 * 1024 * 1024
FLUSH_BYTES = 1024 * 1024  # queued frames count as the program's memory

_scan = json.JSONDecoder().scan_once
_write = os.write
_exit = os._exit


class FrameTooLarge(ValueError):
    """A message exceeds the maximum size."""


class Channel:
    """The guest's end of the socket.

    How the host's bytes were cut must not show in the program's memory: not in the addresses of later objects (which `repr`
    shows), nor in when the garbage collector runs. So the kernel assembles the pieces: one read gives the four bytes of a
    length, the next gives the whole frame, and neither leaves a rest.
    """

    def __init__(self) -> None:
        self._fd = -1
        self._receive: Any = None
        self._held: deque[list[Any]] = deque()
        self._out: list[bytes] = []
        self._out_size = 0
        self.max_frame = MAX_FRAME_BYTES

    def open(self, fd: int) -> None:
        """Take the socket."""
        self._fd = fd
        self._receive = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd).recv

    # In.

    def next_event(self) -> list[Any]:
        """Return the next event in the order of the host's stream. It blocks."""
        return self._held.popleft() if self._held else self._read_frame()

    def wait_for(self, kind: str, call_id: int | None = None, at: int = 0) -> list[Any]:
        """Return the reply to `call_id`, or the timer event at or after `at`. Queue other events. It blocks."""
        while True:
            event = self._read_frame()
            if event[0] == kind and (event[2] == call_id if kind == "reply" else event[1] >= at):
                return event
            self._held.append(event)

    def _read_frame(self) -> list[Any]:
        size = int.from_bytes(self._receive(HEADER, WHOLE), "big")
        data = self._receive(size, WHOLE)
        while 0 < len(data) < size and (more := self._receive(size - len(data), WHOLE)):  # a signal has cut the read
            data += more
        if not size or len(data) < size:
            _exit(0)  # the host has exited
        text = data.decode()
        event = _scan(text, 0)[0]
        if '"$' in text and event[0] == "reply":
            event[4] = decode(event[4])
        return event

    # Out.

    def send(self, text: str) -> None:
        """Queue a frame, given as JSON text, for the next flush. Raise FrameTooLarge for one above the limit."""
        try:
            payload = text.encode()
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 can't encode
            payload = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        size = len(payload)
        if size > self.max_frame:
            raise FrameTooLarge(f"{size:,} bytes are over the limit of {self.max_frame:,} for one message")
        if self._out_size > FLUSH_BYTES:
            self.flush()
        self._out.append(size.to_bytes(HEADER, "big") + payload)
        self._out_size += size

    def flush(self) -> None:
        """Write the queued frames at once."""
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_size = 0
        sent = _write(self._fd, data)
        while sent < len(data):
            data = data[sent:]
            sent = _write(self._fd, data)
