"""Texts that were too long to show at once, kept so that their reader can go on."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any

MAX_RESULTS, MOST_CHARACTERS = 1000, 32 * 1024 * 1024


class ResultStore:
    """The latest texts of one owner's clients, bounded in number and size; ids of 128 random bits can't be guessed."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    def put(self, text: str) -> str:
        """Keep a text; its id."""
        key = secrets.token_hex(16)
        self._texts[key] = text
        self._size += len(text)
        while len(self._texts) > MAX_RESULTS or (self._size > MOST_CHARACTERS and len(self._texts) > 1):
            _, gone = self._texts.popitem(last=False)
            self._size -= len(gone)
        return key

    def get(self, key: Any) -> str | None:
        """The text of this id; None when it was never there, or is there no more."""
        return self._texts.get(key) if isinstance(key, str) else None
