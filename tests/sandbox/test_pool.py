"""A pool provides workers even when one dies during its start. Threat S18."""

import asyncio
import contextlib
import os
import select
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.errors import SandboxError
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launcher
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.worker import Worker

pytestmark = pytest.mark.integration

Kill = Callable[[pytest.MonkeyPatch, int], None]


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = Pool(DENO.launch(ProcessOptions("deno")), size=0, minimum="kernel", start=Worker.start)
    yield made
    await made.close()


def kill_newborns(patch: pytest.MonkeyPatch, count: int) -> None:
    """Kill this many guests before they report ready."""
    spawn, left = Launcher.spawn, [count]

    async def spawn_watched(launcher: Launcher) -> Guest:
        guest = await spawn(launcher)
        if left[0]:
            left[0] -= 1
            os.kill(guest.pid, signal.SIGKILL)
            assert select.select([guest.pidfd], [], [], 20)[0]
            with contextlib.suppress(OSError):  # on a busy machine, it may have reported ready before
                guest.socket.recv(65536, socket.MSG_DONTWAIT)
        return guest

    patch.setattr(Launcher, "spawn", spawn_watched)


def kill_servers(patch: pytest.MonkeyPatch, count: int) -> None:
    """Kill this many fork servers while they hold a spawn request; let the host continue only after that."""
    send, left = Launcher._send, [count]

    async def send_watched(launcher: Launcher, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        doomed = message["op"] == "spawn" and left[0] > 0
        assert launcher._server is not None
        if doomed:
            left[0] -= 1
            os.kill(launcher._server.process.pid, signal.SIGSTOP)
        await send(launcher, message, fds)
        if doomed:
            os.kill(launcher._server.process.pid, signal.SIGKILL)
            hung_up = select.poll()
            hung_up.register(launcher._pending[message["id"]].socket, 0)
            assert hung_up.poll(20_000)

    patch.setattr(Launcher, "_send", send_watched)


@pytest.mark.parametrize("kill", [kill_newborns, kill_servers])
async def test_who_waits_gets_a_worker_of_the_second_start(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kill: Kill
) -> None:
    kill(monkeypatch, 1)
    worker = await pool.take()
    assert worker.alive()
    assert "a sandbox died during its start and is started again" in caplog.text
    pool.retire(worker)


@pytest.mark.parametrize(
    ("kill", "said"), [(kill_newborns, "the engine did not start"), (kill_servers, "the fork server died")]
)
async def test_who_waits_is_told_when_the_second_start_fails_too(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, kill: Kill, said: str
) -> None:
    kill(monkeypatch, 2)
    with pytest.raises(SandboxError, match=said) as caught:
        await pool.take()
    assert caught.value.code == "sandbox-crashed"
    pool.retire(await pool.take())


async def test_runs_with_ever_other_memory_limits_close_idle_pools_and_no_pool_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gloveport.host.engine_pools.MAX_POOLS", 2)
    called, answer = asyncio.Event(), asyncio.Event()

    async def hold() -> str:
        called.set()
        await answer.wait()
        return "held"

    port = Gloveport(tools=[hold], spare=0)  # which opens no pool in advance
    try:
        held = asyncio.create_task(port.run("await tools.hold()", limits={"memory_mb": 100}))
        await called.wait()
        for memory in range(101, 106):
            outcome = await port.run("1 + 1", limits={"memory_mb": memory})
            assert outcome.value == 2, outcome.error
            assert len(port._pools.open) == 2
        answer.set()
        assert (await held).value == "held"
        assert {options.memory_mb for options in port._pools.open} == {100, 105}
        assert (await port.run("2 + 2", limits={"memory_mb": 101})).value == 4  # a closed pool is opened again
        assert {options.memory_mb for options in port._pools.open} == {105, 101}
    finally:
        answer.set()
        await port.close()


async def test_a_pool_that_nobody_uses_shrinks_and_its_next_taker_gets_a_worker_that_starts_alone() -> None:
    started: list[Worker] = []

    async def start(launcher: Launcher) -> Worker:
        started.append(await Worker.start(launcher))
        return started[-1]

    async def until_ready(count: int) -> None:
        async with asyncio.timeout(60):
            while pool.states != {"ready": count, "starting": 0, "wanted": 0}:  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.02)

    pool = Pool(DENO.launch(ProcessOptions("deno")), size=2, minimum="kernel", start=start)
    try:
        await pool.open()
        await until_ready(2)
        pool._idle_timer._on_idle()
        assert pool.states == {"ready": 0, "starting": 0, "wanted": 0}
        pool.refill()  # as after a run that took longer than the pool was idle
        assert pool.states["starting"] == 0
        for warm in (False, True):
            if warm:
                pool.warm()
                pool.warm()
                assert pool.states["starting"] == 1
            taking = asyncio.create_task(pool.take())
            await asyncio.sleep(0)
            assert pool.states["starting"] == 1
            worker = await taking
            assert worker.alive()
            assert len(started) == 3
            pool.replace(worker)
            await until_ready(2)
            pool._idle_timer._on_idle()
            del started[2:]
        pool.warm()
        await until_ready(1)
        pool.replace(await pool.take())
        await until_ready(2)
    finally:
        await pool.close()
