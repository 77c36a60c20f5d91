"""Deletes old runs, and what only they refer to, so that the store keeps to its age and size. Runs that go on stay.

The chains of events stay as a whole, so that they can be verified for ever: they hold digests, and no contents.
"""

from __future__ import annotations

import sqlite3
import time
from typing import NamedTuple

from gloveport.config.store import StoreConfig
from gloveport.store.contents import TOUCH_SECONDS
from gloveport.store.sessions import IN_SNAPSHOT, drop_unused_snapshots, forget_old_sessions
from gloveport.types import MIB

BATCH_RUNS = 100
BATCH_CONTENTS = 500
PAUSE_SECONDS = 3600.0
"""How often hosts apply the retention. All hosts of a store share this."""
READS_KEPT_SECONDS = 60 * 86400.0
"""Longer than a run can wait for a person: one that goes on inherits what its agent had read when it began."""
_FINAL = "status IN ('completed', 'failed', 'cancelled') AND ended IS NOT NULL"
_UNUSED = (
    "at < ? AND NOT EXISTS (SELECT 1 FROM run_steps WHERE tail = digest)"
    " AND NOT EXISTS (SELECT 1 FROM runs WHERE code = lower(hex(digest)))"
    f" AND NOT {IN_SNAPSHOT}"
)


class Pruned(NamedTuple):
    """What was deleted: runs, and contents that nothing refers to any more."""

    runs: int = 0
    contents: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether there may be more to delete."""
        return self.runs >= BATCH_RUNS or self.contents >= BATCH_CONTENTS


def apply_now_and_then(connection: sqlite3.Connection, config: StoreConfig) -> None:
    """Apply the retention if it is time: a bounded step of it, which takes milliseconds. The rest comes with the next."""
    now = time.time_ns() // 1000
    row = connection.execute("SELECT value FROM store_state WHERE name = 'pruned'").fetchone()
    if row is not None and row[0] <= now < row[0] + PAUSE_SECONDS * 1e6:
        return
    if not prune_step(connection, cutoff(connection, config)).is_partial:
        connection.execute("INSERT OR REPLACE INTO store_state VALUES ('pruned', ?)", (now,))


def cutoff(connection: sqlite3.Connection, config: StoreConfig) -> int:
    """Return the time before which runs may go, in microseconds since 1970: later if the store is too large."""
    by_age = int((time.time() - config.keep_days * 86400) * 1e6)
    if used_bytes(connection) <= config.max_mb * MIB:
        return by_age
    oldest = connection.execute(f"SELECT ended FROM runs WHERE {_FINAL} ORDER BY ended LIMIT {BATCH_RUNS}").fetchall()
    return max(by_age, oldest[-1][0] + 1) if oldest else by_age


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return how much of the file is in use. What was deleted is used again, and the file does not shrink."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return (pages - free) * size


def prune_step(connection: sqlite3.Connection, before: int) -> Pruned:
    """Delete some of the runs that have ended before a time, and of the contents; the oldest first, in one transaction."""
    sql = f"SELECT id FROM runs WHERE {_FINAL} AND ended < ? ORDER BY ended LIMIT {BATCH_RUNS}"
    unused = f"SELECT digest FROM payloads WHERE {_UNUSED} ORDER BY at LIMIT {BATCH_CONTENTS}"
    connection.execute("BEGIN IMMEDIATE")
    try:
        runs = connection.execute(sql, (before,)).fetchall()
        for table, column in (
            ("runs", "id"),
            ("run_steps", "run"),
            ("approvals", "run"),
            ("plans", "run"),
            ("undone", "run"),
        ):
            connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", runs)
        tools = connection.execute("SELECT DISTINCT tool FROM run_tools").fetchall() if runs else []
        pairs = ((tool, run) for (tool,) in tools for (run,) in runs)
        connection.executemany("DELETE FROM run_tools WHERE tool = ? AND run = ?", pairs)
        # The reads of a session's runs stick to it as long as it is kept.
        old_reads = "DELETE FROM labelled_reads WHERE session = '' AND at < ?"
        connection.execute(old_reads, (time.time() - READS_KEPT_SECONDS,))
        forget_old_sessions(connection)
        drop_unused_snapshots(connection)
        last_use = int(before - TOUCH_SECONDS * 1e6)
        contents = connection.execute(f"DELETE FROM payloads WHERE digest IN ({unused})", (last_use,)).rowcount
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return Pruned(len(runs), contents)


def prunable_runs(connection: sqlite3.Connection, before: int) -> int:
    """Return how many runs have ended before a time."""
    return connection.execute(f"SELECT count(*) FROM runs WHERE {_FINAL} AND ended < ?", (before,)).fetchone()[0]
