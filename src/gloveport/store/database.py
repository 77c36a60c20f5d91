"""Opens the file of the store: only its owner may read it, and its tables are brought up to date step by step."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gloveport.errors import StoreError
from gloveport.store.encryption import StoreConnection

LOCK_TIMEOUT_SECONDS = 5.0
LOCK_RETRY_SECONDS = 0.01
MEMORY = Path(":memory:")
"""The path of a database in memory, which ends with its connection."""
_COMMENT = re.compile(r"--.*")

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
        role TEXT NOT NULL,        -- agent, host, approver, admin or monitor
        hash BLOB NOT NULL,        -- of the token, which has 256 random bits
        created REAL NOT NULL,
        PRIMARY KEY (role, name)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE payloads ADD COLUMN form INTEGER NOT NULL DEFAULT 0;  -- 0: as it was, 1: compressed
    CREATE TABLE hosts (
        chain TEXT PRIMARY KEY,
        process TEXT NOT NULL,     -- its process, to see whether it lives
        seen REAL NOT NULL         -- when it wrote last, for processes that can't see it
    ) WITHOUT ROWID;
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        status TEXT NOT NULL,      -- running, waiting, completed, failed, cancelled
        host TEXT,                 -- the chain of the host that owns it; null while nobody does
        fence INTEGER NOT NULL,    -- counts its owners
        started INTEGER NOT NULL,  -- microseconds since 1970
        ended INTEGER,
        language TEXT NOT NULL,
        engine TEXT NOT NULL,
        calls INTEGER NOT NULL DEFAULT 0,
        error TEXT,                -- the code of the error that ended it
        obstacle TEXT,             -- why it can't be resumed
        request BLOB NOT NULL,     -- JSON: what it takes to go on with it
        outcome BLOB               -- JSON: how it ended
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_time ON runs (started);
    CREATE INDEX runs_by_status ON runs (status, started);
    CREATE INDEX runs_by_agent ON runs (agent, started);
    CREATE TABLE run_steps (
        run TEXT NOT NULL,
        number INTEGER NOT NULL,   -- from 1
        sender TEXT NOT NULL,      -- host: an event; guest: a frame; write: the call with this id leaves now
        content BLOB NOT NULL,
        tail BLOB,                 -- the digest of a large result, which follows the content
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE run_tools (
        tool TEXT NOT NULL,
        run TEXT NOT NULL,
        PRIMARY KEY (tool, run)
    ) WITHOUT ROWID;
    ALTER TABLE standing_approvals ADD COLUMN definition TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN run TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN call INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX approvals_by_call ON approvals (run, call);
    """,
    """
    CREATE INDEX hosts_by_time ON hosts (seen);
    """,
    """
    CREATE TABLE plans (
        run TEXT PRIMARY KEY,      -- the run that made it
        digest TEXT NOT NULL,      -- of the writes, and of what they are bound to
        plan BLOB NOT NULL,        -- JSON
        expires REAL NOT NULL,     -- seconds since 1970
        approver TEXT,             -- who has approved it; null until then
        applied TEXT               -- the run that follows it
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE runs ADD COLUMN cancel_asked TEXT;  -- who wants it to end; the host that owns it looks for this
    CREATE INDEX runs_to_cancel ON runs (host) WHERE cancel_asked IS NOT NULL;
    CREATE INDEX runs_by_end ON runs (ended);
    ALTER TABLE runs ADD COLUMN code TEXT;          -- the digest of its program, in hexadecimal digits
    UPDATE runs SET code = json_extract(CAST(request AS TEXT), '$.code');
    CREATE INDEX runs_by_code ON runs (code);
    CREATE INDEX run_steps_by_tail ON run_steps (tail) WHERE tail IS NOT NULL;
    CREATE INDEX payloads_by_time ON payloads (at);
    CREATE TABLE store_state (
        name TEXT PRIMARY KEY,     -- pruned: when retention was last applied, in microseconds since 1970
        value INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE store_keys (
        number INTEGER PRIMARY KEY,
        place TEXT NOT NULL,       -- where the key is that wraps this one
        wrapped BLOB NOT NULL,
        created REAL NOT NULL
    );
    CREATE TABLE undone (
        run TEXT NOT NULL,
        call INTEGER NOT NULL,     -- the write that is undone
        attempt INTEGER NOT NULL,  -- counts how often its inverse has left a host
        state TEXT NOT NULL,       -- started, done, failed
        PRIMARY KEY (run, call)
    ) WITHOUT ROWID;
    CREATE TABLE snippets (
        name TEXT PRIMARY KEY,
        saved REAL NOT NULL,       -- seconds since 1970
        saver TEXT NOT NULL,       -- the person
        body BLOB NOT NULL         -- JSON: the program, and the tools that it needs
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE budget_uses (
        budget TEXT NOT NULL,
        agent TEXT NOT NULL,
        at REAL NOT NULL           -- seconds since 1970
    );
    CREATE INDEX budget_uses_by_budget ON budget_uses (budget, agent);
    CREATE INDEX budget_uses_by_time ON budget_uses (at);
    """,
    """
    CREATE TABLE labelled_reads (
        agent TEXT NOT NULL,
        session TEXT NOT NULL DEFAULT '',  -- empty: what was read sticks to the agent
        tool TEXT NOT NULL,
        labels TEXT NOT NULL,      -- private, untrusted
        run TEXT NOT NULL,         -- the last run that has read it
        at REAL NOT NULL,          -- seconds since 1970
        PRIMARY KEY (agent, session, tool, labels)
    ) WITHOUT ROWID;
    CREATE INDEX labelled_reads_by_time ON labelled_reads (at);
    """,
    """
    CREATE TABLE sessions (
        agent TEXT NOT NULL,
        name TEXT NOT NULL,
        snapshot BLOB NOT NULL,    -- the digest of what it holds
        files INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        used REAL NOT NULL,        -- seconds since 1970
        expires REAL NOT NULL,     -- when it is deleted, unless it is used before
        holder TEXT,               -- the run that uses it; null while none does
        host TEXT,                 -- the chain of the host of that run; null while the run waits without a process
        fence INTEGER NOT NULL,    -- counts its holders
        saved_by TEXT,             -- the run that has saved it last; empty: its owner; null: nobody, it holds nothing yet
        PRIMARY KEY (agent, name)
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_time ON sessions (expires);
    CREATE INDEX sessions_by_snapshot ON sessions (snapshot);
    CREATE TABLE snapshots (
        digest BLOB PRIMARY KEY    -- of a list of files, which is a content
    ) WITHOUT ROWID;
    CREATE TABLE snapshot_contents (
        snapshot BLOB NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (snapshot, content)
    ) WITHOUT ROWID;
    CREATE INDEX snapshots_by_content ON snapshot_contents (content);
    ALTER TABLE runs ADD COLUMN snapshot BLOB;  -- what its session held at its start
    CREATE INDEX runs_by_snapshot ON runs (snapshot) WHERE snapshot IS NOT NULL;
    """,
)


def open_database(path: Path) -> StoreConnection:
    """Return a connection to the store, which is created if it does not exist; raise StoreError."""
    try:
        if path != MEMORY:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _create(path)
        connection = sqlite3.connect(
            path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False, factory=StoreConnection
        )
    except PermissionError as error:
        raise no_access(path, error) from None
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the store {path} can't be opened: {error}") from None
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        _migrate(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"the store {path} can't be used: {error}", hint=hint_for(error)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Make the file use a write-ahead log.

    SQLite does not wait for a lock here: of two connections that open a new file at once, one fails immediately.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(LOCK_RETRY_SECONDS)


def _create(path: Path) -> None:
    """Create the file, which only its owner may read. One that exists is not opened here.

    To close any descriptor of a file ends all locks that this process has on it, those of SQLite included.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        about = path.stat()
        if about.st_uid != os.geteuid():  # whoever owns it could have put tokens and standing approvals into it
            raise StoreError(f"the store {path} belongs to another user", hint="set another [store] path") from None
        if about.st_mode & 0o077 and path.is_file():
            path.chmod(0o600)


def no_access(path: Path, error: OSError) -> StoreError:
    """Return the error for a store that this user may not look at, or not make."""
    hint = f"let this user read and write {path.parent}, or set another [store] path"
    return StoreError(f"the store {path} can't be opened: {error.strerror}", hint=hint)


def hint_for(error: sqlite3.Error) -> str | None:
    """Return what to do about a failure of SQLite."""
    text = str(error)
    if "locked" in text:
        return "another program holds the file for longer than it should: end it, or set another [store] path"
    if "full" in text or "disk I/O" in text:  # the files beside a store need space, too
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
            for statement in filter(str.strip, _COMMENT.sub("", step).split(";")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


class StoreFile:
    """A connection to the store. Use it in one thread at a time, beside the event loop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_database(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[StoreConnection]:
        """Yield the connection in a transaction, which takes effect as a whole or not at all."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.look_for_key()
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[StoreConnection]:
        """Yield the connection; raise StoreError for what SQLite raises."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.path} can't be used: {error}", hint=hint_for(error)) from None
