"""The bounds of a JSON text that a client sends, checked before a library parses it on the event loop (M13).

Within them, parsing and validating a request holds the event loop for less than 50 ms of CPU time. The size of a text costs
little. The number of its values costs more, and so do long numbers: to read one takes time quadratic in its digits.
"""

from __future__ import annotations

from typing import Any

import orjson

from gloveport import bounded_json
from gloveport.large_values import LARGE_BYTES, off_loop_if

MAX_REQUEST_BYTES = 4 * 1024 * 1024
MAX_REQUEST_DEPTH = 64
REQUEST_LIMITS = bounded_json.JsonLimits(containers=10_000, items=25_000, depth=MAX_REQUEST_DEPTH)
RESULT_LIMITS = bounded_json.JsonLimits(depth=MAX_REQUEST_DEPTH)  # of a value that a caller's tool returns
MAX_NUMBER_DIGITS = 64
MAX_MESSAGE_MEMBERS = 8  # JSON-RPC defines six

_DIGITS = bytes(48 if 48 <= byte < 58 else 32 for byte in range(256))
_OVERLONG_NUMBER = b"0" * (MAX_NUMBER_DIGITS + 1)


async def read_message(data: bytes) -> dict[str, Any]:
    """Return a JSON-RPC message. Raise ValueError, with a text that begins with a verb, for anything else or too much."""
    return await off_loop_if(len(data) > LARGE_BYTES, _read_message, data)


async def read_document(data: bytes) -> dict[str, Any]:
    """Return a JSON object. Raise ValueError, with a text that begins with a verb, for anything else or too much."""
    return await off_loop_if(len(data) > LARGE_BYTES, _read_document, data)


async def read_host_message(data: bytes) -> dict[str, Any]:
    """Return a message of a host, a JSON object. One that starts a run is bounded as a request; a result may hold more."""
    return await off_loop_if(len(data) > LARGE_BYTES, _read_host_message, data)


def _read_host_message(data: bytes) -> dict[str, Any]:
    try:
        if _has_overlong_number(data) and _has_overlong_number(_without_strings(data)):
            raise ValueError(f"has a number of more than {MAX_NUMBER_DIGITS} digits")
        message = bounded_json.read(data, RESULT_LIMITS)
    except (bounded_json.JsonLimitError, RecursionError) as problem:
        raise ValueError(str(problem)) from None
    if not isinstance(message, dict):
        raise ValueError("is not a JSON object")
    return _read_document(data) if message.get("type") == "run" else message


def _read_document(data: bytes) -> dict[str, Any]:
    document = _read_json(data)
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")
    return document


def _read_json(data: bytes) -> Any:
    try:
        check_json(data)
        return orjson.loads(data)
    except (bounded_json.JsonLimitError, RecursionError) as problem:
        raise ValueError(str(problem)) from None
    except ValueError as problem:
        raise ValueError(f"is not JSON: {problem}") from None


def _read_message(data: bytes) -> dict[str, Any]:
    message = _read_json(data)
    # The library tries each kind of message in turn, and describes in full why it is none of them.
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or len(message) > MAX_MESSAGE_MEMBERS:
        raise ValueError("is not a JSON-RPC message")
    if not all(isinstance(message.get(name, {}), dict) for name in ("params", "result", "error")):
        raise ValueError("is not a JSON-RPC message: its params must be an object")
    return message


def check_json(data: bytes) -> None:
    """Raise JsonLimitError when a text exceeds a bound, ValueError when its brackets don't match."""
    if len(data) > MAX_REQUEST_BYTES:
        raise bounded_json.JsonLimitError(f"has more than {MAX_REQUEST_BYTES:,} bytes")
    bounded_json.check(data, REQUEST_LIMITS)
    if _has_overlong_number(data) and _has_overlong_number(_without_strings(data)):
        raise bounded_json.JsonLimitError(f"has a number of more than {MAX_NUMBER_DIGITS} digits")


def _has_overlong_number(text: bytes) -> bool:
    return _OVERLONG_NUMBER in text.translate(_DIGITS)


def _without_strings(data: bytes) -> bytes:
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(data.split(b'"')[::2])
