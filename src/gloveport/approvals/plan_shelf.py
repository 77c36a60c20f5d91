"""The plans in the store: each can be approved once, by a person, for one run that follows it."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from gloveport.approvals.request import call_digest
from gloveport.errors import ApprovalError, GloveportError
from gloveport.store.database import StoreFile
from gloveport.store.encryption import about
from gloveport.types import Plan, PlannedWrite
from gloveport.values import encode, from_wire

MAX_WAITING_PLANS = 100
MAX_LISTED_BYTES = 8 * 1024 * 1024


def plan_digest(plan: Plan) -> str:
    """Return the digest of everything that a person approves with a plan."""
    return call_digest(
        plan.run, {"agent": plan.agent, "calls": list(map(write_digest, plan.writes)), "expires": plan.expires}
    )


def write_digest(write: PlannedWrite) -> str:
    """Return a digest over the tool of a write, the definition of that tool, and the arguments."""
    return call_digest(write.tool, write.args, write.definition)


class ShelvedPlan(NamedTuple):
    """A plan in the store, who has approved it, and the run that follows it."""

    plan: Plan
    approver: str | None
    applied: str | None


class PlanShelf(StoreFile):
    """The plans in the store at a path. Each method is one transaction; call them in a thread beside an event loop."""

    def put(self, plan: Plan) -> None:
        """Keep a plan, for a person to approve."""
        with self.writing() as connection:
            connection.execute("DELETE FROM plans WHERE expires < ? AND applied IS NULL", (time.time(),))
            text = connection.seal(_plan_text(plan), about("plans", "plan", plan.run))
            row = (plan.run, plan_digest(plan), text, plan.expires)
            connection.execute("INSERT OR IGNORE INTO plans (run, digest, plan, expires) VALUES (?, ?, ?, ?)", row)

    def find(self, run: str) -> ShelvedPlan | None:
        """Return the plan that a run has made; raise ApprovalError for one that was changed since."""
        with self.reading() as connection:
            sql = "SELECT plan, digest, approver, applied FROM plans WHERE run = ?"
            row = connection.execute(sql, (run,)).fetchone()
            if row is None:
                return None
            kept, digest, approver, applied = row
            plan = _read_plan(run, connection.unseal(kept, about("plans", "plan", run)))
        if plan_digest(plan) != digest:
            raise ApprovalError(f"the plan of the run {run} was changed since its host has written it")
        return ShelvedPlan(plan, approver, applied)

    def waiting(self) -> list[Plan]:
        """Return the plans with writes that somebody can still approve, the one that expires last first.

        They are the first ones, until they have `MAX_LISTED_BYTES` together.
        """
        rows = self._waiting_rows()
        before = accumulate((size for _, _, size in rows), initial=0)
        found = [self.find(run) for (run, _, _), size in zip(rows, before, strict=False) if size < MAX_LISTED_BYTES]
        return [one.plan for one in found if one is not None and one.plan.writes]

    def version(self) -> str:
        """Return what changes when the plans that `waiting` returns do. It reads none of them."""
        return hashlib.sha256(repr(self._waiting_rows()).encode()).hexdigest()

    def _waiting_rows(self) -> list[tuple[str, str, int]]:
        columns, where = "run, digest, length(plan)", "applied IS NULL AND expires > ?"
        sql = f"SELECT {columns} FROM plans WHERE {where} ORDER BY expires DESC LIMIT ?"
        with self.reading() as connection:
            return connection.execute(sql, (time.time(), MAX_WAITING_PLANS)).fetchall()

    def approve(self, plan: Plan, approver: str, applied: str) -> None:
        """Approve a plan for the run `applied`. Raise ApprovalError if it was used, expired or changed."""
        with self.writing() as connection:
            changed = connection.execute(
                "UPDATE plans SET approver = ?, applied = ?"
                " WHERE run = ? AND digest = ? AND applied IS NULL AND expires > ?",
                (approver, applied, plan.run, plan_digest(plan), time.time()),
            )
            if changed.rowcount != 1:
                raise refused(plan)


def refused(plan: Plan) -> ApprovalError:
    """Return the error of a plan that can't be approved."""
    message = (
        f"the plan of the run {plan.run[:40]} can't be approved: it was used, has expired, or is another than was shown"
    )
    return ApprovalError(message, hint="make the plan again")


def _plan_text(plan: Plan) -> bytes:
    writes = [asdict(write) | {"args": encode(dict(write.args)).decode()} for write in plan.writes]
    return orjson.dumps({"agent": plan.agent, "writes": writes, "expires": plan.expires, "notes": plan.notes})


def _read_plan(run: str, text: bytes) -> Plan:
    try:
        told = orjson.loads(text)
        writes = tuple(map(_read_write, told["writes"]))
        return Plan(run, told["agent"], writes, told["expires"], tuple(told["notes"]))
    except (GloveportError, ValueError, TypeError, KeyError) as error:
        raise ApprovalError(f"the plan of the run {run} can't be read: {type(error).__name__}") from None


def _read_write(fields: dict[str, Any]) -> PlannedWrite:
    told: dict[str, Any] = {name: tuple(fields.get(name, ())) for name in ("unknown", "after")}
    return PlannedWrite(**fields | told | {"args": from_wire(orjson.loads(fields["args"]))})
