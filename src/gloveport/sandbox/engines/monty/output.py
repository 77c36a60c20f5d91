"""The printed text of a program in Monty, cut into lines within its budget."""

from __future__ import annotations

from collections.abc import Iterator

from gloveport.sandbox.engines.monty.messages import Printed

MAX_LINE_CHARS = 64 * 1024
LEVELS = ("log", "error")


class Lines:
    """The lines of two streams. The worker sends pieces of any size; the lines don't depend on how they were cut."""

    def __init__(self) -> None:
        self.left = 0
        self.dropped = 0
        self._begun = ["", ""]

    def take(self, printed: Printed) -> Iterator[tuple[str, str]]:
        """Yield the complete lines, each with its level."""
        for of_stderr, text in printed.pieces:
            *ended, rest = (self._begun[of_stderr] + text).split("\n")
            self._begun[of_stderr] = rest
            for line in ended:
                yield from self._budgeted(of_stderr, line)
            if len(rest) > MAX_LINE_CHARS:
                yield from self.end()

    def end(self) -> Iterator[tuple[str, str]]:
        """Yield the incomplete lines."""
        for stream in (False, True):
            rest, self._begun[stream] = self._begun[stream], ""
            if rest:
                yield from self._budgeted(stream, rest)

    def _budgeted(self, stream: bool, line: str) -> Iterator[tuple[str, str]]:
        kept = line[: max(0, min(self.left, MAX_LINE_CHARS))]
        self.dropped += len(line) - len(kept)
        if self.left > 0:
            self.left -= len(kept) + 1
            yield LEVELS[stream], kept
