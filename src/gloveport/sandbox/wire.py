"""Framed messages between host and guest: a four-byte length, then a JSON array.

    guest → host   ["ready", version] · ["call", id, tool, args] · ["call_sync", id, name, args] · ["timer", at]
                   ["log", level, text] · ["emit", value] · ["done", "value" | "error", payload, notes]
    host → guest   ["rehearse"] · ["start", now, setup] · ["timer", now]
                   ["reply", now, id, true, value] · ["reply", now, id, false, error]

The guest is hostile, so decoding is total: any bytes give a frame or a `WireError`, in time and memory proportional to
the bytes received, and never more than the budget allows.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from gloveport.errors import WireError
from gloveport.values import MAX_DEPTH

HEADER = 4
PROTOCOL = 1

# What a message may hold beside its size: Python spends up to a microsecond and a hundred bytes on each.
MAX_CONTAINERS = 100_000
MAX_ITEMS = 2_000_000
FEW_QUOTES = 1000

_NOT_STRUCTURE = bytes(sorted(set(range(256)) - set(b'[]{},"')))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_STRING = re.compile(rb'"[^"]*"')
_STRING_IN_JSON = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class FrameReader:
    """Cuts a stream of bytes into frames, under a budget for one frame and one for the whole stream."""

    def __init__(self, max_frame_bytes: int, max_total_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_frame = max_frame_bytes
        self._left = max_total_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete once `data` has arrived."""
        self._left -= len(data)
        if self._left < 0:
            raise WireError("the guest sent more than a run may send", code="frame-too-large")
        buffer = self._buffer
        if not buffer and len(data) >= HEADER and int.from_bytes(data[:HEADER]) == len(data) - HEADER:
            if len(data) - HEADER > self._max_frame:
                raise self._too_large(len(data) - HEADER)
            return [data[HEADER:]]
        buffer += data
        frames, start = [], 0
        while len(buffer) - start >= HEADER:
            length = int.from_bytes(buffer[start : start + HEADER])
            if length > self._max_frame:
                raise self._too_large(length)
            end = start + HEADER + length
            if len(buffer) < end:
                break
            with memoryview(buffer) as whole:
                frames.append(bytes(whole[start + HEADER : end]))
            start = end
        del buffer[:start]
        return frames

    def _too_large(self, length: int) -> WireError:
        message = f"a message of {length:,} bytes is over the limit of {self._max_frame:,}"
        return WireError(message, code="frame-too-large")


def pack(payload: bytes) -> bytes:
    """One frame: the payload behind its length."""
    return len(payload).to_bytes(HEADER) + payload


def parse(payload: bytes) -> list[Any]:
    """The JSON array in a frame; anything else is a WireError."""
    if len(payload) > MAX_DEPTH:
        check_structure(payload)
    try:
        message = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise WireError(f"a message is not JSON: {error}") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise WireError("a message is not an array that starts with its kind")
    return message


def check_structure(payload: bytes, depth: int = MAX_DEPTH) -> None:
    """Raise WireError when JSON text holds too much or is nested too deeply, before any JSON library sees it.

    Works on whole byte strings at C speed. Counting brackets in strings too is quick and nearly always enough.
    """
    containers = payload.count(b"[") + payload.count(b"{")
    if containers <= depth and payload.count(b",") <= MAX_ITEMS:
        return
    quotes = payload.count(b'"')
    if quotes > 2 * MAX_ITEMS:
        raise WireError(f"a message holds more than {MAX_ITEMS:,} strings", code="bad-value")
    if quotes <= FEW_QUOTES:  # without the copies that follow, which a frame of full size would have the host pay for
        _check_counts(payload, _STRING_IN_JSON)
    structure = _structure(payload)
    _check_counts(structure, None)
    _check_depth(structure.replace(b",", b""), depth)


def _check_counts(text: bytes, strings: re.Pattern[bytes] | None) -> None:
    """Raise WireError when text holds too many brackets or commas outside its `strings`."""
    containers, items = text.count(b"[") + text.count(b"{"), text.count(b",")
    for found in strings.finditer(text) if strings else ():
        start, end = found.span()
        containers -= text.count(b"[", start, end) + text.count(b"{", start, end)
        items -= text.count(b",", start, end)
    if containers > MAX_CONTAINERS or items > MAX_ITEMS:
        what = f"{MAX_CONTAINERS:,} lists and objects" if containers > MAX_CONTAINERS else f"{MAX_ITEMS:,} items"
        raise WireError(f"a message holds more than {what}", code="bad-value")


def _structure(payload: bytes) -> bytes:
    """The brackets (of one kind) and commas of JSON text, those in strings left out."""
    if b"\\" in payload:
        payload = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = payload.translate(_ONE_KIND, _NOT_STRUCTURE)
    return _STRING.sub(b"", structure) if b'"' in structure else structure


def _check_depth(brackets: bytes, depth: int) -> None:
    for _ in range(depth):
        if not brackets:
            return
        rest = brackets.replace(b"[]", b"")  # the innermost ones: each pass takes one level off
        if len(rest) == len(brackets):
            raise WireError("a message has brackets that don't match")
        brackets = rest
    if brackets:
        raise WireError(f"a message is nested deeper than {depth} levels", code="bad-value")
