"""The writer of one host: it appends events to the chain of this host, and the steps of its runs, in one thread.

`append` returns at once. `append_now` returns when the event is on the disk, and raises StoreError when it can't be: what
must not happen without a record waits for it. Everything keeps its order, and one commit takes all that waits. While the
file is locked or the disk is full, events that nobody waits for are kept and written later. When there are too many, the
oldest are dropped, and an event `lost` counts them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import orjson

from gloveport.config.store import StoreConfig
from gloveport.errors import StoreError
from gloveport.folders import config_folder
from gloveport.store.contents import StoredContent, keep_contents, split_reply
from gloveport.store.database import hint_for, open_database
from gloveport.store.encryption import KEY_VARIABLE, Private, StoreConnection, about, encrypt_from_now_on
from gloveport.store.keys import new_place
from gloveport.store.process_mark import process_mark
from gloveport.store.retention import apply_now_and_then

MAX_WAITING_ITEMS = 100_000
MAX_WAITING_BYTES = 4 * 1024 * 1024  # of steps, before they are written without delay
MAX_BATCH_ITEMS = 2000
LINK_SECONDS = 60.0
LINKED_CHAINS = 16
RETRY_SECONDS = 1.0
LINGER_SECONDS = 0.1
HEARTBEAT_SECONDS = 10.0
MAINTENANCE_SECONDS = 20.0
GENESIS = bytes(32)
NOTHING: Mapping[str, bytes] = MappingProxyType({})

logger = logging.getLogger("gloveport")


class Statement(NamedTuple):
    """A change of another table, in the same transaction as the events around it."""

    sql: str
    values: Sequence[Any] | Callable[[], Sequence[Any]]  # a function is called in the thread


class RunStep(msgspec.Struct, gc=False):
    """One step of a run, to be repeated when it is resumed: its number, sender, bytes, and the fence of its owner."""

    run: str
    number: int
    sender: str
    content: bytes
    fence: int = 1


Contents = Mapping[str, bytes]
Body = Mapping[str, Any] | Callable[[], tuple[Mapping[str, Any], Contents]]
"""The body of an event. A function is called in the thread, and returns the body and its contents."""


class _Event(msgspec.Struct, gc=False):
    """An event that waits for the thread. `contents` are kept apart from the body, which gets their digests.

    With a `guard`, which must change a row, neither of them happens if it does not.
    """

    kind: str
    body: Body
    at: int
    contents: Contents = NOTHING
    guard: Statement | None = None
    stored: Future[bool] | None = None


class _Barrier(NamedTuple):
    """Whoever waits for it knows that everything before is written."""

    stored: Future[bool]


_Item = _Event | Statement | RunStep | _Barrier


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
    """The chain of this host in the store at a path. Its thread opens the file, and writes in groups."""

    def __init__(self, path: Path, config: StoreConfig | None = None) -> None:
        self.path = path
        self._config = config
        self._maintained = time.monotonic()
        self.chain = secrets.token_hex(8)
        self._connection: StoreConnection | None = None
        self._number, self._hash = 0, GENESIS
        self._waiting: deque[_Item] = deque()
        self._waiting_bytes = 0
        self._put_off: list[Callable[[], None]] = []
        self._lost = 0
        self._lost_runs: set[str] = set()
        self._closing = False
        self._due = False  # what waits is to be written now
        self._notified_by = 0.0  # when the thread will have been woken, unless the event loop was closed
        self._linked = self._seen = 0.0
        self._linked_heads: dict[str, list[Any]] | None = None
        self._durable = False
        self._failing = False
        self.holds_runs: Callable[[], bool] = lambda: False
        self._wake = threading.Condition()  # with a lock that one thread may take twice
        self.append("opened", {"pid": os.getpid()})
        self._thread = threading.Thread(target=self._run, name="gloveport-store", daemon=True)
        self._thread.start()

    def append(self, kind: str, body: Body, contents: Contents = NOTHING) -> None:
        """Record an event soon. The body must be JSON, and must not change; it gets the digests of the contents."""
        self.put(_Event(kind, body, time.time_ns() // 1000, contents))

    async def append_now(
        self, kind: str, body: Mapping[str, Any], contents: Contents = NOTHING, guard: Statement | None = None
    ) -> None:
        """Record an event, and return when it is on the disk; raise StoreError when it can't be.

        `guard` is executed in the same transaction. If it changes no row, the event is refused.
        """
        if not await asyncio.wrap_future(self._append_durably(kind, body, contents, guard)):
            raise StoreError("another process has taken over this run", code="run-taken-over")

    def _append_durably(
        self, kind: str, body: Mapping[str, Any], contents: Contents, guard: Statement | None
    ) -> Future[bool]:
        stored: Future[bool] = Future()
        self._put_now(_Event(kind, body, time.time_ns() // 1000, contents, guard, stored))
        return stored

    def put(self, item: _Item, size: int = 0) -> None:
        """Write a change or a step soon, in order with the events. `size` is that of its content.

        Most calls of a program come here four times, so this takes no lock.
        """
        if self._put_off:
            self._do_put_off()
        if self._closing:
            raise StoreError("the store is closed")
        if len(self._waiting) >= MAX_WAITING_ITEMS:
            self._drop_one()
        self._waiting.append(item)
        self._waiting_bytes += size
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._notify()
        elif time.monotonic() > self._notified_by:
            self._notify_later()

    def put_off(self, work: Callable[[], None]) -> None:
        """Do what puts something soon, and before anything else is put: whoever waits for a run does not wait for this."""
        if self._closing:
            raise StoreError("the store is closed")
        self._put_off.append(work)
        if time.monotonic() > self._notified_by:
            self._notify_later()

    def _do_put_off(self) -> None:
        put_off, self._put_off = self._put_off, []
        for work in put_off:
            work()

    async def flush(self) -> None:
        """Write everything that is queued, and return when it is written; raise StoreError if it can't be."""
        stored: Future[bool] = Future()
        self._put_now(_Barrier(stored))
        await asyncio.wrap_future(stored)

    def has_lost_steps(self, run: str) -> bool:
        """Return whether steps of a run could not be recorded, and forget it."""
        if run not in self._lost_runs:
            return False
        self._lost_runs.discard(run)
        return True

    async def close(self) -> None:
        """Write what waits, and close the file."""
        self._finish()
        await asyncio.to_thread(self._thread.join)

    def _finish(self) -> None:
        self.append("closed", {})
        with self._wake:
            self._closing = True
            self._wake.notify()

    @classmethod
    def record_change(cls, path: Path, kind: str, body: Mapping[str, Any], change: Statement) -> bool:
        """Make a person's change together with its event; return False, and record nothing, if it changes no row.

        For commands: it has a chain of its own, and waits for the disk. Raise StoreError when it can't be recorded.
        """
        log = cls(path)
        try:
            return log._append_durably(kind, body, NOTHING, change).result()
        finally:
            log._finish()
            log._thread.join()

    def _put_now(self, item: _Event | _Barrier) -> None:
        """Let an item that somebody waits for be written now, with everything before it."""
        self._notified_by = math.inf  # so that `put` does not wake the thread later
        self.put(item)
        self._notify()

    def _notify_later(self) -> None:
        """Wake the thread when more events have come: one commit for all of them, after the end of a short run."""
        self._notified_by = time.monotonic() + RETRY_SECONDS
        try:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._notify)
        except RuntimeError:  # the caller has no event loop
            self._notify()

    def _notify(self) -> None:
        self._do_put_off()
        with self._wake:
            self._notified_by = 0.0
            self._waiting_bytes = 0
            self._due = True
            self._wake.notify()

    def _drop_one(self) -> None:
        try:
            gone = self._waiting.popleft()
        except IndexError:  # the thread has taken them all
            return
        if isinstance(gone, RunStep):
            self._lost_runs.add(gone.run)
        elif isinstance(gone, _Event):
            self._lost += 1
        if (waiter := _waiter(gone)) is not None:
            waiter.set_exception(StoreError("the store has been unavailable for too long"))

    # In the thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._closing and not (self._due and self._waiting):
                    if not self._wake.wait(HEARTBEAT_SECONDS if self.holds_runs() else None) and not self._failing:
                        break  # it says that it lives
                batch = self._take_batch()
                self._due = len(batch) == MAX_BATCH_ITEMS
                lost, self._lost = self._lost, 0
            if not batch and self._closing:
                if self._connection is not None:
                    self._connection.close()
                return
            try:
                if self._connection is None:
                    self._connection = self._open()
                refused = self._write(self._connection, batch, lost)
            except sqlite3.Error as error:
                problem = StoreError(f"the store {self.path} can't be written: {error}", hint=hint_for(error))
                self._keep(batch, lost, problem)
            except StoreError as error:
                self._keep(batch, lost, error)
            except Exception as error:  # an item that can't be written: a defect, which must not stop the others
                logger.exception("%d items can't be recorded", len(batch))
                self._drop(batch, lost, StoreError(f"it can't be recorded: {error}"))
            else:
                _tell(batch, refused)
                self._maintain(self._connection)

    def _open(self) -> StoreConnection:
        connection = open_database(self.path)
        try:
            if self._config is not None and self._config.encrypt:
                encrypt_from_now_on(connection, self._config.key or new_place(config_folder(), KEY_VARIABLE))
        except BaseException:
            connection.close()
            raise
        return connection

    def _maintain(self, connection: sqlite3.Connection) -> None:
        """Apply the retention now and then, and at the end, for hosts that live for a moment only."""
        if self._config is None or not (self._closing or time.monotonic() > self._maintained + MAINTENANCE_SECONDS):
            return
        self._maintained = time.monotonic()
        try:
            apply_now_and_then(connection, self._config)
        except sqlite3.Error as error:
            logger.warning("old runs can't be deleted now: %s", error)

    def _take_batch(self) -> list[_Item]:
        batch: list[_Item] = []
        while len(batch) < MAX_BATCH_ITEMS:
            try:
                batch.append(self._waiting.popleft())
            except IndexError:  # nothing is left, or the last was dropped
                break
        return batch

    def _drop(self, batch: Sequence[_Item], lost: int, problem: StoreError) -> None:
        """Give up a batch, and count its events as lost."""
        _refuse(batch, problem)
        with self._wake:
            self._lost += lost + sum(isinstance(item, _Event) for item in batch)
            self._lost_runs.update(item.run for item in batch if isinstance(item, RunStep))

    def _keep(self, batch: Sequence[_Item], lost: int, problem: StoreError) -> None:
        """Refuse the events that somebody waits for, and try the others again later."""
        if not self._failing:
            logger.error("%s; writes are refused, and what else happens is kept in memory", problem.message)
        self._failing = True
        kept = [item for item in batch if _waiter(item) is None]
        _refuse(batch, problem)
        with self._wake:
            self._lost += lost
            if self._closing:
                self._waiting.clear()
                return
            self._waiting.extendleft(reversed(kept))
            self._due = True
            if all(_waiter(item) is None for item in self._waiting):
                self._wake.wait(RETRY_SECONDS)

    def _write(self, connection: StoreConnection, batch: Sequence[_Item], lost: int) -> set[int]:
        """Write a batch in one transaction; return the places of the events that their guards refused."""
        durable = any(isinstance(item, _Event) and item.stored is not None for item in batch)
        if durable != self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        linked, heads, seen = self._linked, self._linked_heads, self._seen
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.look_for_key()
            events, contents, refused = self._apply(connection, batch)
            now = time.time_ns() // 1000
            if lost:
                events.insert(0, _Event("lost", {"events": lost}, now))
            if time.monotonic() > self._seen + HEARTBEAT_SECONDS or self._number == 0:
                row = (self.chain, process_mark(), time.time())
                connection.execute("INSERT OR REPLACE INTO hosts (chain, process, seen) VALUES (?, ?, ?)", row)
                self._seen = time.monotonic()
            ends = any(event.kind == "closed" for event in events)
            if ends or time.monotonic() > self._linked + LINK_SECONDS or self._number == 0:
                self._linked, self._linked_heads = time.monotonic(), self._heads(connection)
                if not ends or self._linked_heads != heads:  # so the others note the end of a host that was killed
                    events.insert(len(events) - ends, _Event("linked", {"heads": self._linked_heads}, now))
            number, before = self._append_chained(connection, events, contents)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._linked, self._linked_heads, self._seen = linked, heads, seen
            raise
        self._number, self._hash, self._failing = number, before, False
        return refused

    def _apply(
        self, connection: StoreConnection, batch: Sequence[_Item]
    ) -> tuple[list[_Event], list[StoredContent], set[int]]:
        """Execute the statements of a batch, and return its events, the contents to keep, and which events are refused."""
        events: list[_Event] = []
        contents: list[StoredContent] = []
        steps: list[tuple[Any, ...]] = []
        refused: set[int] = set()
        for place, item in enumerate(batch):
            if isinstance(item, RunStep):
                head, tail = split_reply(item.content)
                if tail is not None:
                    contents.append(tail)
                name = tail.digest if tail is not None else None
                kept = connection.seal(head, about("run_steps", "content", item.run, item.number))
                steps.append((item.run, item.number, item.sender, kept, name, item.run, self.chain, item.fence))
            elif isinstance(item, Statement):
                self._insert_steps(connection, steps)
                _execute(connection, item)
            elif isinstance(item, _Barrier):
                continue
            elif item.guard is not None and _execute(connection, item.guard) != 1:
                refused.add(place)
            else:
                events.append(item)
        self._insert_steps(connection, steps)
        return events, contents, refused

    @staticmethod
    def _insert_steps(connection: sqlite3.Connection, steps: list[tuple[Any, ...]]) -> None:
        if steps:
            # A host that no longer owns the run, or has lost it meanwhile, can't change what its new owner records.
            owned = "WHERE EXISTS (SELECT 1 FROM runs WHERE id = ? AND host = ? AND fence = ?)"
            connection.executemany(f"INSERT OR IGNORE INTO run_steps SELECT ?, ?, ?, ?, ? {owned}", steps)
            steps.clear()

    def _append_chained(
        self, connection: StoreConnection, events: Sequence[_Event], contents: list[StoredContent]
    ) -> tuple[int, bytes]:
        number, before, rows = self._number, self._hash, []
        for event in events:
            number += 1
            body, given = event.body() if callable(event.body) else (event.body, event.contents)
            if given:
                kept = {name: StoredContent.of(content) for name, content in given.items()}
                contents += kept.values()
                body = {**body, **{name: one.digest.hex() for name, one in kept.items()}}
            text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
            before = event_hash(before, EventPlace(self.chain, number, event.at, event.kind), text)
            rows.append((self.chain, number, event.at, event.kind, text.decode(), before))
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        if contents:
            keep_contents(connection, contents)
        return number, before

    def _heads(self, connection: sqlite3.Connection) -> dict[str, list[Any]]:
        """Return the last event of each of the latest other chains: its number and hash."""
        latest = connection.execute(
            "SELECT chain FROM hosts WHERE chain != ? ORDER BY seen DESC LIMIT ?", (self.chain, LINKED_CHAINS)
        )
        heads: dict[str, list[Any]] = {}
        for (chain,) in latest.fetchall():
            sql = "SELECT number, hash FROM events WHERE chain = ? ORDER BY number DESC LIMIT 1"
            for number, hash_ in connection.execute(sql, (chain,)):
                heads[chain] = [number, hash_.hex()]
        return heads


def _refuse(batch: Sequence[_Item], problem: StoreError) -> None:
    for item in batch:
        if (waiter := _waiter(item)) is not None and waiter.set_running_or_notify_cancel():
            waiter.set_exception(problem)


def _waiter(item: _Item) -> Future[bool] | None:
    return item.stored if isinstance(item, _Event | _Barrier) else None


def _execute(connection: StoreConnection, statement: Statement) -> int:
    """Execute a statement and return the number of rows that it changed."""
    values = statement.values() if callable(statement.values) else statement.values
    kept = [connection.seal(*value) if isinstance(value, Private) else value for value in values]
    return connection.execute(statement.sql, kept).rowcount


def _tell(batch: Sequence[_Item], refused: set[int]) -> None:
    """Tell whoever waits for an event of a batch that it is on the disk, or that it was refused."""
    for place, item in enumerate(batch):
        if (waiter := _waiter(item)) is not None and waiter.set_running_or_notify_cancel():
            waiter.set_result(place not in refused)
