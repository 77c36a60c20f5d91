"""Sampling: ours and the floor's in turn."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable

Row = tuple[str, str, str, str, str]
"""What was measured, our figure, the floor's figure, the ratio, the bar."""


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


async def interleaved(
    rounds: int, ours: Callable[[], Awaitable[float]], floor: Callable[[], Awaitable[float]]
) -> tuple[list[float], list[float]]:
    """Return the samples of both, taken in turn. The first of each is dropped."""
    left, right = [], []
    for index in range(rounds + 1):
        first, second = (ours, floor) if index % 2 else (floor, ours)
        a, b = await first(), await second()
        if index:
            left.append(a if first is ours else b)
            right.append(b if first is ours else a)
    return left, right
