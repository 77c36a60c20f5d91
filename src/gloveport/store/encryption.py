"""Encrypts contents in the store: AES-256-GCM, bound to the place of each, with keys that the file holds wrapped.

The file has data keys with numbers, each wrapped by a key from outside it. New contents get the latest. To change the key,
`add_key` adds one, and `encrypt_again` encrypts everything with it in small steps, while hosts run: each of them looks for
the latest in every transaction that writes.
What identifies a content (its digest, its run) is not encrypted, so the audit can be verified without a key.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gloveport.errors import StoreError
from gloveport.store.keys import KEY_BYTES, find_keys, make_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_VARIABLE = "GLOVEPORT_STORE_KEY"
SEALED = b"\x01"
"""The first byte of what is encrypted. No JSON begins with it. Before other contents that do, `contents.py` puts a byte."""
NONCE_BYTES = 12
BATCH_ROWS = 200
_HEAD_BYTES = 5  # the mark, and the number of the key


class Private(NamedTuple):
    """A value of a statement that is encrypted where the store is: its content, and its place."""

    content: bytes
    about: str


class StoreConnection(sqlite3.Connection):
    """A connection to a store, with the data keys that were needed so far."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.latest: int | None = None  # the number of the key for new contents
        self._ciphers: dict[int, AESGCM] = {}

    def look_for_key(self) -> None:
        """Note which key new contents get. Call it in each transaction that writes contents."""
        (self.latest,) = self.execute("SELECT max(number) FROM store_keys").fetchone()

    def seal(self, content: bytes, about: str) -> bytes:
        """Return a content as it is kept: encrypted where the store is. Raise StoreError if the key is missing."""
        if self.latest is None:
            return content
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher(self.latest).encrypt(nonce, content, about.encode())
        return SEALED + self.latest.to_bytes(4) + nonce + sealed

    def unseal(self, kept: Any, about: str) -> bytes:
        """Return a content as it was. Raise StoreError if the key is missing, or if it was changed."""
        if isinstance(kept, str):
            return kept.encode("utf-8", "surrogateescape")
        if not kept.startswith(SEALED):
            return kept
        from cryptography.exceptions import InvalidTag

        number, nonce = int.from_bytes(kept[1:_HEAD_BYTES]), kept[_HEAD_BYTES : _HEAD_BYTES + NONCE_BYTES]
        try:
            return self._cipher(number).decrypt(nonce, kept[_HEAD_BYTES + NONCE_BYTES :], about.encode())
        except (InvalidTag, ValueError):
            raise StoreError(f"a content of the store was changed ({about[:80]})") from None

    def _cipher(self, number: int) -> AESGCM:
        if number not in self._ciphers:
            row = self.execute("SELECT place, wrapped FROM store_keys WHERE number = ?", (number,)).fetchone()
            if row is None:
                raise StoreError("the store has no such data key: it was cut off", code="store-key")
            place, wrapped = row
            self._ciphers[number] = _cipher(_unwrapped(place, wrapped, number))
        return self._ciphers[number]


def encrypt_from_now_on(connection: StoreConnection, place: str) -> None:
    """Encrypt what is written from now on, if the store does not do so already."""
    connection.look_for_key()
    if connection.latest is None:
        add_key(connection, place)


def add_key(connection: StoreConnection, place: str, key: bytes | None = None) -> int:
    """Add a data key, wrapped by the key of a place, and return its number. New contents get it."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    outer = make_key(place) if key is None else key
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.look_for_key()
        number, nonce = (connection.latest or 0) + 1, secrets.token_bytes(NONCE_BYTES)
        wrapped = nonce + AESGCM(outer).encrypt(nonce, secrets.token_bytes(KEY_BYTES), b"key %d" % number)
        row = (number, place, wrapped, time.time())
        connection.execute("INSERT INTO store_keys (number, place, wrapped, created) VALUES (?, ?, ?, ?)", row)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    connection.look_for_key()
    return number


def encrypt_again(connection: StoreConnection) -> tuple[str, ...]:
    """Encrypt everything with the latest key, forget the others, and return where the keys are that wrapped those."""
    connection.look_for_key()
    for table, keys, columns in _TABLES:
        last: tuple[Any, ...] | None = None
        while rows := _rows(connection, table, keys, columns, last):
            last = rows[-1][: len(keys)]
            _write_again(connection, table, keys, columns, rows)
    old = connection.execute("SELECT place FROM store_keys WHERE number < ?", (connection.latest,)).fetchall()
    connection.execute("DELETE FROM store_keys WHERE number < ?", (connection.latest,))
    in_use = {place for (place,) in connection.execute("SELECT place FROM store_keys")}
    return tuple(place for (place,) in old if place not in in_use)


# What is encrypted: the table, what identifies a row, and the columns.
_TABLES = (
    ("payloads", ("digest",), ("content",)),
    ("run_steps", ("run", "number"), ("content",)),
    ("runs", ("id",), ("request", "outcome")),
    ("approvals", ("id",), ("request", "answer")),
    ("plans", ("run",), ("plan",)),
    ("snippets", ("name",), ("body",)),
)


def about(table: str, column: str, *key: Any) -> str:
    """Return the place to which a content is bound: moved elsewhere, it can't be read."""
    return " ".join([table, column, *(one.hex() if isinstance(one, bytes) else str(one) for one in key)])


def _rows(
    connection: StoreConnection, table: str, keys: tuple[str, ...], columns: tuple[str, ...], last: Any
) -> list[tuple[Any, ...]]:
    names = ", ".join(keys)
    after = f"WHERE ({names}) > ({', '.join('?' * len(keys))})" if last is not None else ""
    sql = f"SELECT {names}, {', '.join(columns)} FROM {table} {after} ORDER BY {names} LIMIT {BATCH_ROWS}"
    return connection.execute(sql, last or ()).fetchall()


def _write_again(
    connection: StoreConnection, table: str, keys: tuple[str, ...], columns: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    """Encrypt some rows again, unless they have changed meanwhile: then their writer has the latest key."""
    where = " AND ".join(f"{name} = ?" for name in keys)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for row in rows:
            key, contents = row[: len(keys)], row[len(keys) :]
            for column, kept in zip(columns, contents, strict=True):
                if kept is not None and not _is_latest(connection, kept):
                    place = about(table, column, *key)
                    sealed = connection.seal(connection.unseal(kept, place), place)
                    sql = f"UPDATE {table} SET {column} = ? WHERE {where} AND {column} = ?"
                    connection.execute(sql, (sealed, *key, kept))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_latest(connection: StoreConnection, kept: Any) -> bool:
    head = SEALED + (connection.latest or 0).to_bytes(4)
    return isinstance(kept, bytes) and kept.startswith(head)


def _unwrapped(place: str, wrapped: bytes, number: int) -> bytes:
    for outer in find_keys(place, KEY_VARIABLE):
        for key in _tried(outer, wrapped, number):
            return key
    hint = f"put the right key into {place}, or set {KEY_VARIABLE} to it"
    raise StoreError(f"the key in {place} or {KEY_VARIABLE} is not that of the store", code="store-key", hint=hint)


def _tried(outer: bytes, wrapped: bytes, number: int) -> Iterator[bytes]:
    from cryptography.exceptions import InvalidTag

    try:
        yield _cipher(outer).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], b"key %d" % number)
    except (InvalidTag, ValueError):
        return


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
