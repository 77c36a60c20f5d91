"""The record of writes that are undone: the start of each inverse is on the disk before it leaves, so it leaves once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from gloveport.store.database import StoreFile
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement
from gloveport.store.process_mark import lives, process_mark
from gloveport.store.reading import find_content
from gloveport.store.stored_runs import StoredRun
from gloveport.values import from_wire


class Attempt(NamedTuple):
    """How often the inverse of a write has left a host, and what is known: started, done, failed."""

    number: int = 0
    state: str = ""


class SentWrite(NamedTuple):
    """A write as it was sent: the address of its tool, and its arguments, which a person may have changed."""

    tool: str
    args: Any
    has_args: bool


class UndoRecords(StoreFile):
    """What the store has about undoing runs. Each method is one transaction; call them in a thread."""

    def attempts(self, run: str) -> dict[int, Attempt]:
        """Return what was done to undo the writes of a run, by call."""
        with self.reading() as connection:
            rows = connection.execute("SELECT call, attempt, state FROM undone WHERE run = ?", (run,))
            return {call: Attempt(number, state) for call, number, state in rows}

    def begin(self, run: str, chain: str) -> bool:
        """Make a host the owner of a run that it rolls back; return False while one that lives owns it."""
        with self.writing() as connection:
            sql = "SELECT process, seen FROM runs JOIN hosts ON chain = host WHERE id = ?"
            owner = connection.execute(sql, (run,)).fetchone()
            if owner is not None and lives(*owner):
                return False
            connection.execute("INSERT OR REPLACE INTO hosts VALUES (?, ?, ?)", (chain, process_mark(), time.time()))
            connection.execute("UPDATE runs SET host = ? WHERE id = ?", (chain, run))
            return True

    def end(self, run: str, chain: str) -> None:
        """Leave a run that a host has rolled back."""
        with self.writing() as connection:
            connection.execute("UPDATE runs SET host = NULL WHERE id = ? AND host = ?", (run, chain))

    def sent(self, run: StoredRun) -> dict[int, SentWrite]:
        """Return the writes of a run as they were sent, by call."""
        found: dict[int, SentWrite] = {}
        until = int((run.ended or run.started) * 1e6) + 60_000_000  # a host may record the end before its last event
        sql = "SELECT body FROM events WHERE kind = 'call-started' AND at BETWEEN ? AND ?"
        with self.reading() as connection:
            for (text,) in connection.execute(sql, (int(run.started * 1e6), until)):
                if run.id not in text:
                    continue
                body = orjson.loads(text)
                if body["run"] == run.id and body["writes"]:
                    digest = str(body.get("args", ""))
                    content = find_content(connection, bytes.fromhex(digest)) if len(digest) == 64 else None
                    args = {} if content is None else from_wire(orjson.loads(content))
                    found[body["call"]] = SentWrite(body["tool"], args, content is not None or not digest)
        return found


class UndoGuard:
    """Lets the inverse of a write leave once for each attempt, whatever other hosts do at the same time."""

    def __init__(self, log: EventLog, run: str, attempts: Mapping[int, Attempt]) -> None:
        self._log = log
        self._run = run
        self._attempts = attempts

    def uses(self, tool: str) -> None:
        """Note nothing: the run has its own tools."""

    def write_leaves(self, call: int, changed: bytes | None) -> Statement:
        """Return the change that says that the inverse of a write leaves now."""
        number = self._attempts.get(call, Attempt()).number
        if number == 0:
            return Statement("INSERT OR IGNORE INTO undone VALUES (?, ?, 1, 'started')", (self._run, call))
        sql = "UPDATE undone SET attempt = ?, state = 'started' WHERE run = ? AND call = ? AND attempt = ?"
        return Statement(sql, (number + 1, self._run, call, number))

    def ended(self, call: int, state: str) -> None:
        """Record what became of an inverse."""
        sql = "UPDATE undone SET state = ? WHERE run = ? AND call = ? AND state = 'started'"
        self._log.put(Statement(sql, (state, self._run, call)))
