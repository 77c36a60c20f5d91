"""A pool gives workers, also when one dies while it is started. Threat S18."""

import os
import select
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from gloveport.errors import SandboxError
from gloveport.sandbox.deno import DenoOptions, deno_launch
from gloveport.sandbox.launcher import Guest, Launcher
from gloveport.sandbox.pool import Pool


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = Pool(deno_launch(DenoOptions()), size=0, minimum="kernel")
    yield made
    await made.close()


def kill_newborns(patch: pytest.MonkeyPatch, count: int) -> None:
    """Have so many guests die before they have said that they are ready."""
    spawn, left = Launcher.spawn, [count]

    async def spawn_watched(launcher: Launcher) -> Guest:
        guest = await spawn(launcher)
        if left[0]:
            left[0] -= 1
            os.kill(guest.pid, signal.SIGKILL)
        return guest

    patch.setattr(Launcher, "spawn", spawn_watched)


async def test_who_waits_for_a_worker_that_dies_gets_another(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kill_newborns(monkeypatch, 1)
    worker = await pool.take()
    assert worker.alive()
    assert "a sandbox died while it was started, and is started again" in caplog.text
    pool.retire(worker)


async def test_an_engine_whose_workers_all_die_is_told_to_who_waits(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_newborns(monkeypatch, 2)
    with pytest.raises(SandboxError, match="the engine did not start") as caught:
        await pool.take()
    assert caught.value.code == "sandbox-crashed"
    pool.retire(await pool.take())


def kill_servers(patch: pytest.MonkeyPatch, count: int) -> None:
    """Have so many fork servers die with an order in hand, and the host go on only when that has come to pass."""
    send, left = Launcher._send, [count]

    async def send_watched(launcher: Launcher, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        doomed = message["op"] == "spawn" and left[0] > 0
        assert launcher._server is not None
        if doomed:
            left[0] -= 1
            os.kill(launcher._server.pid, signal.SIGSTOP)
        await send(launcher, message, fds)
        if doomed:
            os.kill(launcher._server.pid, signal.SIGKILL)
            hung_up = select.poll()
            hung_up.register(launcher._orders[message["id"]].socket, 0)
            assert hung_up.poll(20_000)

    patch.setattr(Launcher, "_send", send_watched)


async def test_who_waits_while_the_fork_server_dies_gets_a_worker_of_the_next(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_servers(monkeypatch, 1)
    worker = await pool.take()
    assert worker.alive()
    pool.retire(worker)


async def test_fork_servers_that_all_die_are_told_to_who_waits(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_servers(monkeypatch, 2)
    with pytest.raises(SandboxError, match="the fork server died") as caught:
        await pool.take()
    assert caught.value.code == "sandbox-crashed"
