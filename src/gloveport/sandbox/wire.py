"""Framed messages between host and guest: a four-byte length, then a JSON array.

    guest → host   ["ready", version, engine] · ["call", id, tool, args, step?] · ["call_sync", id, name, args]
                   ["timer", at] · ["log", level, text] · ["emit", value] · ["done", "value" | "error", payload, notes]
    host → guest   ["rehearse"] · ["start", now, setup] · ["timer", now]
                   ["reply", now, id, true, value] · ["reply", now, id, false, error]

The guest is hostile, so decoding is total: any bytes yield a frame or a `WireError`, in time and memory proportional to
the bytes received, and never more than the budget allows.
"""

from __future__ import annotations

import contextlib
import re
import struct
from typing import Any, cast

import orjson

from gloveport.bounded_json import JsonLimitError, JsonLimits, read
from gloveport.errors import ToolError, ValueCrossingError, WireError
from gloveport.large_values import is_large
from gloveport.values import MAX_DEPTH, encode, from_wire

HEADER_BYTES = 4
_LENGTH = struct.Struct(">I")
PROTOCOL_VERSION = 1
MAX_LABEL_CHARS = 200  # of the steps around a call

# Beside its size: Python spends up to a microsecond and a hundred bytes on each of these.
TOO_MUCH_HINT = "return a summary, or pass fewer values at a time"
_CALL_HEAD = re.compile(rb'\["call",\d{1,20},"([\w.$#-]{1,200})"')
MESSAGE_LIMITS = JsonLimits(depth=MAX_DEPTH)


class FrameReader:
    """Splits a stream of bytes into frames, with a limit for one frame and one for the whole stream."""

    def __init__(self, max_frame_bytes: int, max_total_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_frame = max_frame_bytes
        self._left = max_total_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes and return the frames that are now complete."""
        self._left -= len(data)
        if self._left < 0:
            raise WireError("the guest sent more than a run may send", code="frame-too-large")
        buffer = self._buffer
        if not buffer and len(data) >= HEADER_BYTES and int.from_bytes(data[:HEADER_BYTES]) == len(data) - HEADER_BYTES:
            if len(data) - HEADER_BYTES > self._max_frame:
                raise self._too_large(len(data) - HEADER_BYTES)
            return [data[HEADER_BYTES:]]
        buffer += data
        frames, at, size = [], HEADER_BYTES, len(buffer)  # `at` is where the next payload begins
        read_length = _LENGTH.unpack_from
        with memoryview(buffer) as whole:
            while at <= size:
                length = read_length(whole, at - HEADER_BYTES)[0]
                if length > self._max_frame:
                    raise self._too_large(length)
                end = at + length
                if size < end:
                    break
                frames.append(bytes(whole[at:end]))
                at = end + HEADER_BYTES
        del buffer[: at - HEADER_BYTES]
        return frames

    def _too_large(self, length: int) -> WireError:
        message = f"a message of {length:,} bytes is over the limit of {self._max_frame:,}"
        return WireError(message, code="frame-too-large")


def pack(payload: bytes) -> bytes:
    """Return a frame: the length, then the payload."""
    return len(payload).to_bytes(HEADER_BYTES) + payload


def decode(payload: bytes) -> list[Any]:
    """Return the message in a frame, with its tagged values decoded; WireError for anything else."""
    message = parse(payload)
    return cast("list[Any]", from_wire(message)) if b'"$' in payload else message


def label_of(call: list[Any]) -> str | None:
    """Return the label of the steps around a call, cut to its maximum; the program wrote it."""
    if len(call) == 4:
        return None
    if type(call[4]) is not str:
        raise WireError("the label of a call is malformed")
    return call[4][:MAX_LABEL_CHARS] or None


def parse(payload: bytes) -> list[Any]:
    """Return the JSON array in a frame; WireError for anything else."""
    try:
        # A text longer than the limit of the depth is checked before any JSON library sees it: a million levels have
        # crashed a host inside one.
        message = orjson.loads(payload) if len(payload) <= MAX_DEPTH else read(payload, MESSAGE_LIMITS, orjson.loads)
    except JsonLimitError as problem:
        raise WireError(f"{_content(payload)} {problem}", code="bad-value", hint=TOO_MUCH_HINT) from None
    except ValueError as problem:
        raise WireError(f"a message is not JSON: {problem}") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise WireError("a message is not an array that starts with its kind")
    return message


def _content(payload: bytes) -> str:
    """Return what a frame of a guest carries, in words, by its first bytes."""
    if payload.startswith(b'["done","value",'):
        return "the result"
    if found := _CALL_HEAD.match(payload):
        return f"the argument list of tools.{found[1].decode()}"
    return "an emitted value" if payload.startswith(b'["emit",') else "a message"


def error_reply(now: int, call_id: int, error: ToolError) -> bytes:
    """Return the event that tells the guest how a call failed; without the error's data if that is too large."""
    fields = {"code": error.code, "message": error.message, "tool": error.tool, "hint": error.hint}
    shown: dict[str, Any] = {name: _sendable(text) for name, text in fields.items() if text}
    shown["retryable"] = error.retryable
    shown["origin"] = error.origin
    if error.status is not None:
        shown["status"] = error.status
    payload = encode(shown)
    if error.data and not is_large(error.data):
        with contextlib.suppress(ValueCrossingError):
            payload = payload[:-1] + b',"data":' + encode(error.data) + b"}"
    return b'["reply",%d,%d,false,%b]' % (now, call_id, payload)


def crossing_error(error: ValueCrossingError, tool: str) -> ToolError:
    """Return the error of a call whose result can't be sent."""
    return ToolError(f"tools.{tool}: {error.message}", code=error.code, tool=tool)


def _sendable(text: str) -> str:
    """Return text that UTF-8 can encode: surrogates, as Python uses for undecodable file names, become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
