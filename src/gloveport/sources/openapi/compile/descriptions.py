"""Descriptions of operations: the summary, then what the description adds; markup made plain."""

from __future__ import annotations

import html
import re

from gloveport.sources.texts import clean

MOST = 1000

_TAGS = re.compile(
    r"</?(?:p|br|a|b|i|em|strong|code|pre|ul|ol|li|div|span|h[1-6]|table|thead|tbody|tr|td|th|hr|img|sup|sub|blockquote)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"<(?:/p|br\s*/?|/li|/div|/h[1-6]|/tr)>", re.IGNORECASE)


def describe(summary: object, description: object, fallback: str) -> str:
    """What an operation does, in plain text."""
    short, long = plain(summary), plain(description)
    if not short or long.lower().startswith(short.lower().rstrip(".")):
        return long or short or fallback
    if not long:
        return short
    return clean(f"{short}\n\n{long}", MOST)


def plain(text: object) -> str:
    """The text without HTML's markup and without hidden characters."""
    if not isinstance(text, str) or not text:
        return ""
    text = text[: MOST * 4]
    if "<" in text:
        text = _TAGS.sub("", _BLOCK.sub("\n", text))
    # Unfolded before it is cleaned: `&#x202e;` would be one of the characters that reorder a line.
    return clean(html.unescape(text) if "&" in text else text, MOST)
