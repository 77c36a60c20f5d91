"""Limits hold without the event loop: the watchdog ends a process from its own thread (threats S11, S12, S13)."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gloveport import Gloveport, Outcome
from gloveport.sandbox.process_status import held_bytes
from gloveport.sandbox.watchdog import ExceededLimit, Watch, Watchdog, Watched
from gloveport.sandbox.worker import Worker
from gloveport.types import MIB, Limits

pytestmark = pytest.mark.integration

END_SECONDS = 120.0  # for an event that comes in milliseconds on a machine with time
SPINNING = "while True: pass"
WAITING = "input()"
# Each step holds 8 MB more in pages that are read-only, which RLIMIT_DATA does not count.
FILLING = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
kept, size = [], 8 << 20
while True:
    place = libc.mmap(None, ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0))
    ctypes.memset(place, 1, size)
    libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(size), 1)
"""


class Process:
    """A child process that runs some Python, and when it has ended."""

    def __init__(self, code: str) -> None:
        self._child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE)
        self.pid = self._child.pid
        self.pidfd = os.pidfd_open(self.pid)

    def has_ended(self, *, within: float = END_SECONDS) -> bool:
        return _has_ended(self.pidfd, within)

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()
        os.close(self.pidfd)


def _has_ended(pidfd: int, seconds: float) -> bool:
    waiter = select.poll()
    waiter.register(pidfd, select.POLLIN)
    return bool(waiter.poll(seconds * 1000))


@pytest.fixture
def start() -> Iterator[Callable[[str], Process]]:
    started: list[Process] = []

    def start(code: str) -> Process:
        started.append(Process(code))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture(scope="module")
def watchdog() -> Watchdog:
    return Watchdog()


@pytest.mark.parametrize(
    ("code", "limits", "exceeded"),
    [
        (WAITING, {"deadline": 0.0}, "time-limit"),
        (SPINNING, {"max_cpu_seconds": 0.2}, "cpu-limit"),
        (FILLING, {"max_held_bytes": 256.0 * MIB}, "memory-limit"),
        (WAITING, {"max_threads": 0.0}, "thread-limit"),
    ],
)
def test_a_process_over_a_limit_is_ended_with_the_reason(
    start: Callable[[str], Process], watchdog: Watchdog, code: str, limits: dict[str, float], exceeded: ExceededLimit
) -> None:
    process, told = start(code), threading.Event()
    reasons: list[ExceededLimit] = []

    def on_exceeded(reason: ExceededLimit) -> None:
        reasons.append(reason)
        told.set()

    watch = watchdog.watch(Watched(process.pid, process.pidfd, on_exceeded=on_exceeded, **limits))
    assert process.has_ended()
    assert watch.exceeded == exceeded
    assert told.wait(END_SECONDS)
    assert reasons == [exceeded]


def test_a_process_within_its_limits_lives_and_a_stopped_watch_ends_nothing(
    start: Callable[[str], Process], watchdog: Watchdog
) -> None:
    within, stopped, over = start(WAITING), start(WAITING), start(WAITING)
    limits = {"max_cpu_seconds": 60.0, "max_held_bytes": 256.0 * MIB, "max_threads": 128.0}
    lasting = watchdog.watch(Watched(within.pid, within.pidfd, deadline=time.monotonic() + 600, **limits))
    soon = time.monotonic() + 0.2
    watchdog.watch(Watched(stopped.pid, stopped.pidfd, deadline=soon)).stop()
    watchdog.watch(Watched(over.pid, over.pidfd, deadline=soon))
    assert over.has_ended()
    assert not within.has_ended(within=0)
    assert not stopped.has_ended(within=0)
    assert lasting.exceeded is None
    lasting.stop()


def test_the_wall_clock_can_be_paused_and_its_deadline_moved(start: Callable[[str], Process], watchdog: Watchdog) -> None:
    paused, moved, other = start(WAITING), start(WAITING), start(WAITING)
    soon = time.monotonic() + 0.2
    watches = [watchdog.watch(Watched(process.pid, process.pidfd, deadline=soon)) for process in (paused, moved, other)]
    watches[0].pause()
    watches[1].set_deadline(time.monotonic() + 600)
    assert other.has_ended()
    assert not paused.has_ended(within=0)
    assert not moved.has_ended(within=0)
    watches[0].resume()
    watches[1].set_deadline(time.monotonic())
    assert paused.has_ended()
    assert moved.has_ended()
    assert [watch.exceeded for watch in watches] == ["time-limit"] * 3


def test_a_paused_process_is_still_bound_by_its_other_limits(start: Callable[[str], Process], watchdog: Watchdog) -> None:
    process = start(SPINNING)
    watch = watchdog.watch(Watched(process.pid, process.pidfd, deadline=time.monotonic() + 600, max_cpu_seconds=0.2))
    watch.pause()
    assert process.has_ended()
    assert watch.exceeded == "cpu-limit"


def test_a_process_that_ended_by_itself_exceeded_nothing(start: Callable[[str], Process], watchdog: Watchdog) -> None:
    ended, over = start("pass"), start(WAITING)
    assert ended.has_ended()
    watch = watchdog.watch(Watched(ended.pid, ended.pidfd, deadline=time.monotonic()))
    watchdog.watch(Watched(over.pid, over.pidfd, deadline=time.monotonic() + 0.1))
    assert over.has_ended()
    assert watch.exceeded is None


def test_nothing_is_polled_while_nothing_is_watched(
    start: Callable[[str], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, checks = start(WAITING), 0
    own = Watchdog()
    check = Watch.check

    def counted(self: Watch, now: float) -> ExceededLimit | None:
        nonlocal checks
        checks += 1
        return check(self, now)

    monkeypatch.setattr(Watch, "check", counted)
    watch = own.watch(Watched(process.pid, process.pidfd, deadline=time.monotonic() + 600))
    _wait_until(lambda: checks > 1)
    watch.stop()
    _wait_until(lambda: own._armed_for > time.monotonic() + 3600)  # the timer is off
    assert not process.has_ended(within=0)


def _wait_until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + END_SECONDS
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_forked_host_has_a_watchdog_of_its_own(start: Callable[[str], Process], watchdog: Watchdog) -> None:
    first, second = start(WAITING), start(WAITING)
    watch = watchdog.watch(Watched(first.pid, first.pidfd, deadline=time.monotonic() + 600))
    process = multiprocessing.get_context("fork").Process(target=_watch_in_child, args=(watchdog, second))
    process.start()
    process.join(END_SECONDS)
    assert process.exitcode == 0
    assert second.has_ended(within=0)
    assert not first.has_ended(within=0)
    watch.stop()


def _watch_in_child(watchdog: Watchdog, process: Process) -> None:
    watchdog.forget()  # as the hook does for the watchdog of the process
    watchdog.watch(Watched(process.pid, process.pidfd, deadline=time.monotonic()))
    assert process.has_ended()


# ── runs whose loop stands still ──


class StandingStill:
    """A tool that stops the event loop of its host until the guest that called it is dead, or `END_SECONDS`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, busy: bool) -> None:
        self.peak = 0
        self.died = threading.Event()
        self._busy = busy
        self._pidfd = self._pid = -1
        limit = Worker.limit

        def noted(worker: Worker, limits: Limits, on_exceeded: Callable[[], None]) -> None:
            self._pid, self._pidfd = worker.guest.pid, os.dup(worker.guest.pidfd)
            limit(worker, limits, on_exceeded)

        monkeypatch.setattr(Worker, "limit", noted)

    async def stand_still(self) -> None:
        """Stop the loop as soon as the reply to this call was sent."""
        asyncio.get_running_loop().call_later(0.01, self._stand_still)

    def _stand_still(self) -> None:
        threading.Thread(target=self._observe).start()
        end = time.monotonic() + END_SECONDS
        if self._busy:
            while not self.died.is_set() and time.monotonic() < end:
                pass
        else:
            self.died.wait(END_SECONDS)

    def _observe(self) -> None:
        end = time.monotonic() + END_SECONDS
        while not (ended := _has_ended(self._pidfd, 0.001)) and time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.peak = max(self.peak, held_bytes(self._pid))
        os.close(self._pidfd)
        if ended:
            self.died.set()


@pytest.mark.parametrize("busy", [False, True], ids=["asleep", "busy"])
@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        (WAITING.replace("input()", "await asyncio.sleep(600)"), {"wall_seconds": 3}, "time-limit"),
        (SPINNING, {"wall_seconds": 3}, "time-limit"),
        (SPINNING, {"cpu_seconds": 0.5}, "cpu-limit"),
        (FILLING, {"memory_mb": 256}, "memory-limit"),
    ],
    ids=["wall clock while waiting", "wall clock", "CPU time", "memory of read-only pages"],
)
async def test_a_run_over_a_limit_is_ended_while_the_loop_stands_still(
    monkeypatch: pytest.MonkeyPatch, code: str, limits: dict[str, float], error: str, busy: bool
) -> None:
    standing = StandingStill(monkeypatch, busy=busy)
    async with Gloveport(tools=[standing.stand_still], spare=0) as port:
        outcome: Outcome = await port.run(
            f"import asyncio\nawait tools.stand_still()\n{code}", language="python", engine="cpython", limits=limits
        )
    assert standing.died.is_set()
    assert outcome.error is not None
    assert outcome.error.code == error, outcome.error
    assert standing.peak < 1.5 * 256 * MIB
