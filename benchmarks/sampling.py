"""How samples are taken: ours and the floor's in turn, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable

Row = tuple[str, str, str, str, str]
"""What was measured, ours, the floor's, the ratio, the bar."""


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def p95(values: list[float]) -> float:
    """The one that 95 of 100 stay under, as far as there are so many."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


async def interleaved(
    rounds: int, ours: Callable[[], Awaitable[float]], floor: Callable[[], Awaitable[float]]
) -> tuple[list[float], list[float]]:
    """Samples of both, taken in turn; the first of each is thrown away."""
    left, right = [], []
    for index in range(rounds + 1):
        first, second = (ours, floor) if index % 2 else (floor, ours)
        a, b = await first(), await second()
        if index:
            left.append(a if first is ours else b)
            right.append(b if first is ours else a)
    return left, right
