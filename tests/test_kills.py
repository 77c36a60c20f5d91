"""Runs that are killed at random moments leave nothing behind, and the pool refills (threats S15, S17)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gloveport import Gloveport, Outcome
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS
from gloveport.sandbox.launcher import Launcher
from gloveport.sandbox.run_attempt import RunAttempt
from tests.engines import ENGINES, Engine, Per, said
from tests.leftovers import DEADLINE, Leftovers, assert_nothing_left, settled, strangers

ROUNDS = 2
KILLS = int(os.environ.get("KILLS", "300"))  # `make kills` asks for 1,000
CLOSED = 20  # of them by closing the whole Gloveport, with new fork servers each time
CRASHES = 200
SEED = 20_251_115
AGAIN = object()  # returned by a strike that must be repeated at the next tick, if there is one
READING = (NUMBERS[MACHINE]["read"], NUMBERS[MACHINE]["recvfrom"])
# Between two ticks it computes, logs, waits for a timer or waits for a call, so a tick can be any of these moments.
PROGRAM = """
for (let i = 0; ; i++) {
  await tools.tick();
  if (i % 4 === 0) console.log("x".repeat(100));
  if (i % 4 === 1) await new Promise((r) => setTimeout(r, 1));
  if (i % 4 === 2) for (let j = 0; j < 1e5; j++) Math.sqrt(j);
  if (i % 4 === 3) await Promise.all([tools.tick(), tools.slow()]);
}
"""
PROGRAM_PY = """
import asyncio, math
i = 0
while True:
    await tools.tick()
    if i % 4 == 0: print("x" * 100)
    if i % 4 == 1: await asyncio.sleep(0.001)
    if i % 4 == 2: [math.sqrt(j) for j in range(10000)]
    if i % 4 == 3: await asyncio.gather(tools.tick(), tools.slow())
    i += 1
"""

# Their own loop: libraries of other tests keep tasks on theirs for ever.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.integration]


@dataclass
class Clock:
    """Counts the ticks of the running program, and strikes at one of them."""

    strike_at: int = -1
    strike: Callable[[], object] = lambda: None
    ticks: int = 0
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def set(self, at: int, strike: Callable[[], object]) -> None:
        self.ticks, self.strike_at, self.strike = 0, at, strike

    async def tick(self) -> int:
        """Count."""
        self.ticks += 1
        if self.ticks == self.strike_at and self.strike() is AGAIN:
            self.strike_at += 1
        return self.ticks

    async def slow_call(self) -> int:
        """Take a few turns of the loop."""
        for _ in range(3):
            await asyncio.sleep(0)
        return 1


class Watch:
    """Tracks the process that runs the program now, and those that are starting."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.guest: Guest | None = None
        self.newborn: Guest | None = None
        self.kill_the_next_newborn = False
        watch, start, spawn = self, RunAttempt.run, Launcher.spawn

        async def run(attempt: RunAttempt, *args: Any) -> Any:
            watch.guest = attempt._worker.guest
            return await start(attempt, *args)

        async def spawn_watched(launcher: Launcher) -> Guest:
            guest = await spawn(launcher)
            if watch.kill_the_next_newborn:
                watch.kill_the_next_newborn = False
                watch.newborn = guest
                os.kill(guest.pid, signal.SIGKILL)
            return guest

        patch.setattr(RunAttempt, "run", run)
        patch.setattr(Launcher, "spawn", spawn_watched)

    def kill(self) -> None:
        """Kill the process that runs the program, as the kernel or an operator would."""
        assert self.guest is not None
        os.kill(self.guest.pid, signal.SIGKILL)

    async def newborn_is_dead(self) -> None:
        """Wait for the death of the newborn: one that was ready before the signal waits in the pool, and looks alive."""
        async with asyncio.timeout(DEADLINE):
            while self.newborn is not None and not self.newborn.has_ended():  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0.001)

    def crash(self) -> object:
        """Make it fault: overwrite its stack with zeros, so that it crashes when it returns from the read it waits in.

        A SIGSEGV from outside would have no effect: the process is pid 1 of its namespace. One in some hundreds survives,
        and is struck again at its next tick.
        """
        assert self.guest is not None
        pid, deadline = self.guest.pid, time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            os.kill(pid, signal.SIGSTOP)  # so that its stack does not move before it is overwritten
            stack = _stack_of_a_waiting(pid)
            if stack is not None:
                with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
                    memory.seek(stack)
                    memory.write(bytes(512))
            os.kill(pid, signal.SIGCONT)
            if stack is not None:
                return AGAIN
        raise AssertionError("it never waited")


def _stack_of_a_waiting(pid: int) -> int | None:
    """Return the end of the stack of the thread that reads from the socket, in a stopped process."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that was ending when the process was stopped
            while (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T":
                pass
            words = (thread / "syscall").read_text().split()
            if len(words) > 2 and int(words[0]) in READING and _is_socket(pid, int(words[1], 16)):
                return int(words[-2], 16)
    return None


def _is_socket(pid: int, fd: int) -> bool:
    return os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")


async def _struck(
    port: Gloveport, clock: Clock, at: int, strike: Callable[[], object], engine: Engine, **limits: Any
) -> Outcome | None:
    """Return how a program ended that was struck at a tick; None when the caller was cancelled."""
    program = said(Per(PROGRAM, PROGRAM_PY), engine)
    limits = {"wall_seconds": 300, "max_calls": 10**6, **limits}
    async with asyncio.timeout(DEADLINE):
        task = asyncio.create_task(port.run(program, language=engine.language, engine=engine.name, limits=limits))
        clock.set(at, task.cancel if strike is cancel else strike)
        try:
            return await task
        except asyncio.CancelledError:
            return None


def cancel() -> None:
    """Stands for the cancellation of the caller."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _others_at_rest(port: Gloveport) -> None:
    """Let the other tests' port start all its sandboxes: their timeouts would expire while their loop stands still."""
    await settled(port)


@pytest_asyncio.fixture(loop_scope="module")
async def watch(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watch]:
    yield Watch(monkeypatch)


def _codes(outcome: Outcome | None) -> str:
    return "cancelled" if outcome is None else "ok" if outcome.error is None else outcome.error.code


def _port(clock: Clock, spare: int, until: asyncio.Event | None = None) -> Gloveport:
    async def tick() -> int:
        """Count."""
        return await clock.tick()

    async def slow() -> int:
        """Take a few turns."""
        return await clock.slow_call()

    async def wait() -> str:
        """Wait until the test ends."""
        assert until is not None
        clock.waiting.set()
        await until.wait()
        return "honest"

    return Gloveport(tools=[tick, slow, wait], spare=spare)


async def _calm() -> None:
    """Wait for the background work of other tests."""
    try:
        async with asyncio.timeout(DEADLINE):
            while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - tasks have no event for it
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"other tests have left tasks: {asyncio.all_tasks()}") from None


@pytest.mark.timeout(3600)
async def test_runs_killed_at_random_moments_on_every_engine_leave_nothing_behind(watch: Watch) -> None:
    chance = random.Random(SEED)
    await _calm()
    before = Leftovers.now()
    clock = Clock()
    port = _port(clock, spare=2)
    seen: Counter[tuple[str, str]] = Counter()
    async with port:
        for _ in range(KILLS - CLOSED):
            engine, kind = chance.choice(ENGINES), chance.choice(WAYS)
            seen[engine.name, kind] += 1
            await _killed(port, clock, watch, engine, kind, chance)
        for _ in range(ROUNDS):  # a sandbox that was killed twice while it started is replaced by the next run
            for engine in ENGINES:
                outcome = await port.run("return 1", language=engine.language, engine=engine.name)
                assert outcome.value == 1
            await settled(port)
        assert [len(pool._ready) for pool in port._pools.open.values()] == [2] * len(ENGINES), "the pools have refilled"
        assert strangers(port, before) == set()
    for _ in range(CLOSED):
        await _closed_in_the_middle(chance.choice(ENGINES), chance)
    assert len(seen) == len(ENGINES) * len(WAYS)
    await assert_nothing_left(before)


WAYS = ("cancel", "wall", "SIGKILL", "SIGSEGV", "newborn", "cancel early")


async def _killed(port: Gloveport, clock: Clock, watch: Watch, engine: Engine, kind: str, chance: random.Random) -> None:
    at = chance.randint(1, 24)
    match kind:
        case "cancel":
            assert _codes(await _struck(port, clock, at, cancel, engine)) == "cancelled"
        case "cancel early":
            outcome = await _cancelled_early(port, engine, turns=chance.randint(0, 30))
            assert _codes(outcome) in ("cancelled", "ok")
        case "wall":
            outcome = await _struck(port, clock, -1, cancel, engine, wall_seconds=chance.uniform(0.001, 0.03))
            assert _codes(outcome) == "time-limit"
        case "SIGKILL" | "SIGSEGV":
            outcome = await _struck(port, clock, at, watch.kill if kind == "SIGKILL" else watch.crash, engine)
            assert _codes(outcome) == "sandbox-crashed"
        case "newborn":
            watch.kill_the_next_newborn = True
            outcome = await _struck(port, clock, at, cancel, engine)
            assert _codes(outcome) in ("cancelled", "sandbox-crashed")
            await settled(port)  # so that the killed process was starting for this run, and for no later one
            watch.kill_the_next_newborn = False
            await watch.newborn_is_dead()


async def _cancelled_early(port: Gloveport, engine: Engine, turns: int) -> Outcome | None:
    task = asyncio.create_task(port.run("return 1", language=engine.language, engine=engine.name))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        async with asyncio.timeout(DEADLINE):
            return await task
    except asyncio.CancelledError:
        return None


async def _closed_in_the_middle(engine: Engine, chance: random.Random) -> None:
    """Close a port while its program runs, or while its sandbox starts."""
    clock = Clock()
    port = _port(clock, spare=chance.randint(0, 1))
    struck = asyncio.Event()
    clock.set(chance.randint(1, 12), struck.set)
    if chance.random() < 0.5:
        await port.open()
    program, how = said(Per(PROGRAM, PROGRAM_PY), engine), {"language": engine.language, "engine": engine.name}
    task = asyncio.create_task(port.run(program, limits={"wall_seconds": 300}, **how))
    async with asyncio.timeout(DEADLINE):
        if chance.random() < 0.3:
            for _ in range(chance.randint(1, 40)):
                await asyncio.sleep(0)
        else:
            await struck.wait()
        await port.close()
        outcome = await task
    assert _codes(outcome) in ("sandbox-crashed", "closed", "cancelled")


@pytest.mark.timeout(1800)
async def test_200_engines_that_crash_are_outcomes_and_are_replaced_while_an_honest_run_goes_on(watch: Watch) -> None:
    chance, clock, honest = random.Random(SEED), Clock(), asyncio.Event()
    crashed: Counter[str] = Counter()
    async with _port(clock, spare=1, until=honest) as port:
        beside = asyncio.create_task(port.run("return await tools.wait()", limits={"wall_seconds": 1800}))
        await clock.waiting.wait()
        for _ in range(CRASHES):
            engine = chance.choice(ENGINES)
            outcome = await _struck(port, clock, chance.randint(1, 10), watch.crash, engine)
            assert outcome is not None
            assert outcome.error is not None
            assert outcome.error.code == "sandbox-crashed", outcome.error
            assert f"signal {int(signal.SIGSEGV)}" in outcome.error.message
            assert outcome.calls, "what was called before is kept"
            crashed[engine.name] += 1
        for engine in ENGINES:
            assert (await port.run("return 1", language=engine.language, engine=engine.name)).value == 1
        await settled(port)
        assert [len(pool._ready) for pool in port._pools.open.values()] == [1] * len(ENGINES), "the pools have refilled"
        honest.set()
        assert (await beside).value == "honest"
    assert min(crashed.values()) >= CRASHES // (2 * len(ENGINES))


@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_a_fork_server_that_is_killed_takes_its_guests_with_it_and_the_runs_end(watch: Watch, engine: Engine) -> None:
    clock = Clock()
    await _calm()
    before = Leftovers.now()
    async with _port(clock, spare=1) as port:
        how = {"language": engine.language, "engine": engine.name}
        assert (await port.run("return 1", **how)).value == 1
        server = next(pool for options, pool in port._pools.open.items() if options.engine == engine.name)._launcher._server
        assert server is not None
        outcome = await _struck(port, clock, 5, lambda: os.kill(server.process.pid, signal.SIGKILL), engine)
        assert _codes(outcome) == "sandbox-crashed"
        assert (await port.run("return 1", **how)).value == 1, "a new fork server was started"
    await assert_nothing_left(before)


async def test_what_is_counted_here_shows_when_something_is_left() -> None:
    await _calm()
    before = Leftovers.now()
    reader, writer = os.pipe()
    assert Leftovers.now().files != before.files
    os.close(reader)
    os.close(writer)
    process = await asyncio.create_subprocess_exec("sleep", "100")
    assert Leftovers.now().children != before.children
    process.kill()
    await process.wait()
    task = asyncio.create_task(asyncio.Event().wait())
    assert Leftovers.now().tasks == before.tasks + 1
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    with tempfile.TemporaryDirectory(prefix="gloveport-", dir="/tmp"):
        assert Leftovers.now().temporary != before.temporary
