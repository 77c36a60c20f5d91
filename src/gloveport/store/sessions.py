"""The sessions in the store: what each holds, which run uses it, and what the sessions of past runs held.

What a session holds is a snapshot: a list of its files, by the digests of their contents. A run refers to the snapshot that
it found at its start, so that it can be repeated; files that did not change are kept once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gloveport.config.sessions import SessionsConfig
from gloveport.errors import OptionError, WorkspaceError
from gloveport.large_values import looked_up
from gloveport.store.contents import StoredContent, digest, keep_contents
from gloveport.store.database import MEMORY, StoreFile
from gloveport.store.encryption import StoreConnection
from gloveport.store.process_mark import lives
from gloveport.store.reading import find_content
from gloveport.types import MIB, RecordedWorkspace

MAX_SESSIONS_TOGETHER = 10
"""All sessions of an agent may hold so many times what one may."""
DAY_SECONDS = 86400.0
DEFAULTS = SessionsConfig()
PRUNE_BATCH = 200


class SnapshotFile(NamedTuple):
    """A file of a snapshot: the digest of its content in hexadecimal digits, and its size."""

    digest: str
    size: int


@looked_up
@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a session holds: files by path, folders, and the digest of its encoded state."""

    files: Mapping[str, SnapshotFile] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    state: str = ""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(one.size for one in self.files.values())

    @property
    def contents(self) -> set[str]:
        """The digests of all contents."""
        return {one.digest for one in self.files.values()} | ({self.state} if self.state else set())


class StoredSession(NamedTuple):
    """A session as lists show it. `used` is when it was used last, in seconds since 1970; `run` uses it now."""

    agent: str
    name: str
    files: int
    size: int
    used: float
    run: str | None


class TakenSession(NamedTuple):
    """A session that a run uses, and the digest of what it held at the start of the run.

    `is_saved` if a run that is resumed has already left its files there.
    """

    agent: str
    name: str
    run: str
    fence: int
    snapshot: str
    is_saved: bool = False


class SessionStore(StoreFile):
    """The sessions in the store at a path, or in memory. Each method is one transaction; call them in a thread."""

    def __init__(self, path: Path, config: SessionsConfig = DEFAULTS) -> None:
        super().__init__(path)
        self._config = config
        self._is_in_memory = path == MEMORY

    def take(self, agent: str, name: str, run: str, chain: str) -> TakenSession | None:
        """Let a run use a session, which is created if there is none; return None while another one uses it."""
        with self.writing() as connection:
            forget_old_sessions(connection)
            row = _find(connection, agent, name)
            if row is None:
                self._check_number(connection, agent)
                empty = _keep_snapshot(connection, Snapshot(), {})
                row = _Row(empty, None, None, 0, None)
                sql = "INSERT INTO sessions VALUES (?, ?, ?, 0, 0, ?, ?, NULL, NULL, 0, NULL)"
                connection.execute(sql, (agent, name, empty, *self._times))
            elif not _is_free(connection, row, run, chain):
                return None
            fence = row.fence + 1
            connection.execute(
                "UPDATE sessions SET holder = ?, host = ?, fence = ?, used = ?, expires = ? WHERE agent = ? AND name = ?",
                (run, chain, fence, *self._times, agent, name),
            )
            return TakenSession(agent, name, run, fence, row.snapshot.hex(), row.saved_by == run)

    def release(self, taken: TakenSession, *, waits: bool = False) -> bool:
        """End the use of a session, and return whether it is gone because it holds nothing.

        While its run `waits` for a person without a process, no other run gets it.
        """
        with self.writing() as connection:
            mine = (taken.agent, taken.name, taken.run, taken.fence)
            where = "WHERE agent = ? AND name = ? AND holder = ? AND fence = ?"
            if waits:
                connection.execute(f"UPDATE sessions SET host = NULL {where}", mine)
                return False
            empty = connection.execute(f"SELECT 1 FROM sessions {where} AND saved_by IS NULL", mine).fetchone()
            if empty:
                _forget(connection, taken.agent, taken.name)
            else:
                connection.execute(f"UPDATE sessions SET holder = NULL, host = NULL {where}", mine)
            self._drop_unused(connection)
            return empty is not None

    def save(self, taken: TakenSession, snapshot: Snapshot, contents: Mapping[str, bytes]) -> None:
        """Replace what a session holds, as a whole or not at all, and end its use; raise WorkspaceError.

        `contents` are those that the store may not have yet, by digest.
        """
        with self.writing() as connection:
            self._check_room(connection, taken.agent, taken.name, snapshot.size)
            kept = _keep_snapshot(connection, snapshot, contents)
            changed = connection.execute(
                "UPDATE sessions SET snapshot = ?, files = ?, bytes = ?, used = ?, expires = ?,"
                " holder = NULL, host = NULL, saved_by = ?"
                " WHERE agent = ? AND name = ? AND holder = ? AND fence = ?",
                (kept, len(snapshot.files), snapshot.size, *self._times, taken.run, *taken[:4]),
            )
            if changed.rowcount != 1:
                raise WorkspaceError(f"another run has taken over the session {taken.name}", code="session-busy")
            self._drop_unused(connection)

    def change(
        self, agent: str, name: str, chain: str, change: Callable[[Snapshot], Snapshot], contents: Mapping[str, bytes]
    ) -> bool:
        """Change what a session holds, which is created if there is none; return False while a run uses it."""
        with self.writing() as connection:
            forget_old_sessions(connection)
            row = _find(connection, agent, name)
            if row is not None and not _is_free(connection, row, "", chain):
                return False
            if row is None:
                self._check_number(connection, agent)
            new = change(Snapshot() if row is None else _read_snapshot(connection, row.snapshot))
            self._check_room(connection, agent, name, new.size)
            values = _keep_snapshot(connection, new, contents), len(new.files), new.size, *self._times
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, 1, '')"
                " ON CONFLICT DO UPDATE SET snapshot = excluded.snapshot, files = excluded.files, bytes = excluded.bytes,"
                " used = excluded.used, expires = excluded.expires, holder = NULL, host = NULL, fence = fence + 1,"
                " saved_by = ''",
                (agent, name, *values),
            )
            self._drop_unused(connection)
            return True

    def remove(self, agent: str, name: str, chain: str) -> bool | None:
        """Delete a session; return False while a run uses it, and None if there is none."""
        with self.writing() as connection:
            row = _find(connection, agent, name)
            if row is None:
                return None
            if not _is_free(connection, row, "", chain):
                return False
            _forget(connection, agent, name)
            self._drop_unused(connection)
            return True

    def held(self, agent: str, name: str) -> Snapshot | None:
        """Return what a session holds; None if there is none. What a run does to it counts when the run has succeeded."""
        with self.reading() as connection:
            row = _find(connection, agent, name)
            if row is None or row.saved_by is None:
                return None
            return _read_snapshot(connection, row.snapshot)

    def snapshot(self, name: str) -> Snapshot:
        """Return a snapshot by its digest; raise OptionError if it was deleted."""
        with self.reading() as connection:
            return _read_snapshot(connection, bytes.fromhex(name))

    def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return contents by their digests; raise OptionError if one was deleted."""
        with self.reading() as connection:
            return {name: _content(connection, bytes.fromhex(name)) for name in names}

    def all(self, agent: str | None = None) -> list[StoredSession]:
        """Return the sessions (of an agent), by agent and name."""
        sql = (
            "SELECT agent, name, files, bytes, used, snapshot, holder, host, fence, saved_by FROM sessions"
            " WHERE (? IS NULL OR agent = ?) AND saved_by IS NOT NULL AND expires > ? ORDER BY agent, name"
        )
        with self.reading() as connection:
            rows = connection.execute(sql, (agent, agent, time.time())).fetchall()
            found: list[StoredSession] = []
            for owner, name, files, size, used, *row in rows:
                held = _Row(*row)
                free = _is_free(connection, held, "", "")
                found.append(StoredSession(owner, name, files, size, used, None if free else held.holder))
            return found

    @property
    def _times(self) -> tuple[float, float]:
        now = time.time()
        return now, now + self._config.keep_days * DAY_SECONDS

    def _check_number(self, connection: StoreConnection, agent: str) -> None:
        (count,) = connection.execute("SELECT count(*) FROM sessions WHERE agent = ?", (agent,)).fetchone()
        if count >= self._config.max_sessions:
            hint = "remove one: `gloveport sessions remove NAME`, or raise max_sessions under [sessions]"
            raise WorkspaceError(f"an agent has at most {self._config.max_sessions:,} sessions", hint=hint)

    def _check_room(self, connection: StoreConnection, agent: str, name: str, size: int) -> None:
        sql = "SELECT coalesce(sum(bytes), 0) FROM sessions WHERE agent = ? AND name != ?"
        (others,) = connection.execute(sql, (agent, name)).fetchone()
        most = self._config.max_mb * MIB * MAX_SESSIONS_TOGETHER
        if size and others + size > most:
            raise WorkspaceError(
                f"the sessions of an agent hold more than {most:,} bytes together", hint="remove files, or a session"
            )

    def _drop_unused(self, connection: StoreConnection) -> None:
        """Free memory at once. In a file, retention does this now and then."""
        if self._is_in_memory:
            drop_unused_snapshots(connection)
            connection.execute(f"DELETE FROM payloads WHERE NOT {IN_SNAPSHOT}")


class _Row(NamedTuple):
    snapshot: bytes
    holder: str | None
    host: str | None
    fence: int
    saved_by: str | None


IN_SNAPSHOT = "EXISTS (SELECT 1 FROM snapshot_contents WHERE content = digest)"


def forget_old_sessions(connection: sqlite3.Connection) -> None:
    """Delete the sessions that nobody has used for long, and the labels of what their runs have read."""
    sql = "SELECT agent, name FROM sessions WHERE expires < ?"
    for agent, name in connection.execute(sql, (time.time(),)).fetchall():
        _forget(connection, agent, name)


def drop_unused_snapshots(connection: sqlite3.Connection) -> int:
    """Delete some of the snapshots that no session and no run refers to; return how many."""
    sql = (
        "SELECT digest FROM snapshots WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE snapshot = digest)"
        " AND NOT EXISTS (SELECT 1 FROM runs WHERE snapshot = digest) LIMIT ?"
    )
    unused = connection.execute(sql, (PRUNE_BATCH,)).fetchall()
    for table, column in (("snapshot_contents", "snapshot"), ("snapshots", "digest")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", unused)
    return len(unused)


def recorded_workspace(connection: StoreConnection, request: Mapping[str, Any]) -> RecordedWorkspace | None:
    """Return what the workspace of a run held at its start; None if it had none. Raise OptionError if it was deleted."""
    if "snapshot" not in request:
        return None
    found = _read_snapshot(connection, bytes.fromhex(request["snapshot"]))
    files = {path: _content(connection, bytes.fromhex(file.digest)) for path, file in found.files.items()}
    return RecordedWorkspace(files, found.folders, *request["workspace"])


def add_workspace(connection: StoreConnection, workspace: RecordedWorkspace) -> str:
    """Keep what the workspace of a run held that was made elsewhere, and return the digest of the snapshot."""
    contents = {digest(content).hex(): content for content in workspace.files.values()}
    files = {path: SnapshotFile(digest(content).hex(), len(content)) for path, content in workspace.files.items()}
    return _keep_snapshot(connection, Snapshot(files, workspace.folders), contents).hex()


def _find(connection: StoreConnection, agent: str, name: str) -> _Row | None:
    sql = "SELECT snapshot, holder, host, fence, saved_by FROM sessions WHERE agent = ? AND name = ?"
    row = connection.execute(sql, (agent, name)).fetchone()
    return None if row is None else _Row(*row)


def _forget(connection: sqlite3.Connection, agent: str, name: str) -> None:
    connection.execute("DELETE FROM sessions WHERE agent = ? AND name = ?", (agent, name))
    connection.execute("DELETE FROM labelled_reads WHERE agent = ? AND session = ?", (agent, name))


def _is_free(connection: StoreConnection, row: _Row, run: str, chain: str) -> bool:
    """Return whether a run may use a session: nobody else does, or whoever did is dead and waits for nobody.

    Whoever asks for the host `chain` knows that no other run of that host uses it.
    """
    if row.holder is None:
        return True
    if row.host is not None and row.host != chain:
        owner = connection.execute("SELECT process, seen FROM hosts WHERE chain = ?", (row.host,)).fetchone()
        if owner is not None and lives(*owner):
            return False
    if row.holder == run:
        return True
    waits = (
        "SELECT 1 FROM runs WHERE id = ? AND status = 'waiting' AND EXISTS (SELECT 1 FROM approvals"
        " WHERE run = runs.id AND state IN ('waiting', 'answered') AND expires > ?)"
    )
    return connection.execute(waits, (row.holder, time.time())).fetchone() is None


def _keep_snapshot(connection: StoreConnection, snapshot: Snapshot, contents: Mapping[str, bytes]) -> bytes:
    text = msgspec.json.encode(snapshot, order="deterministic")
    name = digest(text)
    known = connection.execute("SELECT 1 FROM snapshots WHERE digest = ?", (name,)).fetchone() is not None
    kept = [StoredContent(name, text, may_compress=False)]
    named = (one for one in snapshot.contents if one in contents)
    # Not compressed: it would take longer than the run.
    kept += [StoredContent(bytes.fromhex(one), contents[one], may_compress=False) for one in named]
    keep_contents(connection, kept)
    if not known:
        connection.execute("INSERT INTO snapshots VALUES (?)", (name,))
        rows = [(name, bytes.fromhex(one)) for one in snapshot.contents] + [(name, name)]
        connection.executemany("INSERT OR IGNORE INTO snapshot_contents VALUES (?, ?)", rows)
    return name


def _read_snapshot(connection: StoreConnection, name: bytes) -> Snapshot:
    return msgspec.json.decode(_content(connection, name), type=Snapshot)


def _content(connection: StoreConnection, name: bytes) -> bytes:
    found = find_content(connection, name)
    if found is None:
        raise OptionError("files that a session held were deleted from the store", code="not-resumable")
    return found
