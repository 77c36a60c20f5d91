"""What the program shows: lines of output and emitted values, sent at once, so that a run that is killed keeps them."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import Any

from .errors import message_of
from .values import encode, quote
from .wire import Channel

LONGEST_LINE = 64 * 1024


class Output:
    """Sends lines and values to the host, as far as the budget goes; the host counts again."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.left = 0
        self.dropped = 0
        self.streams = (Stream(self, "log"), Stream(self, "error"))

    def log(self, level: str, text: str) -> None:
        """Send a line, without its end."""
        kept = text[: max(0, min(self.left, LONGEST_LINE))]
        self.dropped += len(text) - len(kept)
        if self.left <= 0:
            return
        self.left -= len(kept) + 1
        self._channel.send(f'["log","{level}",{quote(kept)}]')
        self._channel.flush()

    def emit(self, value: Any) -> None:
        """Give a value to the user, beside the result of the run."""
        self._channel.send(f'["emit",{encode(value, "emit")}]')
        self._channel.flush()

    def end(self) -> None:
        """Send what has no end of line yet."""
        for stream in self.streams:
            stream.end()

    def install(self) -> None:
        """Become the program's standard output, and where its warnings go."""
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


def turn_logging(output: Output) -> None:
    """Let what `logging` writes to the program's streams keep its level."""
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
    """A text stream whose lines are sent as soon as they end."""

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
        """Take text; what has come to the end of a line goes out."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        size = len(text)
        lines, end, rest = (self._begun + str.__str__(text)).rpartition("\n")
        self._begun = rest
        if end:
            self._output.log(self._level, lines)
        elif len(rest) > LONGEST_LINE:
            self.end()
        return size

    def end(self) -> None:
        """Send a line that has begun."""
        rest, self._begun = self._begun, ""
        if rest:
            self._output.log(self._level, rest)

    def writable(self) -> bool:
        """Yes."""
        return True

    def reconfigure(self, **options: Any) -> None:
        """Nothing: the stream is what it is."""


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
