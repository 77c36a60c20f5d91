"""Texts that somebody else wrote: shown as data, without characters that hide or reorder things (M3)."""

from __future__ import annotations

import re
import unicodedata

MOST = 2000

# Controls, format characters (zero-width, bidi, tags), surrogates and private ones draw nothing or draw something else.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Invisible letters: category Lo or Mn, yet nothing to see.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_BREAKS = re.compile("\r\n?|[\u2028\u2029\x85\x0b\x0c]")
_STRANGE = re.compile(r"[^ -~\n]")
_EDGES = re.compile(r"[ \t]+(?=\n)")
_GAPS = re.compile(r"\n{3,}")


def clean(text: object, most: int = MOST) -> str:
    """The text trimmed, without hidden characters, at most `most` characters long; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    # Nobody reads beyond the cap; hidden characters before it can't push a text of any size through the loop below.
    text = text[: most * 4]
    if not (text.isascii() and text.isprintable()):
        text = _STRANGE.sub(_seen, _BREAKS.sub("\n", text).replace("\t", " "))
        text = _GAPS.sub("\n\n", _EDGES.sub("", text))
    text = text.strip()
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _seen(found: re.Match[str]) -> str:
    letter = found[0]
    return "" if unicodedata.category(letter) in _HIDDEN or letter in _BLANK else letter
