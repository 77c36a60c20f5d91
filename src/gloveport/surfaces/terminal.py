"""What people read in a terminal: marks, colours, and text from guests that can't take the terminal over.

A guest can log, emit, return and throw any text. `visible` shows the characters that a terminal would obey or hide
(escape sequences, OSC 52, bidirectional overrides, zero-width characters) instead of sending them.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

from gloveport.errors import OptionError

Colour = Literal["red", "green", "yellow", "dim", "bold"]

_SGR: dict[Colour, str] = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

# Controls but line feed and tab; soft hyphen; joiners, fillers and selectors that show nothing; direction marks and
# overrides; separators; lone surrogates; tags. The two common emoji selectors (U+FE0E, U+FE0F) stay.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with every character that a terminal would obey or hide written out, as `\\x1b` or `\\u{202e}`."""
    return _HIDDEN.sub(_written_out, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """The same on one line: line feeds and tabs written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_json(text: str) -> str:
    """JSON text with the same characters as JSON escapes, so that it means what it meant."""
    return _HIDDEN.sub(_json_escaped, text)


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{{{number:x}}}"


def _json_escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def cells(text: str) -> int:
    """How many columns the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def clip(text: str, columns: int) -> str:
    """The text, cut with an ellipsis where it would take more columns."""
    if cells(text) <= columns:
        return text
    used = 0
    for at, character in enumerate(text):
        used += _width(character)
        if used > columns - 1:
            return text[:at] + "…"
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def in_time(seconds: float) -> str:
    """A duration in the unit that reads best."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.00095 else "<1 ms"
    return f"{seconds:.1f} s" if seconds < 59.95 else f"{int(seconds + 0.5) // 60} min {int(seconds + 0.5) % 60} s"


@dataclass(frozen=True, slots=True)
class Stream:
    """One output: where it goes, whether a person watches it, whether it takes colour."""

    file: TextIO
    terminal: bool
    coloured: bool
    moves: bool = field(default=False)  # whether the cursor can be moved, for live lines

    def line(self, text: str = "") -> None:
        """Write one line; a reader that has gone away is no error."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Write text as it is."""
        try:
            self.file.write(text)
            self.file.flush()
        except BrokenPipeError:
            _write_to_nowhere(self.file)
        except OSError as error:
            _write_to_nowhere(self.file)
            raise OptionError(f"the output can't be written: {error.strerror}", hint="free some space") from None

    def paint(self, text: str, *colours: Colour) -> str:
        """The text in colours, where this output takes them; colour never says what the words don't."""
        if not self.coloured or not colours:
            return text
        return f"\x1b[{';'.join(_SGR[colour] for colour in colours)}m{text}\x1b[0m"

    @property
    def columns(self) -> int:
        """How wide the output is; 100 where nobody knows."""
        return max(20, shutil.get_terminal_size((100, 24)).columns) if self.terminal else 100

    @property
    def lines(self) -> int:
        """How high the terminal is."""
        return max(4, shutil.get_terminal_size((100, 24)).lines)


def stream(file: Any, color: str = "auto") -> Stream:
    """A stream over a file; `color` is `auto`, `always` or `never`."""
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="backslashreplace")
    terminal = file.isatty()
    return Stream(file, terminal, _coloured(terminal, color), terminal and os.environ.get("TERM") != "dumb")


def _coloured(terminal: bool, color: str) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def fill_closed_descriptors() -> None:
    """Open what the caller had closed of standard input, output and error, so that nothing else takes their places."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8")


_claimed: TextIO | None = None


def claim_stdout() -> TextIO:
    """The real standard output; from now on whatever else this process prints goes to standard error.

    A tool that prints, and a program that a tool starts, must not write into the result, not even after it.
    """
    global _claimed
    if _claimed is None:
        sys.stdout.flush()
        place = sys.stdout.fileno()
        own = os.dup(place)
        os.dup2(sys.stderr.fileno(), place)
        _claimed = io.TextIOWrapper(io.BufferedWriter(io.FileIO(own, "w")), sys.stdout.encoding, newline="\n")
    return _claimed


def stdout() -> TextIO:
    """Standard output, claimed or not."""
    return _claimed or sys.stdout


def _write_to_nowhere(file: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)
