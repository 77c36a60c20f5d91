"""Each guest has an empty network namespace, and no privilege over it or over its other namespaces.

Threat S7.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch, Launcher
from tests.sandbox.jail.host import descriptors, launch, python_launch
from tests.sandbox.jail.stage import play

pytestmark = pytest.mark.integration

_GET_OWNER = 0xB701  # NS_GET_USERNS
_KEPT = 16


@pytest.fixture(params=["exec'd", "forked"])
async def launcher(request: pytest.FixtureRequest) -> AsyncIterator[Launcher]:
    made = Launcher(_launch(request.param))
    await made.start()
    yield made
    await made.close()


def _launch(way: str) -> Launch:
    return launch("echo.js") if way == "exec'd" else python_launch("echo.py")


def read(pid: int, file: str) -> str:
    return Path(f"/proc/{pid}/{file}").read_text()


def network(pid: int | str) -> int:
    return os.stat(f"/proc/{pid}/ns/net").st_ino


async def end(*guests: Guest) -> None:
    for guest in guests:
        guest.kill()
    async with asyncio.timeout(120):
        for guest in guests:
            await guest.wait()
            guest.close()


def owner(pid: int, kind: str) -> int:
    """Return the user namespace that owns a namespace of a process."""
    fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    user = fcntl.ioctl(fd, _GET_OWNER)
    try:
        return os.fstat(user).st_ino
    finally:
        os.close(fd)
        os.close(user)


async def test_no_two_that_live_at_a_time_share_a_network(launcher: Launcher) -> None:
    guests = await asyncio.gather(*(launcher.spawn() for _ in range(5)))
    assert launcher._server is not None
    processes = [*(guest.pid for guest in guests), launcher._server.process.pid, "self"]
    assert len({network(pid) for pid in processes}) == len(processes)
    await end(*guests)


async def test_a_network_goes_to_the_next_guest_only_when_its_own_has_ended(launcher: Launcher) -> None:
    first, second = await launcher.spawn(), await launcher.spawn()
    theirs = [network(first.pid), network(second.pid)]
    await end(first)
    third = await launcher.spawn()
    assert network(third.pid) == theirs[0]
    await end(second, third)


async def test_a_network_is_empty(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    lines = read(guest.pid, "net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    assert read(guest.pid, "net/fib_trie") == ""  # loopback is down: not even it has an address
    await end(guest)


@pytest.mark.parametrize("kind", ["net", "pid", "ipc", "uts", "cgroup"])
async def test_no_namespace_of_a_guest_belongs_to_its_own_user(launcher: Launcher, kind: str) -> None:
    guest = await launcher.spawn()
    assert launcher._server is not None
    assert owner(guest.pid, kind) == os.stat(f"/proc/{launcher._server.process.pid}/ns/user").st_ino
    assert owner(guest.pid, kind) != os.stat(f"/proc/{guest.pid}/ns/user").st_ino
    await end(guest)


async def test_after_many_at_once_only_a_few_networks_are_kept(launcher: Launcher) -> None:
    await end(*await asyncio.gather(*(launcher.spawn() for _ in range(_KEPT + 8))))
    assert launcher._server is not None
    held = descriptors(launcher._server.process.pid)
    assert len([link for link in held if link.startswith("net:")]) == _KEPT + 1  # and its own


async def test_the_network_of_a_guest_that_could_not_be_jailed_comes_back() -> None:
    told = await play("lost_trial_guest", {}, user="self", without=[])
    assert "setns: Invalid argument" in told["said"]
    assert told["out"] == 0
