"""The requests that wait, in the store: every host puts its own there, and approvers in other processes answer them.

An answer is taken once: the state of a request goes from `waiting` to `answered` in one statement that also checks its
digest and its expiry, and the host that holds the run checks both again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import orjson

from gloveport.approvals.request import EXPIRY_MARGIN_SECONDS, Answer, ApprovalRequest, StandingApproval
from gloveport.errors import ApprovalError, GloveportError
from gloveport.rules.labels import LabelledRead
from gloveport.store.database import StoreFile
from gloveport.store.encryption import about
from gloveport.store.event_log import EventLog, Statement
from gloveport.store.process_mark import lives, process_mark
from gloveport.values import encode, from_wire

RequestState = Literal["waiting", "answered", "taken", "expired", "withdrawn"]
KEPT_SECONDS = 30 * 86400.0  # for requests that have ended


@dataclass(frozen=True, slots=True)
class ShelvedRequest:
    """A request in the store: its state, and why the host has refused the last answer.

    `lives` if its host runs, or if its run is in the store and goes on when it is resumed. `is_held` if its host runs.
    """

    request: ApprovalRequest
    state: RequestState
    problem: str | None
    lives: bool
    is_held: bool


class ShelvedAnswer(NamedTuple):
    """An answer in the store: to which request of which run, and the digest of the call that its approver was shown."""

    id: str
    run: str
    digest: str
    answer: Answer | None


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

    def end(self, id: str, state: RequestState) -> None:
        """Note that a request waits no more."""
        with self.writing() as connection:
            connection.execute("UPDATE approvals SET state = ? WHERE id = ?", (state, id))

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
        found = (self._shelved(row) for row in self._rows("state = 'waiting' AND expires > ?", time.time()))
        return sorted((one for one in found if one.lives), key=lambda one: one.request.asked)

    def find(self, id: str) -> ShelvedRequest:
        """Return a request by its id, or by the beginning of it that only one has; raise ApprovalError."""
        rows = self._rows("approvals.id >= ? AND approvals.id < ? || 'g'", id, id) if id and id.isalnum() else []
        if len(rows) != 1:
            problem = "more than one request begins with" if rows else "there is no request"
            raise ApprovalError(f"{problem} {id[:40]!r}")
        return self._shelved(rows[0])

    def answer(self, seen: Mapping[str, str], answer: Answer) -> None:
        """Answer the requests that the approver has seen, by id and digest. If one can't be answered, none is."""
        values = {"args": None if answer.args is None else dict(answer.args), "value": answer.value}
        fields = asdict(answer) | {name: encode(value).decode() for name, value in values.items()}
        with self.writing() as connection:
            for id, digest in seen.items():
                text = connection.seal(orjson.dumps(fields | {"digest": digest}), about("approvals", "answer", id))
                changed = connection.execute(
                    "UPDATE approvals SET state = 'answered', answer = ?, problem = NULL"
                    " WHERE id = ? AND digest = ? AND state = 'waiting' AND expires > ?",
                    (text, id, digest, time.time()),
                )
                if changed.rowcount != 1:
                    raise ApprovalError(f"the request {id[:40]} waits no more, or asks about another call than was shown")

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

    def _rows(self, where: str, *given: Any) -> list[Any]:
        status = "(SELECT status FROM runs WHERE runs.id = approvals.run AND obstacle IS NULL)"
        columns = f"approvals.id, request, state, problem, approvals.process, digest, ifnull(seen, 0), {status}"
        table = "approvals LEFT JOIN hosts ON hosts.chain = approvals.host"
        with self.reading() as connection:
            return connection.execute(f"SELECT {columns} FROM {table} WHERE {where}", given).fetchall()

    def _shelved(self, row: Any) -> ShelvedRequest:
        id, text, state, problem, process, digest, seen, run_status = row
        request = self._read_request(id, text)
        if request.digest != digest:
            raise ApprovalError(f"the request {request.id} was changed since its host has written it")
        is_held = lives(process, seen)
        goes_on = run_status in ("running", "waiting")
        return ShelvedRequest(request, state, problem, goes_on or (run_status is None and is_held), is_held)

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
            digest = str(fields.pop("digest"))
            values = {name: from_wire(orjson.loads(fields[name])) for name in ("args", "value")}
            return ShelvedAnswer(id, run, digest, Answer(**fields | values))
        except (GloveportError, ValueError, TypeError, KeyError, AttributeError):
            return ShelvedAnswer(id, run, "", None)


def _request_text(request: ApprovalRequest) -> bytes:
    return orjson.dumps(asdict(request) | {"args": encode(dict(request.args)).decode()})
