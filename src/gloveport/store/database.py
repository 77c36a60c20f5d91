"""Opens the file of the store: only its owner may read it, and its tables are brought up to date step by step."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from gloveport.errors import StoreError

LOCK_TIMEOUT_SECONDS = 5.0

# Each step is applied once, in order, and never changed after a release. The number of steps is the file's `user_version`.
MIGRATIONS = (
    """
    CREATE TABLE events (
        chain TEXT NOT NULL,       -- the host that recorded it
        number INTEGER NOT NULL,   -- its place in the chain, from 1
        at INTEGER NOT NULL,       -- microseconds since 1970
        kind TEXT NOT NULL,
        body TEXT NOT NULL,        -- JSON with digests instead of arguments and results
        hash BLOB NOT NULL,        -- of all this, and of the hash of the event before
        PRIMARY KEY (chain, number)
    ) WITHOUT ROWID;
    CREATE INDEX events_by_time ON events (at);
    CREATE TABLE payloads (
        digest BLOB PRIMARY KEY,   -- of the content
        content BLOB NOT NULL,     -- arguments or a result, as JSON; retention may delete it
        at INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,        -- the chain of the host that holds the run
        process TEXT NOT NULL,     -- its process, to see whether it lives
        digest TEXT NOT NULL,      -- of the tool and its arguments
        request TEXT NOT NULL,     -- JSON
        expires REAL NOT NULL,     -- seconds since 1970
        state TEXT NOT NULL,       -- waiting, answered (by an approver), taken (by the host), expired, withdrawn
        answer TEXT,               -- JSON
        problem TEXT               -- why the host has refused the last answer
    ) WITHOUT ROWID;
    CREATE INDEX approvals_by_state ON approvals (state, host);
    CREATE TABLE standing_approvals (
        id TEXT PRIMARY KEY,
        tool TEXT NOT NULL,
        agent TEXT NOT NULL,
        shape TEXT NOT NULL,
        approver TEXT NOT NULL,
        given REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE tokens (
        name TEXT NOT NULL,
        role TEXT NOT NULL,        -- agent or approver
        hash BLOB NOT NULL,        -- of the token, which has 256 random bits
        created REAL NOT NULL,
        PRIMARY KEY (role, name)
    ) WITHOUT ROWID;
    """,
)


def open_database(path: Path) -> sqlite3.Connection:
    """Return a connection to the store, which is created if it does not exist; raise StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create(path)
        connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the store {path} can't be opened: {error}") from None
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        _migrate(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"the store {path} can't be used: {error}", hint=hint_for(error)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Create the file, which only its owner may read. One that exists is not opened here.

    To close any descriptor of a file ends all locks that this process has on it, those of SQLite included.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.stat().st_mode & 0o077 and path.is_file():
            path.chmod(0o600)


def hint_for(error: sqlite3.Error) -> str | None:
    """Return what to do about a failure of SQLite."""
    text = str(error)
    if "locked" in text:
        return "another program holds the file for longer than it should: end it, or set another [store] path"
    if "full" in text:
        return "free some space on that disk, or set another [store] path"
    if "not a database" in text or "malformed" in text:
        return "move the file away: a new one is created, and `gloveport audit verify` can look at the old one"
    return None


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # another host may do the same at this moment
    try:
        done = _version(connection)
        if done > len(MIGRATIONS):
            raise StoreError(f"a newer version of Gloveport has written the store {path}", hint="upgrade this one")
        for step in MIGRATIONS[done:]:
            for statement in filter(str.strip, step.split(";\n")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]
