"""Guests start, keep their limits and leave nothing behind; a jail that is too weak is refused with the reason and the fix.

Threat S18.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gloveport.errors import SandboxError
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch, Launcher
from tests.sandbox.jail.host import REPOSITORY, facts, launch
from tests.sandbox.jail.stage import host_command, host_env, play

pytestmark = pytest.mark.integration

MB = 1024 * 1024


@pytest.fixture
async def launcher() -> AsyncIterator[Launcher]:
    made = Launcher(launch("echo.js"))
    await made.start()
    yield made
    await made.close()


async def receive(guest: Guest) -> bytes:
    async with asyncio.timeout(120):
        return await asyncio.get_running_loop().sock_recv(guest.socket, 65536)


async def wait(guest: Guest) -> tuple[int | None, int | None]:
    async with asyncio.timeout(120):
        exit = await guest.wait()
    return exit.code, exit.signal


async def say(guest: Guest, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(guest.socket, data)


def proc_file(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


# ── start and stop ──


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("without", [[], ["namespaces"]], ids=["full", "kernel"])
async def test_an_engine_that_looks_for_the_end_of_its_stack_finds_one(user: str, without: list[str]) -> None:
    plan = {"code": "const n: number = 1;\nif (n < 4) throw new Error('told')", "language": "typescript"}
    assert await play("program", plan, user=user, without=without) == {"value": None, "error": "told"}


async def test_a_guest_reads_its_socket_as_stdin_and_writes_it_as_stdout(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    assert await receive(guest) == b"ready\n"
    assert not any(map(os.get_inheritable, (guest.pidfd, guest.stderr, guest.socket.fileno())))
    await say(guest, b"hello")
    assert await receive(guest) == b"hello"
    guest.close()


async def test_a_guest_inherits_no_ignored_signal_and_no_way_to_other_groups(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    assert await receive(guest) == b"ready\n"
    ignored = int(proc_file(guest.pid, "status").partition("SigIgn:")[2].split()[0], 16)
    assert not [name for name in (signal.SIGINT, signal.SIGXFSZ) if ignored >> (name - 1) & 1]
    assert proc_file(guest.pid, "setgroups") == "deny\n"
    guest.close()


async def test_a_fork_server_does_not_load_what_only_one_without_namespaces_needs(launcher: Launcher) -> None:
    assert launcher._server is not None
    assert "_lzma" not in proc_file(launcher._server.process.pid, "maps")


async def test_a_guest_that_ends_by_itself_tells_its_code_and_what_it_used(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    assert await receive(guest) == b"ready\n"
    guest.socket.shutdown(1)
    async with asyncio.timeout(120):
        exit = await guest.wait()
    assert (exit.code, exit.signal) == (0, None)
    assert 0 < exit.cpu_seconds < 10
    assert exit.max_rss_kb > 10_000
    guest.close()


async def test_what_a_guest_writes_to_stderr_is_read_from_its_pipe() -> None:
    launcher = Launcher(_with_main(b"throw new Error('heard')"))
    await launcher.start()
    guest = await launcher.spawn()
    assert await wait(guest) == (1, None)
    assert b"heard" in os.read(guest.stderr, 65536)
    guest.close()
    await launcher.close()


def _with_main(source: bytes) -> Launch:
    echo = launch("echo.js")
    return Launch(echo.executable, echo.argv, echo.env, {"/guest/main.js": source})


async def test_files_of_a_launch_can_import_each_other() -> None:
    echo = launch("echo.js")
    files = {
        "/guest/main.js": b"import { word } from './deep/word.js'; Deno.stdout.writeSync(new TextEncoder().encode(word));",
        "/guest/deep/word.js": b"export const word = 'imported';",
    }
    launcher = Launcher(Launch(echo.executable, echo.argv, echo.env, files))
    await launcher.start()
    guest = await launcher.spawn()
    assert await receive(guest) == b"imported"
    guest.close()
    await launcher.close()


async def test_killing_is_idempotent_and_waiting_can_be_repeated(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    guest.kill()
    guest.kill()
    assert await wait(guest) == await wait(guest) == (None, signal.SIGKILL)
    guest.kill()
    guest.close()
    guest.close()
    guest.kill()


async def test_many_guests_are_spawned_at_once_each_with_its_own_channel(launcher: Launcher) -> None:
    guests = await asyncio.gather(*(launcher.spawn() for _ in range(12)))
    assert len({guest.pid for guest in guests}) == 12
    for number, guest in enumerate(guests):
        assert await receive(guest) == b"ready\n"
        await say(guest, b"%d" % number)
    assert [await receive(guest) for guest in guests] == [b"%d" % number for number in range(12)]
    for guest in guests:
        guest.close()


async def test_a_cancelled_spawn_leaves_no_guest(launcher: Launcher) -> None:
    task = asyncio.create_task(launcher.spawn())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    guest = await launcher.spawn()  # answered after the cancelled one, whose guest has been delivered and killed by now
    for pid in set(children_of_server(launcher)) - {guest.pid}:
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            assert select.select([pidfd], [], [], 20)[0]
            os.close(pidfd)
    assert await receive(guest) == b"ready\n"
    guest.close()


def children_of_server(launcher: Launcher) -> list[int]:
    assert launcher._server is not None
    pid = launcher._server.process.pid
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


async def test_several_launchers_live_in_one_process_and_end_on_their_own() -> None:
    one, two = Launcher(launch("echo.js")), Launcher(launch("echo.js"))
    await asyncio.gather(one.start(), two.start())
    first, second = await one.spawn(), await two.spawn()
    await one.close()
    assert await wait(first) == (None, signal.SIGKILL)
    assert await receive(second) == b"ready\n"
    await two.close()
    first.close()
    second.close()


def test_a_launcher_works_on_an_event_loop_of_another_thread() -> None:
    said = list[bytes]()

    async def once() -> None:
        launcher = Launcher(launch("echo.js"))
        await launcher.start()
        guest = await launcher.spawn()
        said.append(await receive(guest))
        guest.close()
        await launcher.close()

    thread = threading.Thread(target=lambda: asyncio.run(once()))
    thread.start()
    thread.join(30)
    assert said == [b"ready\n"]


# ── limits ──


async def test_a_guest_that_computes_too_long_is_killed_by_its_limit() -> None:
    launcher = Launcher(_with_main(b"Deno.stdout.writeSync(new Uint8Array(1)); for (;;);"))
    await launcher.start()
    guest = await launcher.spawn()
    await receive(guest)
    guest.set_limits(data_bytes=None, cpu_seconds=1)
    async with asyncio.timeout(120):
        exit = await guest.wait()
    assert exit.signal == signal.SIGKILL
    assert 0.5 < exit.cpu_seconds < 2
    guest.close()
    await launcher.close()


async def test_a_guest_that_takes_too_much_memory_dies_of_it() -> None:
    hungry = b"Deno.stdin.readSync(new Uint8Array(1)); const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1));"
    launcher = Launcher(_with_main(b"Deno.stdout.writeSync(new Uint8Array(1)); " + hungry))
    await launcher.start()
    guest = await launcher.spawn()
    await receive(guest)
    idle = int(facts(guest.pid)["status"]["VmData"].split()[0]) * 1024
    guest.set_limits(data_bytes=idle + 64 * MB, cpu_seconds=None)
    await say(guest, b"go")
    async with asyncio.timeout(120):
        exit = await guest.wait()
    assert exit.code != 0
    assert exit.max_rss_kb < 200 * 1024
    guest.close()
    await launcher.close()


async def test_limits_for_a_guest_that_has_ended_are_an_error(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    guest.kill()
    await wait(guest)
    with pytest.raises(SandboxError, match="ended"):
        guest.set_limits(data_bytes=1, cpu_seconds=1)
    guest.close()


# ── ends ──


@pytest.mark.parametrize(("user", "without"), [("self", []), ("self", ["namespaces"]), ("nobody", [])])
async def test_two_hundred_guests_killed_at_any_moment_leave_nothing(user: str, without: list[str]) -> None:
    told = await play("churn", {"batches": 20, "guests": 10}, user=user, without=without)
    before, after = told["before"], told["after"]
    assert set(after.pop("memory")) <= set(before.pop("memory"))
    assert after == before
    assert max(told["server_fds"]) == min(told["server_fds"])


async def test_what_a_killed_server_left_in_memory_is_removed_by_the_next() -> None:
    with tempfile.TemporaryDirectory(prefix="gloveport-", dir="/dev/shm", ignore_cleanup_errors=True) as folder:
        await play("report", {"minimum": "kernel"}, user="self", without=["namespaces"])
        assert os.path.basename(folder) not in os.listdir("/dev/shm")
        os.mkdir(folder)  # for the end of the block


async def test_a_server_that_is_killed_leaves_nothing_in_memory_while_its_host_lives() -> None:
    told = await play("orphan", {}, user="self", without=["namespaces"])
    assert os.path.basename(told["directory"]) not in os.listdir(os.path.dirname(told["directory"]))


async def test_closing_ends_the_guests_and_the_server_and_refuses_more(launcher: Launcher) -> None:
    guest = await launcher.spawn()
    assert launcher._server is not None
    server = os.pidfd_open(launcher._server.process.pid)
    await launcher.close()
    assert await wait(guest) == (None, signal.SIGKILL)
    assert select.select([server], [], [], 0)[0]
    os.close(server)
    guest.close()
    await launcher.close()
    with pytest.raises(SandboxError) as refused:
        await launcher.spawn()
    assert refused.value.code == "closed"


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("without", [[], ["namespaces"], ["namespaces", "listener"]])
def test_guests_do_not_outlive_a_host_that_is_killed(without: list[str], frozen: bool) -> None:
    command = host_command("linger", {"guests": 3}, user="self", without=without)
    host = subprocess.Popen(command, env=host_env(), stdout=subprocess.PIPE, cwd=REPOSITORY)
    assert host.stdout is not None
    told = json.loads(host.stdout.readline())
    watched = [os.pidfd_open(pid) for pid in (told["server"], *told["guests"])]
    assert not select.select(watched, [], [], 0)[0]
    if frozen:  # the server is stopped and can't end its guests: only the kernel can
        os.kill(told["server"], signal.SIGSTOP)
    host.kill()
    host.wait()
    host.stdout.close()
    if frozen:
        os.kill(told["server"], signal.SIGKILL)
    for pidfd in watched:
        assert select.select([pidfd], [], [], 20)[0], "a process outlived its host"
        os.close(pidfd)


async def test_guests_do_not_outlive_their_fork_server_and_their_owner_is_told(launcher: Launcher) -> None:
    guests = [await launcher.spawn() for _ in range(3)]
    assert launcher._server is not None
    launcher._server.process.kill()
    assert [await wait(guest) for guest in guests] == [(None, signal.SIGKILL)] * 3
    assert all(select.select([guest.pidfd], [], [], 20)[0] for guest in guests)
    with pytest.raises(SandboxError):
        await launcher.spawn()
    for guest in guests:
        guest.close()


# ── platforms without some layers (S18) ──


@pytest.mark.parametrize(
    ("without", "strength", "missing"),
    [
        ([], "full", set()),
        (["namespaces"], "kernel", {"namespaces", "root"}),
        (["mount"], "kernel", {"namespaces", "root"}),
        (["networks"], "kernel", {"namespaces", "root"}),
        (["listener"], "full", {"single exec"}),
        (["namespaces", "listener"], "kernel", {"namespaces", "root", "single exec"}),
    ],
)
@pytest.mark.parametrize("user", ["self", "nobody"])
async def test_the_report_names_the_layers_that_hold(
    user: str, without: list[str], strength: str, missing: set[str]
) -> None:
    told = await play("report", {"minimum": "kernel"}, user=user, without=without)
    assert (told["strength"], told["said"]) == (strength, "ready\n")
    assert {name for name, (holds, _, _) in told["layers"].items() if not holds} == missing
    assert all(detail for _, detail, _ in told["layers"].values())
    assert all((fix is None) == holds for holds, _, fix in told["layers"].values())


@pytest.mark.parametrize(
    ("without", "minimum", "strength", "words"),
    [
        (["namespaces"], "full", "kernel", ("unshare", "user namespaces")),
        (["networks"], "full", "kernel", ("setns: Operation not permitted", "permits mount, pivot_root and setns")),
        (["landlock"], "kernel", "none", ("landlock: landlock_create_ruleset", "Linux 5.13")),
        (["namespaces", "landlock"], "kernel", "none", ("landlock_create_ruleset", "permits landlock_*")),
        (["seccomp"], "kernel", "none", ("seccomp: Operation not permitted", "CONFIG_SECCOMP_FILTER")),
    ],
)
async def test_less_than_the_minimum_is_refused_with_the_reason_and_the_fix(
    without: list[str], minimum: str, strength: str, words: tuple[str, str]
) -> None:
    told = await play("report", {"minimum": minimum}, user="self", without=without)
    assert told["refused"] == "sandbox-unavailable"
    assert f"of strength `{strength}`, and `{minimum}` is required" in told["message"]
    assert words[0] in told["message"]
    assert words[1] in told["hint"]


async def test_a_root_without_capabilities_gets_guests_that_the_report_calls_root() -> None:
    told = await play("report", {"minimum": "kernel"}, user="powerless", without=[])
    root = os.geteuid() == 0
    assert (told["strength"], told["said"]) == ("kernel" if root else "full", "ready\n")
    assert told["layers"]["identity"][0] is not root
    assert told["facts"]["status"]["CapEff"] == "0" * 16


async def test_a_layer_that_fails_for_one_guest_fails_its_start_and_leaves_nothing() -> None:
    told = await play("broken", {}, user="self", without=[])
    assert {name: said.split(": ")[1] for name, said in told["said"].items()} == {
        name: name for name in ("landlock", "single exec", "seccomp", "namespaces", "exec")
    }
    assert told["children"] == ""


async def test_an_engine_that_is_no_program_is_refused_with_its_name() -> None:
    launcher = Launcher(Launch("/etc/passwd", ("x",), {}, {}))
    with pytest.raises(SandboxError, match="/etc/passwd is not a 64-bit"):
        await launcher.start()


async def test_a_file_that_would_lie_outside_of_the_jail_is_refused() -> None:
    echo = launch("echo.js")
    launcher = Launcher(Launch(echo.executable, echo.argv, echo.env, {"/guest/../../tmp/x": b""}))
    with pytest.raises(SandboxError, match="absolute and normalised"):
        await launcher.start()
