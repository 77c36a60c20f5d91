"""Output for people in a terminal: colours, widths, and text from guests that can't take over the terminal.

A guest can log, emit, return and throw any text. `visible` escapes the characters that a terminal would obey or hide
(escape sequences, OSC 52, bidirectional overrides, zero-width characters) instead of sending them.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TextIO

from gloveport.errors import OptionError

Colour = Literal["red", "green", "yellow", "dim", "bold"]

MAX_CHARACTERS_PER_COLUMN = 8  # accents take no column: a line of a million of them is cut, too
_STEP_CHARS = 256 * 1024
_QUOTED = re.compile(r"`[^`]*`")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SGR: dict[Colour, str] = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

# Control characters except line feed and tab; soft hyphen; invisible joiners, fillers and selectors; direction marks
# and overrides; separators; lone surrogates; tags. The two common emoji selectors (U+FE0E, U+FE0F) stay.
_HIDDEN_RANGES = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_HIDDEN_RANGES}]")


def visible(text: str) -> str:
    """Return the text with every character that a terminal would obey or hide escaped, as `\\x1b` or `\\u{202e}`."""
    return _substitute(_escapes, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Return the same on one line: line feeds and tabs are escaped, too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_json(text: str) -> str:
    """Return JSON text with the same characters as JSON escapes, so that its value stays the same."""
    return _substitute(_json_escapes, text)


def _substitute(escapes: Callable[[], Mapping[int, str]], text: str) -> str:
    """Return the text with each hidden character escaped, in short steps: a result may have millions of characters.

    A table is three times as fast as a function that is called for each character: a log may consist of them.
    """
    steps = (text[at : at + _STEP_CHARS] for at in range(0, len(text), _STEP_CHARS))
    return "".join(step.translate(escapes()) if _HIDDEN.search(step) else step for step in steps)


@cache
def _escapes() -> Mapping[int, str]:
    return {number: f"\\x{number:02x}" if number < 0x80 else f"\\u{{{number:x}}}" for number in _hidden()}


@cache
def _json_escapes() -> Mapping[int, str]:
    units = {number: chr(number).encode("utf-16-be", "surrogatepass") for number in _hidden()}
    return {
        number: "".join(f"\\u{pair[at : at + 2].hex()}" for at in range(0, len(pair), 2)) for number, pair in units.items()
    }


def _hidden() -> Iterator[int]:
    """Yield the code points that `_HIDDEN` matches."""
    for first, last in re.findall("(.)(?:-(.))?", _HIDDEN_RANGES, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)


def cells(text: str) -> int:
    """Return the number of columns that the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def clip(text: str, columns: int) -> str:
    """Return the text, cut and ended with an ellipsis if it takes more columns."""
    most = columns * MAX_CHARACTERS_PER_COLUMN
    if len(text) <= most and cells(text) <= columns:
        return text
    used = 0
    for at, character in enumerate(text[:most]):
        used += _width(character)
        if used > columns - 1:
            return text[:at] + "…"
    return text[:most] + "…"


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def in_time(seconds: float) -> str:
    """Return a duration in the unit that reads best."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.00095 else "<1 ms"
    return f"{seconds:.1f} s" if seconds < 59.95 else f"{int(seconds + 0.5) // 60} min {int(seconds + 0.5) % 60} s"


@dataclass(frozen=True, slots=True)
class Stream:
    """One output: its file, whether it is a terminal, and whether it takes colour."""

    file: TextIO
    terminal: bool
    coloured: bool
    moves: bool = field(default=False)  # whether the cursor can be moved, to redraw lines

    def line(self, text: str = "") -> None:
        """Write one line; a closed pipe is no error."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Write the text as it is; a closed pipe is no error."""
        try:
            self.file.write(text)
            self.file.flush()
        except BrokenPipeError:
            _redirect_to_null(self.file)
        except OSError as error:
            _redirect_to_null(self.file)
            raise OptionError(f"the output can't be written: {error.strerror}", hint="check the free space") from None

    def fold(self, text: str, indent: str = "") -> str:
        """Return the text in lines that fit the terminal and end between words; those after the first are indented.

        What stands between backticks stays on one line, so that a command can be copied.
        """
        if not self.terminal or ("\n" not in text and len(_COLOUR.sub("", text)) <= self.columns):
            return text
        whole = _QUOTED.sub(lambda found: found[0].replace(" ", "\0"), text)
        folded = textwrap.fill(
            whole, self.columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        return folded.replace("\0", " ")

    def paint(self, text: str, *colours: Colour) -> str:
        """Return the text in colours if this output takes them. Colour must never carry meaning that the words don't."""
        if not self.coloured or not colours:
            return text
        return f"\x1b[{';'.join(_SGR[colour] for colour in colours)}m{text}\x1b[0m"

    @property
    def columns(self) -> int:
        """The width of the output; 100 if it is no terminal."""
        return max(20, shutil.get_terminal_size((100, 24)).columns) if self.terminal else 100

    @property
    def lines(self) -> int:
        """The height of the terminal."""
        return max(4, shutil.get_terminal_size((100, 24)).lines)


def stream(file: Any, color: str = "auto") -> Stream:
    """Return a stream that writes to a file; `color` is `auto`, `always` or `never`."""
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
    """Open /dev/null for each closed one of descriptors 0, 1 and 2, so that no other file gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8")


_claimed: TextIO | None = None


def claim_stdout() -> TextIO:
    """Return the real standard output; from now on everything else that this process prints goes to standard error.

    A tool that prints, or a program that a tool starts, must not write into the result, not even after it.
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
    """Return standard output, claimed or not."""
    return _claimed or sys.stdout


def _redirect_to_null(file: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)
