"""The requests that wait, in the store: every host puts its own there, and approvers in other processes answer them.

An answer is taken once: the state of a request goes from `waiting` to `answered` in one statement that also checks its
digest and its expiry, and the host that holds the run checks both again.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval
from gloveport.errors import ApprovalError, StoreError
from gloveport.store.database import hint_for, open_database
from gloveport.values import encode, from_wire

RequestState = Literal["waiting", "answered", "taken", "expired", "withdrawn"]
KEPT_SECONDS = 30 * 86400.0  # for requests that have ended


@dataclass(frozen=True, slots=True)
class ShelvedRequest:
    """A request in the store: its state, and why the host has refused the last answer. `lives` if its host runs."""

    request: ApprovalRequest
    state: RequestState
    problem: str | None
    lives: bool


class ApprovalShelf:
    """The requests in the store at a path. Each method is one transaction; call them in a thread beside an event loop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_database(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # For hosts.

    def put(self, request: ApprovalRequest, host: str) -> None:
        """Put a request there, for approvers to see."""
        text = _request_text(request)
        row = (request.id, host, _process_mark(os.getpid()), request.digest, text, request.expires, "waiting")
        with self._writing() as connection:
            connection.execute("DELETE FROM approvals WHERE expires < ?", (time.time() - KEPT_SECONDS,))
            columns = "id, host, process, digest, request, expires, state"
            connection.execute(f"INSERT INTO approvals ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def answers(self, host: str) -> dict[str, Answer]:
        """Return the answers to the requests of a host that it has not taken yet, by id."""
        with self._reading() as connection:
            rows = connection.execute("SELECT id, answer FROM approvals WHERE state = 'answered' AND host = ?", (host,))
            return {id: _read_answer(text) for id, text in rows}

    def end(self, id: str, state: RequestState) -> None:
        """Note that a request waits no more."""
        with self._writing() as connection:
            connection.execute("UPDATE approvals SET state = ? WHERE id = ?", (state, id))

    def refuse(self, id: str, problem: str) -> None:
        """Let a request wait again, because its host can't follow the answer."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE approvals SET state = 'waiting', answer = NULL, problem = ? WHERE id = ? AND state = 'answered'",
                (problem, id),
            )

    # For approvers.

    def waiting(self) -> list[ShelvedRequest]:
        """Return the requests that wait in hosts that live, the oldest first."""
        found = (self._shelved(row) for row in self._rows("state = 'waiting' AND expires > ?", time.time()))
        return sorted((one for one in found if one.lives), key=lambda one: one.request.asked)

    def find(self, id: str) -> ShelvedRequest:
        """Return a request by its id, or by the beginning of it that only one has; raise ApprovalError."""
        rows = self._rows("id >= ? AND id < ? || 'g'", id, id) if id and id.isalnum() else []
        if len(rows) != 1:
            problem = "more than one request begins with" if rows else "there is no request"
            raise ApprovalError(f"{problem} {id[:40]!r}")
        return self._shelved(rows[0])

    def answer(self, seen: Mapping[str, str], answer: Answer) -> None:
        """Answer the requests that the approver has seen, by id and digest. If one can't be answered, none is."""
        text = orjson.dumps(asdict(answer) | {"args": None if answer.args is None else encode(dict(answer.args)).decode()})
        with self._writing() as connection:
            for id, digest in seen.items():
                changed = connection.execute(
                    "UPDATE approvals SET state = 'answered', answer = ?, problem = NULL"
                    " WHERE id = ? AND digest = ? AND state = 'waiting' AND expires > ?",
                    (text.decode(), id, digest, time.time()),
                )
                if changed.rowcount != 1:
                    raise ApprovalError(f"the request {id[:40]} waits no more, or asks about another call than was shown")

    # Standing approvals.

    def stand(self, given: StandingApproval) -> None:
        """Keep a standing approval, for all hosts."""
        row = (given.id, given.tool, given.agent, given.shape, given.approver, given.given)
        with self._writing() as connection:
            connection.execute("INSERT INTO standing_approvals VALUES (?, ?, ?, ?, ?, ?)", row)

    def standing(self, tool: str | None = None) -> list[StandingApproval]:
        """Return the standing approvals (of a tool), the oldest first."""
        where, given = ("WHERE tool = ?", (tool,)) if tool is not None else ("", ())
        columns = "tool, agent, shape, approver, given, id"
        with self._reading() as connection:
            rows = connection.execute(f"SELECT {columns} FROM standing_approvals {where} ORDER BY given", given).fetchall()
        return [StandingApproval(*row[:5], id=row[5]) for row in rows]

    def revoke(self, id: str) -> None:
        """End a standing approval; raise ApprovalError if there is none."""
        with self._writing() as connection:
            if connection.execute("DELETE FROM standing_approvals WHERE id = ?", (id,)).rowcount != 1:
                raise ApprovalError(f"there is no standing approval {id[:40]}")

    def _rows(self, where: str, *given: Any) -> list[Any]:
        columns = "request, state, problem, process, digest"
        with self._reading() as connection:
            return connection.execute(f"SELECT {columns} FROM approvals WHERE {where}", given).fetchall()

    @staticmethod
    def _shelved(row: Any) -> ShelvedRequest:
        text, state, problem, process, digest = row
        request = _read_request(text)
        if request.digest != digest:
            raise ApprovalError(f"the request {request.id} was changed since its host has written it")
        return ShelvedRequest(request, state, problem, _lives(process))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.path} can't be used: {error}", hint=hint_for(error)) from None


def _request_text(request: ApprovalRequest) -> str:
    return orjson.dumps(asdict(request) | {"args": encode(dict(request.args)).decode()}).decode()


def _read_request(text: str) -> ApprovalRequest:
    fields = orjson.loads(text)
    return ApprovalRequest(**fields | {"args": from_wire(orjson.loads(fields["args"]))})


def _read_answer(text: str) -> Answer:
    fields = orjson.loads(text)
    return Answer(**fields | {"args": None if fields["args"] is None else from_wire(orjson.loads(fields["args"]))})


def _process_mark(pid: int) -> str:
    """Return what tells a process from another one that later gets its id: its start time."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return f"{pid}"
    return f"{pid} {stat.rpartition(')')[2].split()[19]}"


def _lives(mark: str) -> bool:
    pid = int(mark.partition(" ")[0])
    if " " in mark:
        return _process_mark(pid) == mark
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
