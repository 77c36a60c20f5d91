"""Contents in the store: arguments, results, programs. Each is kept once, by its digest, compressed where that pays."""

from __future__ import annotations

import hashlib
import re
import time
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from gloveport.store.encryption import StoreConnection, about

PLAIN, COMPRESSED = 0, 1
MIN_COMPRESSED_BYTES = 1024
MIN_SPLIT_BYTES = 4096
TOUCH_SECONDS = 3600  # between two notes of the use of a content
_REPLY_HEAD = re.compile(rb'\["reply",\d+,\d+,true,')


def digest(content: bytes) -> bytes:
    """Return the digest by which events and steps refer to a content."""
    return hashlib.sha256(content).digest()


class StoredContent(NamedTuple):
    """A content as it is kept: the digest of what it was, and its form."""

    digest: bytes
    content: bytes
    form: int

    @classmethod
    def of(cls, content: bytes) -> StoredContent:
        """Return the form of a content in the store."""
        if len(content) >= MIN_COMPRESSED_BYTES:
            compressed = zlib.compress(content, 1)
            if len(compressed) < len(content) * 3 // 4:
                return cls(digest(content), compressed, COMPRESSED)
        return cls(digest(content), content, PLAIN)


def restored(content: bytes, form: int) -> bytes | None:
    """Return a content as it was; None for one that was damaged."""
    if form == PLAIN:
        return content
    try:
        return zlib.decompress(content)
    except zlib.error:
        return None


def keep_contents(connection: StoreConnection, contents: Iterable[StoredContent]) -> None:
    """Write contents into the store. Of one that is there already, only the time of its last use is noted now and then."""
    at = time.time_ns() // 1000
    rows = [
        (one.digest, connection.seal(one.content, about("payloads", "content", one.digest)), at, one.form)
        for one in contents
    ]
    used = f"DO UPDATE SET at = excluded.at WHERE excluded.at > at + {TOUCH_SECONDS * 1_000_000}"
    connection.executemany(
        f"INSERT INTO payloads (digest, content, at, form) VALUES (?, ?, ?, ?) ON CONFLICT (digest) {used}", rows
    )


def split_reply(step: bytes) -> tuple[bytes, StoredContent | None]:
    """Return the head of a large reply, and its result apart: the event of the call refers to the same content."""
    if len(step) < MIN_SPLIT_BYTES or not (found := _REPLY_HEAD.match(step)):
        return step, None
    return step[: found.end()], StoredContent.of(step[found.end() : -1])


def join_reply(head: bytes, tail: bytes) -> bytes:
    """Return a step that was split."""
    return head + tail + b"]"
