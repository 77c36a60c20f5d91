"""Runs that go on while they wait for a person: whoever started one gets the outcome `waiting`, and the end later.

A run is held in this process. It ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import ApprovalRequest
from gloveport.errors import OptionError
from gloveport.host.run_request import NO_INPUT, RunRequest, closed_outcome
from gloveport.types import CallEvent, CallRecord, Outcome
from gloveport.values import encode

SETTLE_SECONDS = 0.2  # without a new call, before a run counts as waiting: calls made together are shown together
MAX_ENDED_RUNS = 100


class HeldRun:
    """One run that may wait: its task, and which of its calls wait or run now."""

    def __init__(self, request: RunRequest, desk: ApprovalDesk) -> None:
        self.request = request
        self._desk = desk
        self.task: asyncio.Task[Outcome] | None = None
        self.calls: dict[int, CallRecord] = {}
        self._changed = asyncio.Event()

    def call_happened(self, kind: CallEvent, record: CallRecord) -> None:
        """Follow the calls of the run."""
        self.calls[record.id] = record
        self.look_again()

    def look_again(self) -> None:
        """Note that something has changed that may end or begin its waiting."""
        self._changed.set()

    @property
    def is_waiting(self) -> bool:
        """Whether nothing but a person can bring the run on: an answer counts at once, before its call goes on."""
        asks = any(request.run == self.request.run for request in self._desk.waiting)
        return asks and all(record.status != "running" for record in self.calls.values())

    async def settled(self) -> None:
        """Return when the run waits for a person and makes no other call."""
        while True:
            self._changed.clear()
            if not self.is_waiting:
                await self._changed.wait()
                continue
            try:
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                return


class HeldRuns:
    """The runs of a port that may wait. Each belongs to the agent that started it."""

    def __init__(self, desk: ApprovalDesk) -> None:
        self._desk = desk
        self._runs: dict[str, HeldRun] = {}
        desk.listen(self._asked_or_answered)

    def _asked_or_answered(self, what: object, request: ApprovalRequest) -> None:
        if held := self._runs.get(request.run):
            held.look_again()

    async def start(self, request: RunRequest, work: Callable[[HeldRun], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Start a run, and return its outcome or `waiting`. Cancelling this cancels the run."""
        held = HeldRun(request, self._desk)
        held.task = asyncio.ensure_future(work(held))
        self._runs[request.run] = held
        try:
            return await self._outcome(held)
        except asyncio.CancelledError:
            self._runs.pop(request.run, None)
            held.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await held.task
            raise

    def same(self, request: RunRequest) -> HeldRun | None:
        """Return a run of the same program with the same input by the same agent that waits."""
        key = _key(request)
        return next((held for held in self._runs.values() if held.is_waiting and _key(held.request) == key), None)

    async def resume(self, run: str, agent: str) -> Outcome:
        """Return the outcome of a run, or `waiting`. It never answers what is asked."""
        held = self._runs.get(run)
        if held is None or held.request.agent != agent:
            hint = "a run that waits ends with the process that runs it: run the program again"
            raise OptionError(f"no run {run[:40]!r} waits here", hint=hint)
        return await self._outcome(held)

    async def close(self) -> None:
        """End every run that waits."""
        runs, self._runs = list(self._runs.values()), {}
        tasks = [held.task for held in runs if held.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _outcome(self, held: HeldRun) -> Outcome:
        assert held.task is not None
        settled = asyncio.ensure_future(held.settled())
        try:
            await asyncio.wait({held.task, settled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()
        if held.task.done():
            self._forget_ended()
            return closed_outcome(held.request) if held.task.cancelled() else held.task.result()
        run = held.request.run
        waiting = tuple(one.id for one in self._desk.waiting if one.run == run)
        return Outcome(run, "waiting", calls=tuple(held.calls.values()), waiting=waiting)

    def _forget_ended(self) -> None:
        """Keep the outcomes of the latest runs: a client whose connection broke may ask for one again."""
        ended = [run for run, held in self._runs.items() if held.task is not None and held.task.done()]
        for run in ended[:-MAX_ENDED_RUNS] if len(ended) > MAX_ENDED_RUNS else []:
            del self._runs[run]


def _key(request: RunRequest) -> tuple[str, bytes]:
    try:
        given = [] if request.input is NO_INPUT else [request.input]
        content = encode([request.code, request.language, given, dict(request.env)])
    except Exception:  # noqa: BLE001 - an input that can't cross ends the run; it waits for nothing
        content = request.run.encode()
    return request.agent, hashlib.sha256(content).digest()
