"""Frames over one stream socket: a four-byte length, then JSON text. Reading blocks the whole guest."""

from __future__ import annotations

import _socket
import os
from typing import Any

HEADER = 4
FLUSH_BYTES = 1024 * 1024  # queued frames count as the program's memory
WHOLE = _socket.MSG_WAITALL


class Channel:
    """The guest's end of the socket. Before it is open, during a rehearsal, it drops what is sent."""

    def __init__(self) -> None:
        self._fd = -1
        self._receive: Any = None
        self._out: list[bytes] = []
        self._held = 0

    def open(self, fd: int) -> None:
        """Take the socket."""
        self._out.clear()
        self._fd = fd
        self._receive = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd).recv

    def read(self) -> str:
        """Return the text of the next frame. It blocks, and exits the process when the host has exited."""
        return self._read(int.from_bytes(self._read(HEADER), "big")).decode()

    def _read(self, size: int) -> bytes:
        data = self._receive(size, WHOLE)
        if len(data) < size:
            os._exit(0)
        return data

    def send(self, text: str, most: int) -> int:
        """Queue a frame for the next flush, unless it exceeds `most` bytes, and return its size."""
        if self._held > FLUSH_BYTES:
            self.flush()
        payload = text.encode()
        size = len(payload)
        if size <= most:
            self._held += size
            self._out.append(size.to_bytes(HEADER, "big") + payload)
        return size

    def flush(self) -> None:
        """Write the queued frames at once."""
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._held = 0
        sent = os.write(self._fd, data) if data and self._fd >= 0 else len(data)
        while sent < len(data):
            data = data[sent:]
            sent = os.write(self._fd, data)
