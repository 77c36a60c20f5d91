"""Log lines and emitted values. They are sent at once, so that a killed run keeps them."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import Any

from .errors import message_of
from .values import encode, quote
from .wire import Channel

MAX_LINE_CHARS = 64 * 1024


class Output:
    """Sends lines and values to the host within the budget, which the host checks again."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.left = 0
        self.dropped = 0
        self.streams = (Stream(self, "log"), Stream(self, "error"))

    def log(self, level: str, text: str) -> None:
        """Send a line without its line break."""
        kept = text[: max(0, min(self.left, MAX_LINE_CHARS))]
        self.dropped += len(text) - len(kept)
        if self.left <= 0:
            return
        self.left -= len(kept) + 1
        self._channel.send(f'["log","{level}",{quote(kept)}]')
        self._channel.flush()

    def emit(self, value: Any) -> None:
        """Send the user a value in addition to the result of the run."""
        self._channel.send(f'["emit",{encode(value, "emit")}]')
        self._channel.flush()

    def end(self) -> None:
        """Send the incomplete lines."""
        for stream in self.streams:
            stream.end()

    def install(self) -> None:
        """Become the program's standard output and error, and the target of its warnings."""
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = self.streams
        sys.stdin = sys.__stdin__ = io.StringIO("")

        def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, *line: Any) -> None:
            text = warnings.formatwarning(message, category, filename.rpartition("/")[2], lineno, *line)
            if file is None:
                self.log("warn", text.rstrip("\n"))
            else:
                file.write(text)

        def unraisable(hook: Any) -> None:
            self.log("error", f"Exception ignored: {type(hook.exc_value).__name__}: {message_of(hook.exc_value)}")

        warnings.showwarning = show
        sys.unraisablehook = unraisable


def patch_logging(output: Output) -> None:
    """Keep the level of records that `logging` writes to the program's streams."""
    emit = logging.StreamHandler.emit

    def emit_with_level(self: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
        if self.stream not in output.streams:
            return emit(self, record)
        try:
            level = "error" if record.levelno >= 40 else "warn" if record.levelno >= 30 else "info"
            output.log(level if record.levelno >= 20 else "debug", self.format(record))
        except Exception:
            self.handleError(record)

    logging.StreamHandler.emit = emit_with_level


class Stream(io.TextIOBase):
    """A text stream that sends each line as soon as it is complete."""

    def __init__(self, output: Output, level: str) -> None:
        super().__init__()
        self._output = output
        self._level = level
        self._begun = ""
        self.buffer = _Bytes(self)
        self.name = "<stdout>" if level == "log" else "<stderr>"

    encoding = "utf-8"
    errors = "replace"
    line_buffering = True
    mode = "w"

    def write(self, text: str) -> int:
        """Take text and send the complete lines."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        size = len(text)
        lines, end, rest = (self._begun + str.__str__(text)).rpartition("\n")
        self._begun = rest
        if end:
            self._output.log(self._level, lines)
        elif len(rest) > MAX_LINE_CHARS:
            self.end()
        return size

    def end(self) -> None:
        """Send an incomplete line."""
        rest, self._begun = self._begun, ""
        if rest:
            self._output.log(self._level, rest)

    def writable(self) -> bool:
        """Return True."""
        return True

    def reconfigure(self, **options: Any) -> None:
        """Do nothing: the stream has no settings."""


class _Bytes(io.RawIOBase):
    """The `buffer` of a stream, for programs that write bytes."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)
