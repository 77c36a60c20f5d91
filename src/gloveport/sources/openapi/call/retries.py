"""Send a request, and retry it after a transient failure: only a safe method, a few times, within one deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import Egress, Reach, Reply, Request
from gloveport.policy.egress.values import Renew
from gloveport.sources.openapi.call.response import TRANSIENT_STATUSES

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 30.0


async def send(
    egress: Egress,
    request: Request,
    reach: Reach,
    attachments: Sequence[Attachment],
    renew: Renew | None = None,
    *,
    retry: bool = True,
) -> Reply:
    """Return the reply, after up to two retries if the method is safe and `retry` is True.

    All attempts and pauses together take no longer than the reach allows for one. When a service asks for a longer pause
    than the time that is left, its reply is returned.
    """
    attempts = MAX_ATTEMPTS if retry and request.method in SAFE_METHODS else 1
    deadline = time.monotonic() + reach.total_seconds
    outcome = await _attempt(egress, request, reach, attachments, renew)
    for attempt in range(1, attempts):
        pause = pause_after(outcome, attempt, datetime.now(UTC))
        if pause is None or time.monotonic() + pause >= deadline:
            break
        await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                outcome = await _attempt(egress, request, reach, attachments, renew)
        except TimeoutError:
            break  # the outcome of the previous attempt says more than a timeout
    if isinstance(outcome, ToolError):
        raise outcome
    return outcome


async def _attempt(
    egress: Egress, request: Request, reach: Reach, attachments: Sequence[Attachment], renew: Renew | None
) -> Reply | ToolError:
    try:
        return await egress.send(request, reach, attachments, renew)
    except ToolError as error:
        return error


def pause_after(outcome: Reply | ToolError, attempt: int, now: datetime) -> float | None:
    """Return the seconds until the next attempt; None when there should be none.

    Retry-After is obeyed, be it a number or a date. There is no retry when it asks for more than half a minute.
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
