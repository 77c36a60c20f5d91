"""Runs that go on while they wait for a person: whoever started one gets the outcome `waiting`, and the end later.

A run that waits keeps its process for a while. Then it is released: it is in the store, and goes on when it is resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import ApprovalRequest
from gloveport.host.runs.run_request import NO_INPUT, RunPort, RunRequest, closed_outcome
from gloveport.large_values import is_large
from gloveport.types import Outcome
from gloveport.values import encode

SETTLE_SECONDS = 0.2  # without a new call, before a run counts as waiting: calls made together are shown together
MAX_ENDED_RUNS = 100  # that are kept; twice as many until they are looked at


class HeldRun:
    """One run that may wait: its task, and who wants to know its outcome."""

    def __init__(self, request: RunRequest, desk: ApprovalDesk, hold_seconds: float) -> None:
        self.request = request
        self._desk = desk
        self._hold_seconds = hold_seconds
        self.task: asyncio.Task[Outcome] | None = None
        self.is_released = False
        self._released_outcome: Outcome | None = None
        self._port: RunPort | None = None
        self._callers: set[asyncio.Future[None]] = set()
        self._settling: asyncio.TimerHandle | None = None
        self._holding: asyncio.TimerHandle | None = None
        self._releasing: asyncio.Future[bool] | None = None
        self._storing: asyncio.Future[None] | None = None

    def start(self, work: Callable[[HeldRun], Coroutine[Any, Any, Outcome]], on_end: Callable[[HeldRun], None]) -> None:
        """Start the run. When it has ended, call `on_end`."""
        self.task = asyncio.ensure_future(self._do(work))
        self.task.add_done_callback(lambda _: self._ended(on_end))

    async def _do(self, work: Callable[[HeldRun], Coroutine[Any, Any, Outcome]]) -> Outcome:
        try:
            return await work(self)
        finally:
            self._tell_callers()  # a turn of the loop before the callbacks of the task

    def follow(self, port: RunPort) -> None:
        """Follow the calls of the run, and be able to release it."""
        self._port = port
        port.bridge.approvals.on_change = self.look_again

    def look_again(self) -> None:
        """Note that something has changed that may end or begin its waiting."""
        self._stop_timers()
        if self.is_waiting:
            loop = asyncio.get_running_loop()
            if self._callers:
                self._settling = loop.call_later(SETTLE_SECONDS, self._settle)
            self._holding = loop.call_later(self._hold_seconds, self._release_soon)

    @property
    def is_waiting(self) -> bool:
        """Whether nothing but a person can bring the run on: an answer counts at once, before its call goes on."""
        return self._port is not None and bool(self._requests) and not self._port.bridge.is_calling

    def _settle(self) -> None:
        self._storing = asyncio.ensure_future(self._tell_when_stored())

    async def _tell_when_stored(self) -> None:
        """Tell the callers once others can find the requests: whoever hears of one may answer it at once."""
        if self._desk.when_stored is not None:
            await self._desk.when_stored()
        if self.is_waiting:
            self._tell_callers()

    def _release_soon(self) -> None:
        self._releasing = asyncio.ensure_future(self.release())

    async def release(self) -> bool:
        """End the process of a run that waits, if all of it is in the store; return whether it is released."""
        recorder = None if self._port is None else self._port.recorder
        if self.task is None or self._port is None or recorder is None or not self.is_waiting:
            return False
        if not await recorder.is_complete():
            self.look_again()
            return False
        if not self.is_waiting or self.is_released:
            return self.is_released
        self.is_released = True
        self._released_outcome = self._port.waiting_outcome(self._requests)
        recorder.stop()
        self._port.bridge.close()
        self._desk.release(self.request.run)
        self.task.cancel()
        return True

    async def settled(self) -> None:
        """Return when the run has ended, or waits for a person and makes no other call."""
        if self.task is not None and self.task.done():
            return
        caller: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._callers.add(caller)
        self.look_again()
        try:
            await caller
        finally:
            self._callers.discard(caller)

    @property
    def _requests(self) -> tuple[str, ...]:
        return tuple(one.id for one in self._desk.waiting if one.run == self.request.run)

    @property
    def outcome(self) -> Outcome:
        """How it has ended, or that it waits."""
        if self._released_outcome is not None:
            return self._released_outcome
        if self.task is None or not self.task.done():
            waiting = Outcome(self.request.run, "waiting", waiting=self._requests)
            return waiting if self._port is None else self._port.waiting_outcome(self._requests)
        return closed_outcome(self.request) if self.task.cancelled() else self.task.result()

    @property
    def is_large(self) -> bool:
        """Whether the run, which has ended, holds much memory."""
        has_outcome = self.task is None or self.task.cancelled() or self.task.exception() is None
        return is_large((self.request.code, self.request.input)) or (has_outcome and is_large_outcome(self.outcome))

    def _ended(self, on_end: Callable[[HeldRun], None]) -> None:
        self._stop_timers()
        self._tell_callers()
        on_end(self)

    def _tell_callers(self) -> None:
        for caller in self._callers:
            if not caller.done():
                caller.set_result(None)

    def _stop_timers(self) -> None:
        for timer in (self._settling, self._holding):
            if timer is not None:
                timer.cancel()
        self._settling = self._holding = None


class HeldRuns:
    """The runs of a port that may wait. Each belongs to the agent that started it."""

    def __init__(self, desk: ApprovalDesk, hold_seconds: float, on_release: Callable[[str], None]) -> None:
        self._desk = desk
        self._hold_seconds = hold_seconds
        self._on_release = on_release
        self._runs: dict[str, HeldRun] = {}
        self._look_above = 2 * MAX_ENDED_RUNS
        self._released: dict[bytes, str] = {}  # by what makes two runs the same
        desk.listen(self._asked_or_answered)

    def _asked_or_answered(self, what: object, request: ApprovalRequest) -> None:
        if held := self._runs.get(request.run):
            held.look_again()

    async def start(self, request: RunRequest, work: Callable[[HeldRun], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Start a run, and return its outcome or `waiting`. Cancelling this cancels the run."""
        held = self.begin(request, work)
        try:
            return await self._outcome(held)
        except asyncio.CancelledError:
            self._runs.pop(request.run, None)
            if held.task is not None:
                held.task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await held.task
            raise

    def begin(self, request: RunRequest, work: Callable[[HeldRun], Coroutine[Any, Any, Outcome]]) -> HeldRun:
        """Start a run for which nobody waits."""
        held = HeldRun(request, self._desk, self._hold_seconds)
        held.start(work, self._forget_released)
        self._runs[request.run] = held
        return held

    def same(self, request: RunRequest) -> str | None:
        """Return a run of the same program with the same input by the same agent that waits, here or in the store."""
        asked = {one.run: self._runs.get(one.run) for one in self._desk.waiting}  # few, beside all that are held
        waiting = {_key(held.request): run for run, held in asked.items() if held is not None and held.is_waiting}
        if not waiting and not self._released:
            return None
        key = _key(request)
        return waiting.get(key) or self._released.get(key)

    def find(self, run: str, agent: str) -> HeldRun | None:
        """Return a run of an agent that is held here."""
        held = self._runs.get(run)
        return held if held is not None and held.request.agent == agent else None

    async def resume(self, held: HeldRun) -> Outcome:
        """Return the outcome of a run, or `waiting`. It never answers what is asked."""
        if self._desk.take_stored_answers is not None and held.is_waiting:
            await self._desk.take_stored_answers()
        return await self._outcome(held)

    async def followed(self, run: str, agent: str) -> Outcome | None:
        """Return the end of a run that is held here; None once it is released."""
        held = self.find(run, agent)
        if held is None or held.task is None:
            return None
        await asyncio.wait([held.task])
        return None if held.is_released else held.outcome

    async def close(self) -> None:
        """Release every run that waits, and end the others."""
        runs, self._runs = list(self._runs.values()), {}
        tasks = [held.task for held in runs if held.task is not None]
        for held in runs:
            if not await held.release() and held.task is not None:
                held.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _outcome(self, held: HeldRun) -> Outcome:
        await held.settled()
        self._forget_ended()
        return held.outcome

    def _forget_released(self, held: HeldRun) -> None:
        run = held.request.run
        if not held.is_released:
            if held.request.resumed is not None:
                self._released = {key: known for key, known in self._released.items() if known != run}
            if held.is_large:
                self._runs.pop(run, None)  # the store has its outcome
        elif self._runs.pop(run, None) is not None:
            if held.request.resumed is None:
                self._released[_key(held.request)] = run
            self._on_release(run)

    def _forget_ended(self) -> None:
        """Keep the outcomes of the latest runs: a client whose connection broke may ask for one again."""
        if len(self._runs) > self._look_above:
            ended = [run for run, held in self._runs.items() if held.task is not None and held.task.done()]
            for run in ended[:-MAX_ENDED_RUNS]:
                del self._runs[run]
            self._look_above = len(self._runs) + MAX_ENDED_RUNS  # not at each of many short runs


def is_large_outcome(outcome: Outcome) -> bool:
    """Return whether an outcome holds so much that many of them would not fit into memory."""
    texts = [log.text for log in outcome.logs]
    error = None if outcome.error is None else (outcome.error.message, outcome.error.data)
    writes = [write.args for write in outcome.plan.writes] if outcome.plan is not None else []
    return is_large((outcome.value, outcome.emitted, texts, [call.args for call in outcome.calls], error, writes))


def _key(request: RunRequest) -> bytes:
    """Return a short digest of what makes two runs the same: ten thousand of them may wait."""
    about = request.agent, request.code, request.language, dict(request.env), type(request.plan).__name__, request.session
    try:
        content = encode([*about, *([] if request.input is NO_INPUT else [request.input])])
    except Exception:  # noqa: BLE001 - an input that can't cross ends the run; it waits for nothing
        content = request.run.encode()
    return hashlib.sha256(content).digest()[:16]


async def run_to_end(
    request: RunRequest, run: Callable[[RunRequest, HeldRun | None], Coroutine[Any, Any, Outcome]], held: HeldRun | None
) -> Outcome:
    """Run a program, and tell whoever brought tools when no call of them can come any more."""
    try:
        return await run(request, held)
    finally:
        if request.tools is not None:
            request.tools.on_end()
