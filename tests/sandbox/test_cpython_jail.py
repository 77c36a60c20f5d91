"""A Python with ctypes and raw system calls can't get out of its jail, nor at its sibling.

The same program outside of the jail is the control: there every attempt succeeds (some only for root).
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS
from tests.sandbox.jail.host import HERE
from tests.sandbox.jail.stage import host_env, play
from tests.sandbox.test_jail import FOR_ROOT, Lure, wins

pytestmark = pytest.mark.integration

# Without namespaces, root's guests are nobody on the host, who must be able to reach the interpreter.
SURROUNDINGS = [
    pytest.param("self", [], "full", id="full"),
    pytest.param("reachable", ["namespaces"], "kernel", id="kernel"),
    pytest.param("nobody", [], "full", id="full, unprivileged"),
    pytest.param("nobody", ["namespaces"], "kernel", id="kernel, unprivileged"),
]

# Raw system calls beyond those of Deno's hostile program: name, (x86_64, aarch64), arguments.
CALLS: list[tuple[str, tuple[int, int], list[Any]]] = [
    ("shmctl IPC_INFO", (31, 195), [0, 3, [0] * 200]),
    ("msgctl IPC_INFO", (71, 187), [0, 3, [0] * 200]),
    ("semctl IPC_INFO", (66, 191), [0, 0, 3, [0] * 200]),
    ("setrlimit", (160, 164), [4, [0] * 16]),
    ("mlock", (149, 228), [[0] * 16, 8]),
    ("openat2", (437, 437), [-100, "/", [0] * 24, 24]),
    ("rt_sigqueueinfo to a host process", (129, 138), ["victim", 0, [0] * 8 + [255] * 4 + [0] * 116]),
    ("timer_create", (222, 107), [1, 0, [0] * 8]),
    ("sched_setattr", (314, 274), [0, [48] + [0] * 47, 0]),
    ("seccomp", (317, 277), [2, 0, [0, 0, 255, 127]]),
    ("close_range", (436, 436), [4000, 4001, 0]),
]
PTRACE = (101, 117)
PATHS = ["/usr/bin/python3", "/usr/share", "/usr/local", "/zygote", "/lib", "/lib64", "/proc/self/status"]
FOLDERS = ["", "/tmp", "/dev", "/dev/shm", "/guest", "/zygote", "/usr/bin", f"/usr/lib/python3.{sys.version_info[1]}"]


@pytest.fixture
async def lure() -> AsyncIterator[Lure]:
    with (
        tempfile.TemporaryDirectory(prefix="lure-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        made = Lure(Path(folder))
        made.reset()
        await made.listen()
        datagrams.bind(f"{folder}/datagrams")
        os.chmod(f"{folder}/datagrams", 0o777)
        yield made
        await made.close()


@contextlib.contextmanager
def sleepers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    made = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
    yield made
    for process in made:
        process.kill()
        process.wait()


def make_plan(lure: Lure, folders: list[str], *, jailed: bool) -> dict[str, Any]:
    column = 0 if MACHINE == "x86_64" else 1
    plan = lure.plan(folders)
    names = ("openat", "fcntl", "execve", "execveat", "prlimit64")
    more = [
        [name, number[column], *(lure.victim.pid if argument == "victim" else argument for argument in arguments)]
        for name, number, arguments in CALLS
    ]
    return {
        **plan,
        **{name: NUMBERS[MACHINE][name] for name in names},
        "ptrace": PTRACE[column],
        "paths": plan["paths"] + PATHS,
        "calls": plan["calls"] + more,
        "datagrams": str(lure.folder / "datagrams"),
        "jailed": jailed,
    }


def reads(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith(("read /", "list /"))}


async def test_outside_of_the_jail_every_attempt_of_the_hostile_python_succeeds(lure: Lure) -> None:
    names = ("the host", "the fork server", "the zygote", "a sibling")
    with sleepers(len(names)) as victims:
        others = {name: victim.pid for name, victim in zip(names, victims, strict=True)}
        plan = {**make_plan(lure, [str(lure.open)], jailed=False), "others": others}
        fd = os.open(lure.secret, os.O_RDONLY)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-B", str(HERE / "python" / "hostile.py")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=host_env(),
            pass_fds=(fd,),
            start_new_session=True,
        )
        os.close(fd)
        async with asyncio.timeout(300):
            out, err = await process.communicate(json.dumps(plan).encode() + b"\n")
    won, lost = wins(out.decode())
    assert len(reads(won)) >= 40, (sorted(lost), err)
    failed = {name for name in lost - reads(lost) if not name.startswith(("errno ", "end"))}
    allowed = set[str]() if os.geteuid() == 0 else {name for name, _, _ in FOR_ROOT}
    assert failed <= allowed, (failed, out, err)
    assert lure.connections >= 4
    assert lure.victim.wait(timeout=120) == -signal.SIGKILL
    assert not lure.secret.exists()


@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_in_the_jail_no_attempt_of_the_hostile_python_succeeds(
    lure: Lure, user: str, without: list[str], strength: str
) -> None:
    plan = make_plan(lure, [*FOLDERS, str(lure.open)], jailed=True)
    told = await play("hostile_python", plan, user=user, without=without, inherit=str(lure.secret))
    won, lost = wins(told["said"])
    assert told["strength"] == strength
    # Without its own namespaces, the guest may see the host's name, as it may see names of files.
    seen = {"the name of the host"} if strength == "kernel" else set[str]()
    assert won - seen == {"alive: raw system calls", "alive: native code made on the spot"}, told["stderr"]
    assert len(lost) > 230
    assert (told["code"], told["alive"]) == (0, 4)
    assert lure.connections == 0
    assert lure.victim.poll() is None
    assert lure.secret.read_text() == "canary"
    assert [path.name for path in lure.open.iterdir()] == ["secret"]
