"""The requests that wait, in the store: every host puts its own there, and approvers in other processes answer them.

An answer is taken once: the state of a request goes from `waiting` to `answered` in one statement that also checks its
digest and its expiry, and the host that holds the run checks both again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import orjson

from gloveport.approvals.request import EXPIRY_MARGIN_SECONDS, Answer, ApprovalRequest, StandingApproval
from gloveport.errors import ApprovalError, GloveportError, ValueCrossingError
from gloveport.rules.labels import LabelledRead
from gloveport.store.database import StoreFile
from gloveport.store.encryption import StoreConnection, about
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement
from gloveport.store.process_mark import lives, process_mark
from gloveport.values import encode, from_wire

RequestState = Literal["waiting", "answered", "taken", "expired", "withdrawn"]
KEPT_SECONDS = 30 * 86400.0  # for requests that have ended
WAITING = "state = 'waiting' AND expires > ?"
COLUMNS = (
    "approvals.id, digest, state, problem, approvals.process, ifnull(seen, 0),"
    " (SELECT status FROM runs WHERE runs.id = approvals.run AND obstacle IS NULL)"
)


@dataclass(frozen=True, slots=True)
class ShelvedRequest:
    """A request in the store: its state, why the host has refused the last answer, and the answer, once there is one.

    `lives` if its host runs, or if its run is in the store and goes on when it is resumed. `is_held` if its host runs.
    """

    request: ApprovalRequest
    state: RequestState
    problem: str | None
    lives: bool
    is_held: bool
    answer: Answer | None


class ShelvedAnswer(NamedTuple):
    """An answer in the store: to which request of which run, and the digest of the call that its approver was shown.

    `at` is when it was given, in seconds since 1970.
    """

    id: str
    run: str
    digest: str
    answer: Answer | None
    at: float = 0


class ApprovalShelf(StoreFile):
    """The requests in the store at a path. Each method is one transaction; call them in a thread beside an event loop."""

    # For hosts.

    def put(self, request: ApprovalRequest, host: str) -> None:
        """Put a request there, for approvers to see."""
        with self.writing() as connection:
            text = connection.seal(_request_text(request), about("approvals", "request", request.id))
            row = (request.id, host, process_mark(), request.digest, text, request.expires, request.run, request.call)
            connection.execute("DELETE FROM approvals WHERE expires < ?", (time.time() - KEPT_SECONDS,))
            columns = "id, host, process, digest, request, expires, run, call, state"
            connection.execute(
                f"INSERT INTO approvals ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting')"
                " ON CONFLICT (id) DO UPDATE SET host = excluded.host, process = excluded.process",
                row,
            )

    def find_same(self, request: ApprovalRequest) -> tuple[ApprovalRequest, Answer | None] | None:
        """Return what an earlier host of the run has asked about the same call, and the answer that nobody has taken.

        Whatever it asked about this call otherwise, such as with another definition of the tool, is void. So is an answer
        that was not taken before the request expired.
        """
        where = "run = ? AND call = ? AND state IN ('waiting', 'answered')"
        with self.writing() as connection:
            rows = connection.execute(
                f"SELECT id, digest, request, answer, expires FROM approvals WHERE {where}", (request.run, request.call)
            ).fetchall()
            now = time.time()
            same = [
                row
                for row in rows
                if row[1] == request.digest and now < row[4] + EXPIRY_MARGIN_SECONDS * (row[3] is not None)
            ]
            for row in rows:
                if row not in same[:1]:
                    connection.execute("UPDATE approvals SET state = 'withdrawn' WHERE id = ?", (row[0],))
        if not same:
            return None
        id, _, text, answer, _ = same[0]
        found = self._read_request(id, text)
        if found.digest != request.digest:
            return None
        if answer is None:
            return found, None
        given = self._read_answer(id, request.run, answer)
        return (found, given.answer) if given.digest == request.digest else None

    def answers(self, host: str) -> list[ShelvedAnswer]:
        """Return the answers that a host has not taken yet."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT id, run, answer FROM approvals WHERE state = 'answered' AND host = ?", (host,)
            )
            return [self._read_answer(*row) for row in rows.fetchall()]

    def end(self, id: str, state: RequestState, answer: Answer | None = None) -> None:
        """Note that a request waits no more. `answer` is the one that its host has taken, wherever it was given."""
        fields = None if answer is None else _taken_fields(answer)
        with self.writing() as connection:
            connection.execute("UPDATE approvals SET state = ? WHERE id = ?", (state, id))
            row = connection.execute("SELECT run, digest, answer FROM approvals WHERE id = ?", (id,)).fetchone()
            if fields is None or row is None:
                return
            run, digest, kept = row
            if kept is None or self._read_answer(id, run, kept).answer != answer:
                text = _answer_text(connection, id, digest, fields)
                connection.execute("UPDATE approvals SET answer = ? WHERE id = ?", (text, id))

    def refuse(self, id: str, problem: str) -> None:
        """Let a request wait again, because its host can't follow the answer."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE approvals SET state = 'waiting', answer = NULL, problem = ? WHERE id = ? AND state = 'answered'",
                (problem, id),
            )

    # For approvers.

    def waiting(self) -> list[ShelvedRequest]:
        """Return the requests that wait in hosts that live, the oldest first."""
        found = map(self._shelved, self._rows(f"{COLUMNS}, request, answer", WAITING, time.time()))
        return sorted((one for one in found if one.lives), key=lambda one: one.request.asked)

    def version(self) -> str:
        """Return what changes when the requests that `waiting` returns do. It reads none of them."""
        found = sorted((*row[:4], *_life(row)) for row in self._rows(COLUMNS, WAITING, time.time()))
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def find(self, id: str) -> ShelvedRequest:
        """Return a request by its id, or by the beginning of it that only one has; raise ApprovalError."""
        where = "approvals.id >= ? AND approvals.id < ? || 'g'"
        rows = self._rows(f"{COLUMNS}, request, answer", where, id, id) if id and id.isalnum() else []
        if len(rows) != 1:
            problem = "more than one request begins with" if rows else "there is no request"
            raise ApprovalError(f"{problem} {id[:40]!r}")
        return self._shelved(rows[0])

    def answer(self, seen: Mapping[str, str], answer: Answer) -> None:
        """Answer the requests that the approver has seen, by id and digest. If one can't be answered, none is."""
        fields = _answer_fields(answer)
        with self.writing() as connection:
            for id, digest in seen.items():
                text = _answer_text(connection, id, digest, fields)
                changed = connection.execute(
                    "UPDATE approvals SET state = 'answered', answer = ?, problem = NULL"
                    " WHERE id = ? AND digest = ? AND state = 'waiting' AND expires > ?",
                    (text, id, digest, time.time()),
                )
                if changed.rowcount != 1:
                    raise ApprovalError(f"the request {id[:40]} waits no more, or asks about another call than was shown")

    def taken(self, run: str) -> list[tuple[ApprovalRequest, Answer, float]]:
        """Return what approvers have answered about the calls of a run, and when, in seconds since 1970."""
        with self.reading() as connection:
            sql = "SELECT id, request, answer FROM approvals WHERE run = ? AND state = 'taken' AND answer IS NOT NULL"
            rows = connection.execute(sql, (run,)).fetchall()
        read = ((self._read_request(id, text), self._read_answer(id, run, answer)) for id, text, answer in rows)
        return [(request, given.answer, given.at) for request, given in read if given.answer is not None]

    # Standing approvals.

    def stand(self, given: StandingApproval) -> None:
        """Keep a standing approval, for all hosts."""
        row = (given.id, given.tool, given.agent, given.shape, given.approver, given.given, given.definition)
        with self.writing() as connection:
            connection.execute("INSERT INTO standing_approvals VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def standing(self, tool: str | None = None) -> list[StandingApproval]:
        """Return the standing approvals (of a tool), the oldest first."""
        where, given = ("WHERE tool = ?", (tool,)) if tool is not None else ("", ())
        columns = "tool, agent, shape, approver, given, id, definition"
        with self.reading() as connection:
            rows = connection.execute(f"SELECT {columns} FROM standing_approvals {where} ORDER BY given", given).fetchall()
        return [StandingApproval(*row[:5], id=row[5], definition=row[6]) for row in rows]

    def revoke(self, id: str, approver: str) -> None:
        """End a standing approval; raise ApprovalError if there is none."""
        change = Statement("DELETE FROM standing_approvals WHERE id = ?", (id,))
        if not EventLog.record_change(self.path, "approval-revoked", {"id": id[:40], "approver": approver}, change):
            raise ApprovalError(f"there is no standing approval {id[:40]}")

    def _rows(self, columns: str, where: str, *given: Any) -> list[Any]:
        table = "approvals LEFT JOIN hosts ON hosts.chain = approvals.host"
        with self.reading() as connection:
            return connection.execute(f"SELECT {columns} FROM {table} WHERE {where}", given).fetchall()

    def _shelved(self, row: Any) -> ShelvedRequest:
        *about, text, kept = row
        id, digest, state, problem = about[:4]
        request = self._read_request(id, text)
        if request.digest != digest:
            raise ApprovalError(f"the request {request.id} was changed since its host has written it")
        answer = None if kept is None else self._read_answer(request.id, request.run, kept).answer
        return ShelvedRequest(request, state, problem, *_life(about), answer)

    def _read_request(self, id: str, kept: str | bytes) -> ApprovalRequest:
        with self.reading() as connection:
            fields = orjson.loads(connection.unseal(kept, about("approvals", "request", id)))
        reads = tuple(LabelledRead(**one | {"labels": tuple(one["labels"])}) for one in fields.get("reads", ()))
        values = {
            "args": from_wire(orjson.loads(fields["args"])),
            "reads": reads,
            "advice": tuple(fields.get("advice", ())),
        }
        return ApprovalRequest(**fields | values)

    def _read_answer(self, id: str, run: str, kept: str | bytes) -> ShelvedAnswer:
        """Return an answer as the file has it. What no approver has written like this answers nothing."""
        try:
            with self.reading() as connection:
                fields = orjson.loads(connection.unseal(kept, about("approvals", "answer", id)))
            digest, at = str(fields.pop("digest")), float(fields.pop("at", 0))
            values = {name: from_wire(orjson.loads(fields[name])) for name in ("args", "value")}
            return ShelvedAnswer(id, run, digest, Answer(**fields | values), at)
        except (GloveportError, ValueError, TypeError, KeyError, AttributeError):
            return ShelvedAnswer(id, run, "", None)


def _life(row: Sequence[Any]) -> tuple[bool, bool]:
    """Return whether a request can still lead to its call, and whether its host runs."""
    process, seen, run_status = row[4:7]
    is_held = lives(process, seen)
    return run_status in ("running", "waiting") or (run_status is None and is_held), is_held


def _request_text(request: ApprovalRequest) -> bytes:
    return orjson.dumps(asdict(request) | {"args": encode(dict(request.args)).decode()})


def _answer_fields(answer: Answer) -> dict[str, Any]:
    args = None if answer.args is None else dict(answer.args)
    return {name: getattr(answer, name) for name in ("approved", "approver", "scope", "reason", "happened")} | {
        "args": encode(args).decode(),
        "value": encode(answer.value).decode(),
    }


def _taken_fields(answer: Answer) -> dict[str, Any] | None:
    """Return the fields of an answer; None if a value in it can't be encoded, as code that answers may give any."""
    try:
        return _answer_fields(answer)
    except ValueCrossingError:
        return None


def _answer_text(connection: StoreConnection, id: str, digest: str, fields: Mapping[str, Any]) -> str | bytes:
    text = encode({**fields, "digest": digest, "at": time.time()})
    return connection.seal(text, about("approvals", "answer", id))
