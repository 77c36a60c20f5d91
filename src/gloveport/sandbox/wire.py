"""Framed messages between host and guest: a four-byte length, then a JSON array.

    guest → host   ["ready", version] · ["call", id, tool, args] · ["call_sync", id, name, args] · ["timer", at]
                   ["log", level, text] · ["emit", value] · ["done", "value" | "error", payload, notes]
    host → guest   ["start", now, setup] · ["timer", now]
                   ["reply", now, id, true, value] · ["reply", now, id, false, error]

The guest is hostile, so decoding is total: any bytes give a frame or a `WireError`, in time and memory proportional to
the bytes received, and never more than the budget allows.
"""

from __future__ import annotations

from typing import Any

import orjson

from gloveport.errors import WireError

HEADER = 4
MAX_DEPTH = 128
PROTOCOL = 1

_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


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
            self._check(len(data) - HEADER)
            return [data[HEADER:]]
        buffer += data
        frames, start = [], 0
        while len(buffer) - start >= HEADER:
            length = int.from_bytes(buffer[start : start + HEADER])
            self._check(length)
            end = start + HEADER + length
            if len(buffer) < end:
                break
            frames.append(bytes(buffer[start + HEADER : end]))
            start = end
        del buffer[:start]
        return frames

    def _check(self, length: int) -> None:
        if length > self._max_frame:
            raise WireError(
                f"a message of {length:,} bytes is over the limit of {self._max_frame:,}", code="frame-too-large"
            )


def pack(payload: bytes) -> bytes:
    """One frame: the payload behind its length."""
    return len(payload).to_bytes(HEADER) + payload


def parse(payload: bytes) -> list[Any]:
    """The JSON array in a frame; anything else is a WireError."""
    if len(payload) > MAX_DEPTH and payload.count(b"[") + payload.count(b"{") > MAX_DEPTH:
        check_depth(payload)
    try:
        message = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise WireError(f"a message is not JSON: {error}") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise WireError("a message is not an array that starts with its kind")
    return message


def check_depth(payload: bytes, limit: int = MAX_DEPTH) -> None:
    """Raise WireError when JSON text is nested deeper than `limit`, before any JSON library sees it.

    Works on whole byte strings at C speed: strings are taken out, then each pass removes the innermost brackets.
    """
    if b"\\" in payload:
        payload = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = payload.translate(_ONE_KIND, _NOT_BRACKETS)
    if b'"' in brackets:
        brackets = b"".join(brackets.split(b'"')[::2])
    for _ in range(limit):
        if not brackets:
            return
        rest = brackets.replace(b"[]", b"")
        if len(rest) == len(brackets):
            raise WireError("a message has brackets that don't match")
        brackets = rest
    if brackets:
        raise WireError(f"a message is nested deeper than {limit} levels", code="bad-value")
