"""The calls of the last hour that count against a budget, over all hosts that share the store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from gloveport.store.database import StoreFile

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
