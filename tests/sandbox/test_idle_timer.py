"""Processes that only wait for work end after a while, and start again when there is some."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.sandbox import pool
from gloveport.sandbox.pool import IdleTimer
from gloveport.types import Language


class FakeLoop:
    """A loop whose time is set by hand. `woken` counts its timers."""

    def __init__(self) -> None:
        self.now, self.woken = 0.0, 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, callback: Callable[[], None]) -> FakeLoop:
        heapq.heappush(self._timers, (at, len(self._timers), callback))
        return self

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeLoop:
        return self.call_at(self.now + delay, callback)

    def cancel(self) -> None:
        self._timers.clear()

    def pass_time(self, until: float) -> None:
        while self._timers and self._timers[0][0] <= until:
            self.now, _, callback = heapq.heappop(self._timers)
            self.woken += 1
            callback()
        self.now = until


def test_what_is_not_used_for_a_while_is_idle_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, idle = FakeLoop(), []
    monkeypatch.setattr(pool.asyncio, "get_running_loop", lambda: loop)
    timer = IdleTimer(lambda: idle.append(loop.now), 300)
    for now in range(0, 1000, 10):
        loop.pass_time(now)
        timer.used()
    loop.pass_time(1289)
    assert not idle
    loop.pass_time(100_000)
    assert idle == [1290]
    assert loop.woken <= 5  # not once for each use, and not at all while idle
    timer.used()
    timer.stop()
    loop.pass_time(200_000)
    assert len(idle) == 1


@pytest.mark.integration
@pytest.mark.parametrize("language", ["typescript", "python"])
async def test_processes_that_wait_for_work_end_and_start_again(
    monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    timers: list[IdleTimer] = []
    used = IdleTimer.used

    def watched(timer: IdleTimer) -> None:
        used(timer)
        if timer not in timers:
            timers.append(timer)

    monkeypatch.setattr(IdleTimer, "used", watched)
    code = {"typescript": "const n: number = 20; return n + 1", "python": "n: int = 20\nn + 1"}[language]

    async def runs(port: Gloveport) -> None:
        for _ in range(3):
            outcome = await port.run(code, language=language)
            assert outcome.value == 21, outcome.error

    def waiting(port: Gloveport) -> list[Any]:
        ready = [state["ready"] + state["starting"] for _, state in port.sandboxes.states()]
        reading = [process for processes in port._programs.tasks._idle.values() for process in processes]
        assert port._types is not None
        checking = [one for checkers in port._types._checkers.values() for one in checkers._checkers.values()]
        return [*filter(None, ready), *reading, *checking]

    async with Gloveport(check_types=True) as port:
        await runs(port)
        async with asyncio.timeout(60):
            while not any(state["ready"] for _, state in port.sandboxes.states()):  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.05)
        checkers = [one for found in port._types._checkers.values() for one in found._checkers.values()]  # type: ignore[union-attr]
        servers = [await checker._server() for checker in checkers]
        assert len(waiting(port)) >= 3  # a sandbox, a reader, a checker
        for timer in timers:
            timer.stop()
            timer._on_idle()
        async with asyncio.timeout(60):  # those that were starting end once they have started
            while waiting(port):  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.05)
        for server in servers:
            await server._guest.wait()
        await runs(port)
        assert len(waiting(port)) >= 2
