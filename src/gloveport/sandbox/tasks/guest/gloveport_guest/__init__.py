"""The process that runs tasks, inside the jail. It reads a request, runs the task and sends what it yields.

Frames have a four-byte length. The first byte of a frame is its kind:

    host → process   T name of a task · P one part of its input · G go · A answer (0 or 1, then the bytes)
    process → host   R one piece of the result · Q question · D done · E error, as JSON · L too deep or too large
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable

PROTOCOL = 1
HEADER_BYTES = 4
FLUSH_BYTES = 64 * 1024
MAX_TRACEBACK_CHARS = 4000

Task = Callable[[list[bytes], Callable[[bytes], bytes | None]], Iterable[bytes]]
_tasks: dict[str, Task] = {}


def preload() -> None:
    """Load the modules of the tasks, and have each rehearse, so that its forks start warm and load nothing more."""
    packages = [path for name, path in os.environ.items() if name.startswith("GLOVEPORT_PACKAGE_")]
    sys.path += dict.fromkeys(os.path.dirname(os.path.dirname(path)) for path in packages)
    for name in filter(None, os.environ["GLOVEPORT_MODULES"].split(",")):
        importlib.import_module(name)
    for name in os.environ["GLOVEPORT_TASKS"].split(","):
        module, _, function = name.partition(":")
        _tasks[name] = getattr(importlib.import_module(module), function)
    for module in {name.partition(":")[0] for name in _tasks}:
        sys.modules[module].rehearse()


def main() -> None:
    """Run one task after the other until the host hangs up."""
    gc.freeze()
    channel = Channel()
    channel.send(json.dumps(["ready", PROTOCOL, "tasks"]).encode())
    channel.flush()
    while True:
        name, parts = channel.request()
        channel.run(_tasks[name], parts)
        channel.flush()


class Channel:
    """The socket to the host: standard input and output."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._unsent = bytearray()

    def request(self) -> tuple[str, list[bytes]]:
        """Return the next task and its input."""
        name, parts = "", []
        while (kind := (frame := self._read())[:1]) != b"G":
            if kind == b"T":
                name = frame[1:].decode()
            else:
                parts.append(frame[1:])
        return name, parts

    def run(self, task: Task, parts: list[bytes]) -> None:
        """Run a task and send what it yields, or how it failed."""
        try:
            for piece in task(parts, self._ask):
                self.send(b"R" + piece)
            self.send(b"D")
        except (RecursionError, MemoryError):
            self.send(b"L")
        except Exception as error:  # noqa: BLE001 - the outer edge: the host decides what the error means
            known = {name: value for name, value in vars(error).items() if isinstance(value, str | int | None)}
            trace = "" if hasattr(error, "code") else traceback.format_exc()[-MAX_TRACEBACK_CHARS:]
            self.send(b"E" + json.dumps({"type": type(error).__name__, "trace": trace, **known}).encode())

    def send(self, frame: bytes) -> None:
        """Send a frame with the next flush, or now if a lot is waiting."""
        self._unsent += len(frame).to_bytes(HEADER_BYTES) + frame
        if len(self._unsent) > FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send everything that waits."""
        with memoryview(self._unsent) as unsent:
            sent = 0
            while sent < len(unsent):
                sent += os.write(1, unsent[sent:])
        self._unsent.clear()

    def _ask(self, question: bytes) -> bytes | None:
        self.send(b"Q" + question)
        self.flush()
        answer = self._read()
        return answer[2:] if answer[1:2] == b"1" else None

    def _read(self) -> bytes:
        self._fill(HEADER_BYTES)
        length = int.from_bytes(self._unread[:HEADER_BYTES])
        self._fill(HEADER_BYTES + length)
        frame = bytes(self._unread[HEADER_BYTES : HEADER_BYTES + length])
        del self._unread[: HEADER_BYTES + length]
        return frame

    def _fill(self, size: int) -> None:
        while len(self._unread) < size:
            data = os.read(0, max(FLUSH_BYTES, min(size - len(self._unread), 1 << 20)))
            if not data:
                os._exit(0)
            self._unread += data
