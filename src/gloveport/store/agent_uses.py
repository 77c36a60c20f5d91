"""What agents have used and read, over all hosts that share the store: hourly budgets, and reads by their flow labels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from gloveport.rules.labels import LabelledRead
from gloveport.store.database import StoreFile
from gloveport.store.log_items import Statement

HOUR_SECONDS = 3600.0


class HourlyBudget(NamedTuple):
    """A budget of calls in an hour, for one agent."""

    budget: str
    agent: str
    calls: int


class BudgetUses(StoreFile):
    """The uses of the hourly budgets. Each method is one transaction; call them in a thread."""

    def take(self, wanted: Sequence[HourlyBudget]) -> HourlyBudget | None:
        """Count one call in every budget. Return one that has nothing left; then nothing is counted."""
        now = time.time()
        with self.writing() as connection:
            # Uses from the future remain from a clock that was set back.
            connection.execute(
                "DELETE FROM budget_uses WHERE at NOT BETWEEN ? AND ?", (now - HOUR_SECONDS, now + HOUR_SECONDS)
            )
            for one in wanted:
                count = "SELECT count(*) FROM budget_uses WHERE budget = ? AND agent = ?"
                if connection.execute(count, (one.budget, one.agent)).fetchone()[0] >= one.calls:
                    return one
            rows = [(one.budget, one.agent, now) for one in wanted]
            connection.executemany("INSERT INTO budget_uses (budget, agent, at) VALUES (?, ?, ?)", rows)
        return None


def note_read(agent: str, read: LabelledRead, session: str = "") -> Statement:
    """Return the change that notes a read of an agent, or of a session of it."""
    return Statement(
        "INSERT INTO labelled_reads (agent, session, tool, labels, run, at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET run = excluded.run, at = excluded.at",
        (agent, session, read.tool, " ".join(read.labels), read.run, read.at),
    )


class LabelledReads(StoreFile):
    """The labelled reads in the store. Call this in a thread."""

    def of(self, agent: str, since: float) -> list[LabelledRead]:
        """Return what an agent has read since a time (seconds since 1970)."""
        return self._find("session = '' AND at >= ?", agent, since)

    def of_session(self, agent: str, session: str) -> list[LabelledRead]:
        """Return what the runs of a session have read, as long as it is kept."""
        return self._find("session = ?", agent, session)

    def _find(self, which: str, *given: object) -> list[LabelledRead]:
        with self.reading() as connection:
            sql = f"SELECT tool, labels, at, run FROM labelled_reads WHERE agent = ? AND {which}"
            rows = connection.execute(sql, given).fetchall()
        return [LabelledRead(tool, tuple(labels.split()), at, run) for tool, labels, at, run in rows]
