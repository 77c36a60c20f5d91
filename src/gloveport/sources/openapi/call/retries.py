"""Sending once more what failed in passing: only requests that change nothing, a few times, within one deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import Egress, Reach, Reply, Request
from gloveport.sources.openapi.call.response import TRANSIENT_STATUSES

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 30.0


async def send(
    egress: Egress, request: Request, reach: Reach, attachments: Sequence[Attachment], *, again: bool = True
) -> Reply:
    """The reply, after at most two more attempts where the method is safe and `again` is true.

    All attempts and pauses together take no longer than the reach allows for one; a service that asks for more time than
    is left gets none, and its reply is the answer.
    """
    attempts = MAX_ATTEMPTS if again and request.method in SAFE_METHODS else 1
    deadline = time.monotonic() + reach.total_seconds
    outcome = await _attempt(egress, request, reach, attachments)
    for attempt in range(1, attempts):
        pause = pause_after(outcome, attempt, datetime.now(UTC))
        if pause is None or time.monotonic() + pause >= deadline:
            break
        await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                outcome = await _attempt(egress, request, reach, attachments)
        except TimeoutError:
            break  # what the attempt before gave is the better answer
    if isinstance(outcome, ToolError):
        raise outcome
    return outcome


async def _attempt(egress: Egress, request: Request, reach: Reach, attachments: Sequence[Attachment]) -> Reply | ToolError:
    try:
        return await egress.send(request, reach, attachments)
    except ToolError as error:
        return error


def pause_after(outcome: Reply | ToolError, attempt: int, now: datetime) -> float | None:
    """Seconds until the next attempt; None when there should be none.

    Retry-After is obeyed, a number or a date; a service that asks for more than half a minute is not waited for.
    """
    seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
    if isinstance(outcome, ToolError):
        return seconds if outcome.retryable else None
    if outcome.status not in TRANSIENT_STATUSES:
        return None
    asked = outcome.headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        seconds = float(asked[:9])
    elif asked:
        seconds = _seconds_until(asked, now, seconds)
    return seconds if seconds <= MAX_PAUSE_SECONDS else None


def _seconds_until(date: str, now: datetime, otherwise: float) -> float:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return otherwise
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())
