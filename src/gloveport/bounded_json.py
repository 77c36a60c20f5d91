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
    """The value, whole numbers exact at any size; raises ValueError for what is no JSON, Excess for too much of it."""
    check(data)
    try:
        return msgspec.json.decode(data.removeprefix(BOM))
    except RecursionError:
        raise Excess("it is nested too deeply") from None


def check(data: bytes, most_containers: int = MOST_CONTAINERS) -> None:
    """Raises Excess when the text holds more than this process will build.

    Decoders check depth themselves; what small text can multiply is containers, each worth a hundred bytes (B13).
    """
    if _holds(data, most_containers):
        return
    if not _holds(_STRING.sub(b"", data), most_containers):
        raise Excess(f"it holds more than {most_containers:,} lists and objects or {MOST_ITEMS:,} items")


def _holds(data: bytes, most_containers: int) -> bool:
    return data.count(b",") <= MOST_ITEMS and data.count(b"[") + data.count(b"{") <= most_containers
