"""Text that somebody else wrote, shown as data: without characters that hide or reorder other text (M3)."""

from __future__ import annotations

import re
import unicodedata

MAX_TEXT_CHARS = 2000

# Controls, format characters (zero-width, bidi, tags), surrogates and private ones draw nothing or draw something else.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Invisible letters: of category Lo or Mn, and yet nothing to see.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029\x85\x0b\x0c]")
_NOT_PLAIN = re.compile(r"[^ -~\n]")
_BLANK_LINES = re.compile(r"\n{3,}")


def clean(text: object, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the text trimmed, without hidden characters, and cut to `max_chars`; "" for anything that is no text."""
    if not isinstance(text, str):
        return ""
    # Bounded before the loop below: hidden characters in front must not send a text of any size through it.
    text = text[: max_chars * 4]
    if not (text.isascii() and text.isprintable()):
        text = _NOT_PLAIN.sub(_visible, _LINE_BREAK.sub("\n", text).replace("\t", " "))
        text = _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip(" ") for line in text.split("\n")))
    text = text.strip()
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"


def _visible(found: re.Match[str]) -> str:
    letter = found[0]
    return "" if unicodedata.category(letter) in _HIDDEN or letter in _BLANK else letter
