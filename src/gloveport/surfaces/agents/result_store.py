"""A bounded store for results that are too long for one answer, so that the agent can read on."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any

MAX_RESULTS, MAX_CHARS = 1000, 32 * 1024 * 1024


class ResultStore:
    """Keeps the latest results of one owner's clients, bounded in number and size. Ids are 128 random bits: unguessable."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    def put(self, text: str) -> str:
        """Store a text; return its id."""
        key = secrets.token_hex(16)
        self._texts[key] = text
        self._size += len(text)
        while len(self._texts) > MAX_RESULTS or (self._size > MAX_CHARS and len(self._texts) > 1):
            _, dropped = self._texts.popitem(last=False)
            self._size -= len(dropped)
        return key

    def get(self, key: Any) -> str | None:
        """Return the text with this id; None if there is none, or if it was dropped for newer ones."""
        return self._texts.get(key) if isinstance(key, str) else None
