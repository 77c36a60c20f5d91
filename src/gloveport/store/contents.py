"""Contents in the store: arguments, results, programs. Each is kept once, by its digest, compressed where that pays."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from gloveport.large_values import sha256
from gloveport.store.encryption import SEALED, StoreConnection, about

PLAIN, COMPRESSED, BEHIND_A_BYTE = 0, 1, 2
MIN_COMPRESSED_BYTES = 1024
MIN_SPLIT_BYTES = 4096
TOUCH_SECONDS = 3600  # between two notes of the use of a content
REPLY_HEAD = re.compile(rb'\["reply",\d+,(\d+),true,')
_SCRIPT_HEAD = re.compile(rb'\["start",\d+,\{"modules":\{"builtins":\[[^][]{0,4096}\],"script_bytes":(\d{1,12}),"script":')
_NO_SCRIPT = b"null"


def digest(content: bytes) -> bytes:
    """Return the digest by which events and steps refer to a content."""
    return sha256(content)


class StoredContent(NamedTuple):
    """A content that is to be kept, and its digest. It is compressed where that pays, if it may be."""

    digest: bytes
    content: bytes
    may_compress: bool = True

    @classmethod
    def of(cls, content: bytes) -> StoredContent:
        """Return a content with its digest."""
        return cls(digest(content), content)

    def kept(self) -> tuple[bytes, int]:
        """Return the content as the store has it, and its form."""
        if self.may_compress and len(self.content) >= MIN_COMPRESSED_BYTES:
            compressed = zlib.compress(self.content, 1)
            if len(compressed) < len(self.content) * 3 // 4:
                return compressed, COMPRESSED
        if self.content.startswith(SEALED):  # a file of a session may begin as what is encrypted does
            return b"\0" + self.content, BEHIND_A_BYTE
        return self.content, PLAIN


def restored(content: bytes, form: int) -> bytes | None:
    """Return a content as it was; None for one that was damaged."""
    if form == PLAIN:
        return content
    if form == BEHIND_A_BYTE:
        return content[1:]
    try:
        return zlib.decompress(content)
    except zlib.error:
        return None


def keep_contents(connection: StoreConnection, contents: Iterable[StoredContent]) -> None:
    """Write contents into the store. Of one that is there already, only the time of its last use is noted now and then."""
    at = time.time_ns() // 1000
    old = at - TOUCH_SECONDS * 1_000_000
    rows = []
    for one in contents:
        if len(one.content) >= MIN_COMPRESSED_BYTES and _is_there(connection, one.digest, at, old):
            continue  # neither compressed nor encrypted again
        kept, form = one.kept()
        rows.append((one.digest, connection.seal(kept, about("payloads", "content", one.digest)), at, form, old))
    connection.executemany(
        "INSERT INTO payloads (digest, content, at, form) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET at = excluded.at WHERE at < ?",
        rows,
    )


def _is_there(connection: StoreConnection, digest: bytes, at: int, old: int) -> bool:
    """Return whether a content is kept, and note its use."""
    row = connection.execute("SELECT at FROM payloads WHERE digest = ?", (digest,)).fetchone()
    if row is not None and row[0] < old:
        connection.execute("UPDATE payloads SET at = ? WHERE digest = ?", (at, digest))
    return row is not None


def split_step(step: bytes) -> tuple[bytes, StoredContent | None]:
    """Return a step without the large content in it, and that content apart, which is kept once.

    It is the result in a reply, to which the event of the call refers too, or the script in the start of a run that imports
    modules.
    """
    if len(step) < MIN_SPLIT_BYTES:
        return step, None
    if found := REPLY_HEAD.match(step):
        return step[: found.end()], StoredContent.of(step[found.end() : -1])
    if found := _SCRIPT_HEAD.match(step):
        begin, end = found.end(), found.end() + int(found[1])
        if end < len(step):
            return step[:begin] + _NO_SCRIPT + step[end:], StoredContent.of(step[begin:end])
    return step, None


def join_step(rest: bytes, content: bytes) -> bytes:
    """Return a step that was split."""
    if found := _SCRIPT_HEAD.match(rest):
        return rest[: found.end()] + content + rest[found.end() + len(_NO_SCRIPT) :]
    return rest + content + b"]"
