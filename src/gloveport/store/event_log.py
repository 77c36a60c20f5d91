"""The writer of one host: it appends events to the chain of this host, and the steps of its runs, in one thread.

`append` returns at once. `append_now` returns when the event is on the disk, and raises StoreError when it can't be: what
must not happen without a record waits for it. Everything keeps its order, and one commit takes all that waits. While the
file is locked or the disk is full, events that nobody waits for are kept and written later. When there are too many, or
they are too large, the oldest are dropped, and an event `lost` counts them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import orjson

from gloveport.config.store import StoreConfig
from gloveport.errors import StoreError
from gloveport.folders import config_folder
from gloveport.store.contents import StoredContent, keep_contents, split_step
from gloveport.store.database import hint_for, open_database
from gloveport.store.encryption import KEY_VARIABLE, Private, StoreConnection, about, encrypt_from_now_on
from gloveport.store.keys import new_place
from gloveport.store.log_items import (
    NOTHING,
    Barrier,
    Contents,
    Item,
    LateEvent,
    LogEvent,
    RunStep,
    Statement,
    size_of,
    waits_for,
)
from gloveport.store.process_mark import process_mark
from gloveport.store.retention import apply_now_and_then
from gloveport.store.verification import GENESIS, EventPlace, event_hash

MAX_WAITING_ITEMS = 100_000
MAX_WAITING_BYTES = 4 * 1024 * 1024  # of steps, before they are written without delay
MAX_KEPT_BYTES = 128 * 1024 * 1024  # of steps and contents, while nothing can be written
MAX_UNCHECKED_BYTES = 4096
MAX_BATCH_ITEMS = 2000
LINK_SECONDS = 60.0
LINKED_CHAINS = 16
RETRY_SECONDS = 1.0
LINGER_SECONDS = 0.1
HEARTBEAT_SECONDS = 10.0
MAINTENANCE_SECONDS = 20.0

logger = logging.getLogger("gloveport")


class EventLog:
    """The chain of this host in the store at a path. Its thread opens the file, and writes in groups."""

    def __init__(self, path: Path, config: StoreConfig | None = None) -> None:
        self.path = path
        self._config = config
        self._maintained = time.monotonic()
        self.chain = secrets.token_hex(8)
        self._connection: StoreConnection | None = None
        self._number, self._hash = 0, GENESIS
        self._waiting: deque[Item] = deque()
        self._waiting_bytes = 0
        self._put_off: list[Callable[[], None]] = []
        self._lost = 0
        self._lost_runs: set[str] = set()
        self._closing = False
        self._notified_by = 0.0  # when the thread will have been woken, unless the event loop was closed
        self._linked = self._seen = 0.0
        self._linked_heads: dict[str, list[Any]] | None = None
        self._durable = False
        self._failing = False
        self._is_due = False  # in the thread: it writes on without being woken
        self.holds_runs: Callable[[], bool] = lambda: False
        self._wake: SimpleQueue[None] = SimpleQueue()  # an entry wakes the thread: a quarter of the time of a condition
        self.append("opened", {"pid": os.getpid()})
        self._thread = threading.Thread(target=self._run, name="gloveport-store", daemon=True)
        self._thread.start()

    def append(self, kind: str, body: Mapping[str, Any], contents: Contents = NOTHING) -> None:
        """Record an event soon. The body must be JSON, and must not change; it gets the digests of the contents."""
        self.put(LogEvent(time.time_ns(), kind, body, contents))

    async def append_now(
        self, kind: str, body: Mapping[str, Any], contents: Contents = NOTHING, guard: Statement | None = None
    ) -> None:
        """Record an event, and return when it is on the disk; raise StoreError when it can't be.

        `guard` is executed in the same transaction. If it changes no row, the event is refused.
        """
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._put_now(LogEvent(time.time_ns(), kind, body, contents, guard, _answer_to(stored)))
        if not await stored:
            raise StoreError("another process has taken over this run", code="run-taken-over")

    def put(self, item: Item, size: int = 0) -> None:
        """Write a change or a step soon, in order with the events. `size` is that of its content. This takes no lock."""
        if self._put_off:
            self._do_put_off()
        if self._closing:
            raise StoreError("the store is closed")
        while len(self._waiting) >= MAX_WAITING_ITEMS:
            self._drop_one()
        self._waiting.append(item)
        self._waiting_bytes += size
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._notify()
        elif time.monotonic() > self._notified_by:
            self._notify_later()

    def put_next(self, item: RunStep | LateEvent, size: int = 0) -> None:
        """Write what follows a step that was put, such as the reply to a call: four items of nearly every call.

        A step of the guest comes before each few of them, so they leave the bounds and the wake-up to `put`.
        """
        if self._notified_by and size <= MAX_UNCHECKED_BYTES and not (self._closing or self._put_off):
            self._waiting.append(item)
            self._waiting_bytes += size
        else:
            self.put(item, size)

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
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._put_now(Barrier(_answer_to(stored)))
        await stored

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
        self._closing = True
        self._wake.put(None)

    @classmethod
    def record_change(cls, path: Path, kind: str, body: Mapping[str, Any], change: Statement) -> bool:
        """Make a person's change together with its event; return False, and record nothing, if it changes no row.

        For commands: it has a chain of its own, and waits for the disk. Raise StoreError when it can't be recorded.
        """
        log, stored = cls(path), Future[bool]()
        try:
            log._put_now(LogEvent(time.time_ns(), kind, body, NOTHING, change, partial(_settle, stored)))
            return stored.result()
        finally:
            log._finish()
            log._thread.join()

    def _put_now(self, item: LogEvent | Barrier) -> None:
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
        self._notified_by = 0.0
        self._waiting_bytes = 0
        self._wake.put(None)

    def _drop_one(self) -> int:
        """Drop the oldest item, and return about how many bytes it held."""
        try:
            gone = self._waiting.popleft()
        except IndexError:  # the thread has taken them all
            return 0
        if isinstance(gone, RunStep):
            self._lost_runs.add(gone.run)
        elif isinstance(gone, LateEvent):
            self._lost += 1
        _answer([gone], StoreError("the store has been unavailable for too long"))
        return size_of(gone)

    # In the thread.

    def _run(self) -> None:
        while True:
            if not (self._is_due or self._closing):
                is_woken = self._waits(HEARTBEAT_SECONDS if self.holds_runs() else None)
                if is_woken and not self._waiting and not self._closing:
                    continue  # otherwise it says that it lives
            batch = self._take_batch()
            self._is_due = len(batch) == MAX_BATCH_ITEMS
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
                _answer(batch, refused=refused)
                self._maintain(self._connection)

    def _waits(self, seconds: float | None) -> bool:
        """Wait until something is to be written now; return False after that time."""
        try:
            self._wake.get(timeout=seconds)
        except Empty:
            return False
        return True

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

    def _take_batch(self) -> list[Item]:
        batch: list[Item] = []
        while len(batch) < MAX_BATCH_ITEMS:
            try:
                batch.append(self._waiting.popleft())
            except IndexError:  # nothing is left, or the last was dropped
                break
        return batch

    def _drop(self, batch: Sequence[Item], lost: int, problem: StoreError) -> None:
        """Give up a batch, and count its events as lost."""
        _answer(batch, problem)
        self._lost += lost + sum(isinstance(item, LateEvent) for item in batch)
        self._lost_runs.update(item.run for item in batch if isinstance(item, RunStep))

    def _keep(self, batch: Sequence[Item], lost: int, problem: StoreError) -> None:
        """Refuse the events that somebody waits for, and try the others again later."""
        if self._closing:
            logger.error("%s; what was not written yet is not recorded", problem.message)
        elif not self._failing:
            logger.error("%s; writes are refused, and what else happens is kept in memory", problem.message)
        self._failing = True
        kept = [item for item in batch if waits_for(item) is None]
        _answer(batch, problem)
        self._lost += lost
        if self._closing:
            self._waiting.clear()
            return
        self._waiting.extendleft(reversed(kept))
        excess = sum(map(size_of, tuple(self._waiting))) - MAX_KEPT_BYTES
        while excess > 0 and self._waiting:
            excess -= self._drop_one()
        if all(waits_for(item) is None for item in tuple(self._waiting)):
            self._waits(RETRY_SECONDS)
        self._is_due = bool(self._waiting)

    def _write(self, connection: StoreConnection, batch: Sequence[Item], lost: int) -> set[int]:
        """Write a batch in one transaction; return the places of the events that their guards refused."""
        durable = any(isinstance(item, LogEvent) and item.answer is not None for item in batch)
        if durable != self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        linked, heads, seen = self._linked, self._linked_heads, self._seen
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.look_for_key()
            events, contents, refused = self._apply(connection, batch)
            now = time.time_ns()
            if lost:
                events.insert(0, LogEvent(now, "lost", {"events": lost}))
            if time.monotonic() > self._seen + HEARTBEAT_SECONDS or self._number == 0:
                row = (self.chain, process_mark(), time.time())
                connection.execute("INSERT OR REPLACE INTO hosts (chain, process, seen) VALUES (?, ?, ?)", row)
                self._seen = time.monotonic()
            ends = any(isinstance(event, LogEvent) and event.kind == "closed" for event in events)
            if ends or time.monotonic() > self._linked + LINK_SECONDS or self._number == 0:
                self._linked, self._linked_heads = time.monotonic(), self._heads(connection)
                if not ends or self._linked_heads != heads:  # so the others note the end of a host that was killed
                    events.insert(len(events) - ends, LogEvent(now, "linked", {"heads": self._linked_heads}))
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
        self, connection: StoreConnection, batch: Sequence[Item]
    ) -> tuple[list[LateEvent], list[StoredContent], set[int]]:
        """Execute the statements of a batch, and return its events, the contents to keep, and which events are refused."""
        events: list[LateEvent] = []
        contents: list[StoredContent] = []
        steps: list[tuple[Any, ...]] = []
        refused: set[int] = set()
        for place, item in enumerate(batch):
            if isinstance(item, RunStep):
                head, tail = split_step(item.content)
                if tail is not None:
                    contents.append(tail)
                name = tail.digest if tail is not None else None
                kept = connection.seal(head, about("run_steps", "content", item.run, item.number))
                steps.append((item.run, item.number, item.sender, kept, name, item.run, self.chain, item.fence))
            elif isinstance(item, Statement):
                self._insert_steps(connection, steps)
                _execute(connection, item)
            elif isinstance(item, Barrier):
                continue
            elif isinstance(item, LogEvent) and item.guard is not None and _execute(connection, item.guard) != 1:
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
        self, connection: StoreConnection, events: Sequence[LateEvent], contents: list[StoredContent]
    ) -> tuple[int, bytes]:
        number, before, rows = self._number, self._hash, []
        for event in events:
            number += 1
            kind, body, given = event.parts()
            if given:
                kept = {name: StoredContent.of(content) for name, content in given.items()}
                contents += kept.values()
                body = {**body, **{name: one.digest.hex() for name, one in kept.items()}}
            text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
            place = EventPlace(self.chain, number, event.at // 1000, kind)
            before = event_hash(before, place, text)
            rows.append((*place, text.decode(), before))
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


def _answer(batch: Sequence[Item], problem: StoreError | None = None, refused: Container[int] = ()) -> None:
    """Tell whoever waits for an event of a batch that it is on the disk, that it was refused, or what the problem is."""
    for place, item in enumerate(batch):
        if (answer := waits_for(item)) is not None:
            answer(place not in refused if problem is None else problem)


def _answer_to(stored: asyncio.Future[bool]) -> Callable[[bool | StoreError], None]:
    """Return what gives a future of an event loop its result, from the thread."""
    loop = stored.get_loop()

    def answer(result: bool | StoreError) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(_settle, stored, result)

    return answer


def _settle(stored: asyncio.Future[bool] | Future[bool], result: bool | StoreError) -> None:
    if stored.done():  # whoever waited was cancelled
        return
    if isinstance(result, StoreError):
        stored.set_exception(result)
    else:
        stored.set_result(result)


def _execute(connection: StoreConnection, statement: Statement) -> int:
    """Execute a statement and return the number of rows that it changed."""
    values = statement.values() if callable(statement.values) else statement.values
    kept = [connection.seal(*value) if isinstance(value, Private) else value for value in values]
    return connection.execute(statement.sql, kept).rowcount
