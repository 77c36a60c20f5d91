"""JSON text that came from outside → a value, bounded in what it may make this process hold."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MOST_CONTAINERS = 500_000
MOST_ITEMS = 5_000_000
BOM = b"\xef\xbb\xbf"

# It matches at every quote, closed or not, and gives nothing back: its time grows with the text and no faster.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)


class Excess(Exception):
    """JSON that holds, or nests, more than this process will build."""


def read(data: bytes) -> Any:
    """The value, whole numbers exact at any size; raises ValueError when it is no JSON, Excess when it is too much of it.

    The decoder checks depth itself; what small text can multiply is containers, each worth a hundred bytes (B13).
    """
    if data.count(b",") > MOST_ITEMS or data.count(b"[") + data.count(b"{") > MOST_CONTAINERS:
        bare = _STRING.sub(b"", data)
        if bare.count(b",") > MOST_ITEMS or bare.count(b"[") + bare.count(b"{") > MOST_CONTAINERS:
            raise Excess(f"it holds more than {MOST_CONTAINERS:,} lists and objects or {MOST_ITEMS:,} items")
    try:
        return msgspec.json.decode(data.removeprefix(BOM))
    except RecursionError:
        raise Excess("it is nested too deeply") from None
