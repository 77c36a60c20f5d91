"""Texts that others wrote, made fit to be shown: nothing in them is invisible, endless or in control of a terminal (M3)."""

from __future__ import annotations

import unicodedata

LONGEST = 2000
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str, most: int = LONGEST) -> str:
    """The text without control, zero-width and direction characters, trimmed, cut after `most` characters."""
    seen = text[: 4 * most].strip()
    if not (seen.isascii() and seen.isprintable()):
        seen = "".join(one for one in seen if one in "\n\t" or unicodedata.category(one) not in UNSEEN)
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"
