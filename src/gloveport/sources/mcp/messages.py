"""Large messages of a server, decoded without stopping the event loop.

The library decodes messages on the loop, with the interpreter lock held, and validates what is in them. It never gets a
large message: the result of a large reply is decoded here, in a thread and in short steps, and kept until its call claims
it. The library gets a reference in its place.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from gloveport import bounded_json
from gloveport.large_values import LARGE_BYTES, off_loop_if

MAX_KEPT_RESULTS = 16
MAX_RESULT_KEYS = 1000
MAX_LISTED_ITEMS = 1500
"""How many content blocks, resources and the like one result may have: each takes the library 10 to 25 µs to validate."""
MAX_TYPED_VALUES = 10_000
MAX_ERROR_CHARS = 4000
MAX_METHOD_CHARS = 200
MAX_ESCAPES = 5_000_000
REFERENCE = "gloveport/result"


class MessageLimitError(Exception):
    """A message holds more than may be read. The text starts with a verb: `has more than …`."""


async def decode(data: bytes) -> Any:
    """Return the JSON value; raise ValueError for other text, MessageLimitError for too much."""
    if data.count(b"\\") > MAX_ESCAPES:  # they may all be in one text, which is decoded in one step
        raise MessageLimitError(f"has more than {MAX_ESCAPES:,} escaped characters")
    try:
        return await off_loop_if(len(data) > LARGE_BYTES, bounded_json.read, data)
    except bounded_json.JsonLimitError as problem:
        raise MessageLimitError(f"is too much JSON: it {problem}") from None


def to_small(message: Any) -> Any:
    """Return a large message without what makes the library slow; raise MessageLimitError where that is not possible."""
    if not isinstance(message, dict):
        return None
    if isinstance(method := message.get("method"), str):
        # Without parameters: a request gets an error, and a notification that needs some is dropped.
        named = {"jsonrpc": "2.0", "method": method[:MAX_METHOD_CHARS]}
        return {**named, "id": message["id"]} if "id" in message else named
    if isinstance(error := message.get("error"), dict):
        text = error.get("message")
        short = {"code": error.get("code"), "message": text[:MAX_ERROR_CHARS] if isinstance(text, str) else text}
        return {**_envelope(message), "error": short}
    if isinstance(result := message.get("result"), dict) and len(result) > MAX_RESULT_KEYS:
        raise MessageLimitError(f"has more than {MAX_RESULT_KEYS:,} fields in its result")
    return {**_envelope(message), "result": message.get("result")}


def check_result(result: dict[str, Any]) -> None:
    """Raise MessageLimitError for a result that the library would take too long to validate."""
    for key, value in result.items():
        if isinstance(value, list) and len(value) > MAX_LISTED_ITEMS:
            raise MessageLimitError(f"has more than {MAX_LISTED_ITEMS:,} items in `{key[:40]}`")
    if holds_more(result, MAX_TYPED_VALUES):
        raise MessageLimitError(f"has more than {MAX_TYPED_VALUES:,} values")


def holds_more(value: Any, max_values: int) -> bool:
    """Return True when lists and objects hold more values than that; it looks at no more than those."""
    waiting, values = [value], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, (dict, list)):
            values += len(each)
            if values > max_values:
                return True
            waiting += each.values() if isinstance(each, dict) else each
    return False


class KeptResults:
    """The results of large replies, until their calls claim them."""

    def __init__(self) -> None:
        self._results: dict[str, dict[str, Any]] = {}

    async def shortened(self, data: bytes) -> bytes:
        """Return a message for the library: of a large reply, one that refers to its result.

        Raise ValueError for what is not JSON, MessageLimitError for what holds too much.
        """
        if len(data) <= LARGE_BYTES:
            return data
        small = to_small(await decode(data))
        if small is not None and isinstance(small.get("result"), dict):
            token = secrets.token_hex(16)  # the server can't guess it, so it can't refer to the result of another call
            self._results[token] = small["result"]
            small["result"] = {REFERENCE: token}
            while len(self._results) > MAX_KEPT_RESULTS:
                del self._results[next(iter(self._results))]
        return msgspec.json.encode(small)

    def claim(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result that a reference stands for; any other result as it is."""
        token = result.get(REFERENCE)
        return self._results.pop(token, result) if isinstance(token, str) else result


def _envelope(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id")}
