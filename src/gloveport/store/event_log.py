"""The writer of one host: it appends events to the chain of this host, in one thread that groups commits.

`append` returns at once. `append_now` returns when the event is on the disk, and raises StoreError when it can't be: what
must not happen without a record waits for it. Both keep their order. While the file is locked or the disk is full, events
that nobody waits for are kept and written later. When there are too many, the oldest are dropped, and an event `lost`
counts them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gloveport.errors import StoreError
from gloveport.store.database import hint_for, open_database

MAX_WAITING_EVENTS = 100_000
MAX_BATCH_EVENTS = 2000
LINK_SECONDS = 60.0
LINKED_CHAINS = 16
RETRY_SECONDS = 1.0
LINGER_SECONDS = 0.05
GENESIS = bytes(32)


logger = logging.getLogger("gloveport")


class _Event(NamedTuple):
    kind: str
    body: bytes
    at: int
    payloads: Sequence[tuple[bytes, bytes]]
    stored: Future[None] | None


def digest(content: bytes) -> bytes:
    """Return the digest by which an event refers to a payload."""
    return hashlib.sha256(content).digest()


class EventPlace(NamedTuple):
    """The chain of an event, its number there, its time and its kind."""

    chain: str
    number: int
    at: int
    kind: str


def event_hash(before: bytes, place: EventPlace, body: bytes) -> bytes:
    """Return the hash of an event that follows one with the hash `before`."""
    head = "\n".join(map(str, place)).encode()
    return hashlib.sha256(before + len(head).to_bytes(4, "big") + head + body).digest()


class EventLog:
    """The chain of this host in the store at a path. Its thread opens the file, and writes events in groups."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chain = secrets.token_hex(8)
        self._connection: sqlite3.Connection | None = None
        self._number, self._hash = 0, GENESIS
        self._waiting: deque[_Event] = deque()
        self._lost = 0
        self._closing = False
        self._urgent = False
        self._linked = 0.0
        self._durable = False
        self._failing = False
        self._wake = threading.Condition()
        self.append("opened", {"pid": os.getpid()})
        self._thread = threading.Thread(target=self._run, name="gloveport-store", daemon=True)
        self._thread.start()

    def append(self, kind: str, body: Mapping[str, Any], payloads: Sequence[bytes] = ()) -> None:
        """Record an event soon. The body must be JSON, and must refer to the payloads by their digests."""
        self._put(kind, body, payloads, None)

    async def append_now(self, kind: str, body: Mapping[str, Any], payloads: Sequence[bytes] = ()) -> None:
        """Record an event, and return when it is on the disk; raise StoreError when it can't be."""
        stored: Future[None] = Future()
        self._put(kind, body, payloads, stored)
        await asyncio.wrap_future(stored)

    async def close(self) -> None:
        """Write what waits, and close the file."""
        self.append("closed", {})
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    def _put(self, kind: str, body: Mapping[str, Any], payloads: Sequence[bytes], stored: Future[None] | None) -> None:
        text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        event = _Event(kind, text, time.time_ns() // 1000, [(digest(each), each) for each in payloads], stored)
        with self._wake:
            if self._closing:
                raise StoreError("the store is closed")
            if len(self._waiting) >= MAX_WAITING_EVENTS:
                self._drop_one()
            self._waiting.append(event)
            if stored is not None:
                self._urgent = True
            if self._urgent or len(self._waiting) == 1:
                self._wake.notify()

    def _drop_one(self) -> None:
        gone = self._waiting.popleft()
        self._lost += 1
        if gone.stored is not None:
            gone.stored.set_exception(StoreError("the store has been unavailable for too long"))

    # In the thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closing:
                    self._wake.wait()
                if not self._urgent and not self._closing:
                    self._wake.wait(LINGER_SECONDS)  # more events come soon: one commit for all of them
                self._urgent = False
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH_EVENTS))]
                lost, self._lost = self._lost, 0
            if not batch:
                if self._connection is not None:
                    self._connection.close()
                return
            try:
                if self._connection is None:
                    self._connection = open_database(self.path)
                self._write(self._connection, batch, lost)
            except sqlite3.Error as error:
                self._keep(
                    batch, lost, StoreError(f"the store {self.path} can't be written: {error}", hint=hint_for(error))
                )
            except StoreError as error:
                self._keep(batch, lost, error)
            else:
                for event in batch:
                    if event.stored is not None and event.stored.set_running_or_notify_cancel():
                        event.stored.set_result(None)

    def _keep(self, batch: Sequence[_Event], lost: int, problem: StoreError) -> None:
        """Refuse the events that somebody waits for, and try the others again later."""
        if not self._failing:
            logger.error("%s; writes are refused, and what else happens is kept in memory", problem.message)
        self._failing = True
        kept = [event for event in batch if event.stored is None]
        for event in batch:
            if event.stored is not None and event.stored.set_running_or_notify_cancel():
                event.stored.set_exception(problem)
        with self._wake:
            self._lost += lost
            if self._closing:
                self._waiting.clear()
                return
            self._waiting.extendleft(reversed(kept))
            if all(event.stored is None for event in self._waiting):
                self._wake.wait(RETRY_SECONDS)

    def _write(self, connection: sqlite3.Connection, batch: Sequence[_Event], lost: int) -> None:
        events = list(batch)
        if lost:
            events.insert(0, _Event("lost", orjson.dumps({"events": lost}), batch[0].at, (), None))
        durable = any(event.stored is not None for event in events)
        if durable != self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        connection.execute("BEGIN IMMEDIATE")
        try:
            if time.monotonic() > self._linked + LINK_SECONDS or self._number == 0:
                events.append(_Event("linked", orjson.dumps({"heads": self._heads(connection)}), batch[-1].at, (), None))
                self._linked = time.monotonic()
            number, before, rows = self._number, self._hash, []
            for event in events:
                number += 1
                before = event_hash(before, EventPlace(self.chain, number, event.at, event.kind), event.body)
                rows.append((self.chain, number, event.at, event.kind, event.body.decode(), before))
            connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
            payloads = [(name, content, event.at) for event in events for name, content in event.payloads]
            if payloads:
                connection.executemany("INSERT OR IGNORE INTO payloads VALUES (?, ?, ?)", payloads)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._linked = 0.0
            raise
        self._number, self._hash, self._failing = number, before, False

    def _heads(self, connection: sqlite3.Connection) -> dict[str, list[Any]]:
        """Return the last event of each of the latest other chains: its number and hash."""
        latest = connection.execute(
            "SELECT chain, max(number), max(at) AS at FROM events WHERE chain != ? GROUP BY chain ORDER BY at DESC LIMIT ?",
            (self.chain, LINKED_CHAINS),
        ).fetchall()
        heads: dict[str, list[Any]] = {}
        for chain, number, _ in latest:
            row = connection.execute("SELECT hash FROM events WHERE chain = ? AND number = ?", (chain, number))
            heads[chain] = [number, row.fetchone()[0].hex()]
        return heads
