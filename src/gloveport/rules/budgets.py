"""Budgets: how many calls an agent may make in a run, in an hour, and at the same time."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gloveport.errors import OptionError

if TYPE_CHECKING:
    import asyncio

HOUR_SECONDS = 3600.0
MAX_BUDGET = 100_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the calls of the tools that a pattern covers, by each agent that another covers, counted for each agent."""

    pattern: str = "*"
    agent: str = "*"
    calls_per_run: int | None = None
    calls_per_hour: int | None = None
    concurrent: int | None = None
    place: str = ""

    def __post_init__(self) -> None:
        for name in BUDGET_KEYS:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value <= MAX_BUDGET):
                raise OptionError(f"{name} must be a whole number from 0 to {MAX_BUDGET:,}, not {value!r:.40}")
        if all(getattr(self, name) is None for name in BUDGET_KEYS):
            raise OptionError(f"a budget has one of {', '.join(BUDGET_KEYS)}")

    def __str__(self) -> str:
        limits = (f"{name} = {getattr(self, name)}" for name in BUDGET_KEYS if getattr(self, name) is not None)
        agent = f', agent = "{self.agent}"' if self.agent != "*" else ""
        return f'limit = "{self.pattern}"{agent}, {", ".join(limits)}'


BUDGET_KEYS = tuple(item.name for item in fields(Budget) if item.name not in ("pattern", "agent", "place"))


class BudgetCounts:
    """What has been used of the budgets: `take` counts a call before it is made, and `give_back` when it has ended.

    `take_hourly` counts a call in the budgets of an hour, over all hosts, and returns one that has nothing left. Without
    it, this object counts for itself.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.take_hourly: Callable[[Sequence[Budget], str], Awaitable[Budget | None]] | None = None
        self._clock = clock
        self._hours: dict[tuple[str, str], deque[float]] = {}
        self._running: Counter[tuple[str, str]] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    async def take(self, budgets: Sequence[Budget], agent: str, used: Counter[str]) -> Budget | None:
        """Count a call, also in `used`, which belongs to its run; wait while too many run at the same time.

        Return a budget that has nothing left; then nothing is counted.
        """
        from asyncio import get_running_loop  # here: a command that only reads the settings does not load it

        keys = [(str(budget), agent) for budget in budgets]
        counted = list(zip(budgets, keys, strict=True))
        while any(one.concurrent and self._running[key] >= one.concurrent for one, key in counted):
            turn: asyncio.Future[None] = get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        for budget, key in counted:
            if budget.concurrent == 0 or self._is_used_up(budget, key, used):
                return budget
        hourly = [budget for budget in budgets if budget.calls_per_hour is not None]
        for budget, key in counted:
            used[key[0]] += 1
            self._running[key] += 1
            if budget.calls_per_hour is not None and self.take_hourly is None:
                self._hours[key].append(self._clock())
        if not hourly or self.take_hourly is None:
            return None
        used_up: Budget | None = hourly[0]
        try:
            used_up = await self.take_hourly(hourly, agent)
        finally:
            if used_up is not None:
                used.subtract(key for key, _ in keys)
                self.give_back(budgets, agent)
        return used_up

    def _is_used_up(self, budget: Budget, key: tuple[str, str], used: Counter[str]) -> bool:
        if budget.calls_per_run is not None and used[key[0]] >= budget.calls_per_run:
            return True
        if budget.calls_per_hour is None or self.take_hourly is not None:
            return False
        hour = self._hours.setdefault(key, deque())
        while hour and hour[0] <= self._clock() - HOUR_SECONDS:
            hour.popleft()
        return len(hour) >= budget.calls_per_hour

    def give_back(self, budgets: Sequence[Budget], agent: str) -> None:
        """Note that a counted call has ended."""
        for budget in budgets:
            self._running[str(budget), agent] -= 1
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
