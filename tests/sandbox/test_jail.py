"""A program with all of Deno's permissions can't get out of the jail, for any user and any strength of the jail.

The same program outside of the jail is the control: there every attempt succeeds (some only for root).
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from deno import find_deno_bin

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS
from tests.sandbox.jail.host import ENV, FLAGS, HERE
from tests.sandbox.jail.stage import play, run

SURROUNDINGS = [
    pytest.param("self", [], "full", id="full"),
    pytest.param("self", ["namespaces"], "kernel", id="kernel"),
    pytest.param("nobody", [], "full", id="full, unprivileged"),
    pytest.param("nobody", ["namespaces"], "kernel", id="kernel, unprivileged"),
]

PATHS = """
/ /etc /etc/passwd /etc/group /etc/hosts /etc/hostname /etc/resolv.conf /etc/nsswitch.conf /etc/ld.so.cache /etc/os-release
/bin /usr /usr/bin /usr/bin/env /bin/sh /usr/lib /var /var/log /var/lib /home /root /tmp /run /opt /srv /mnt /work
/proc /proc/1/environ /proc/1/cmdline /proc/1/root /proc/self/environ /proc/self/maps /proc/self/mem /proc/self/root
/proc/self/root/etc/passwd /proc/self/cwd/etc/passwd /proc/self/fd /proc/version /proc/cpuinfo
/proc/sys/kernel/core_pattern /proc/net/tcp /sys /sys/class/net /sys/fs/cgroup /dev /dev/null /dev/tty /dev/shm
/proc/mounts /proc/kcore
""".split()  # noqa: SIM905  a table of words

# Raw system calls, with arguments that succeed outside: name, (x86_64, aarch64), arguments.
CALLS: list[tuple[str, tuple[int, int], list[Any]]] = [
    ("socket AF_INET", (41, 198), [2, 1]),
    ("socket AF_INET6 datagram", (41, 198), [10, 2]),
    ("socket AF_UNIX", (41, 198), [1, 1]),
    ("socket AF_NETLINK", (41, 198), [16, 3]),
    ("ptrace seize of a host process", (101, 117), [0x4206, "victim"]),
    ("process_vm_readv", (310, 270), ["victim"]),
    ("process_vm_writev", (311, 271), ["victim"]),
    ("pidfd_open of a host process", (434, 434), ["victim"]),
    ("kill 0 of a host process", (62, 129), ["victim"]),
    ("kill 0 of everyone", (62, 129), [-1]),
    ("kill 0 of its group", (62, 129), [0]),
    ("tgkill 0 of a host process", (234, 131), ["victim", "victim"]),
    ("tkill 0 of a host process", (200, 130), ["victim"]),
    ("fcntl F_SETOWN of a host process", (72, 25), [0, 8, "victim"]),
    ("fcntl F_SETSIG kill", (72, 25), [0, 10, 9]),
    ("prlimit64 of the host", (302, 261), ["host", 4, 0, [0] * 16]),
    ("prlimit64 of its own", (302, 261), [0, 4, [0] * 16, 0]),
    ("setpriority of a host process", (141, 140), [0, "victim", 0]),
    ("setpriority of its own", (141, 140), [0, 0, 19]),
    ("sched_setaffinity", (203, 122), ["victim", 8, [3, 0, 0, 0, 0, 0, 0, 0]]),
    ("sched_setscheduler", (144, 119), [0, 3, [0, 0, 0, 0]]),
    ("ioprio_set", (251, 30), [1, 0, 0x6000]),
    ("io_uring_setup", (425, 425), [1, [0] * 120]),
    ("userfaultfd", (323, 282), [1]),
    ("memfd_create", (319, 279), ["name=x", 0]),
    ("keyctl", (250, 219), [0, -2, 1]),
    ("personality", (135, 92), [0xFFFFFFFF]),
    ("unshare of files", (272, 97), [0x400]),
    ("prctl PR_SET_PDEATHSIG", (157, 167), [1, 0]),
    ("prctl PR_SET_DUMPABLE", (157, 167), [4, 1]),
    ("prctl PR_SET_CHILD_SUBREAPER", (157, 167), [36, 0]),
    ("inotify_init1", (294, 26), [0]),
    ("name_to_handle_at", (303, 264), [-100, "name=/", [8] + [0] * 135, [0] * 8, 0]),
    ("landlock_create_ruleset", (444, 444), [0, 0, 1]),
    ("timerfd_create", (283, 85), [1, 0]),
    ("signalfd4", (289, 74), [-1, [0] * 8, 8, 0]),
    ("chdir", (80, 49), ["name=/"]),
    ("umask", (95, 166), [0o22]),
]
FOR_ROOT: list[tuple[str, tuple[int, int], list[Any]]] = [
    ("unshare UTS", (272, 97), [0x04000000]),
    ("fsopen", (430, 430), ["name=tmpfs", 0]),
    ("open_tree clone", (428, 428), [-100, "name=/", 1]),
    ("chroot to where it is", (161, 51), ["name=/"]),
    ("setgroups to none", (116, 159), [0, 0]),
    ("socket AF_PACKET", (41, 198), [17, 3]),
    ("bpf map", (321, 280), [0, [2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0] + [0] * 56, 72]),
    ("fanotify_init", (300, 262), [0, 0]),
]


class Lure:
    """A host with targets: a secret file, a process, a listener on each kind of socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open = folder / "open"
        self.secret = folder / "open" / "secret"
        self.victim = subprocess.Popen(["sleep", "1000"])
        self.connections = 0

    def reset(self) -> None:
        shutil.rmtree(self.open, ignore_errors=True)
        self.open.mkdir()
        self.secret.write_text("canary")
        for path in (self.folder, self.open, self.secret):
            path.chmod(0o777)
        if self.victim.poll() is not None:
            self.victim = subprocess.Popen(["sleep", "1000"])
        if os.geteuid() == 0:  # so that the guest's own user may signal it, if no layer prevents it
            os.kill(self.victim.pid, signal.SIGKILL)
            self.victim.wait()
            self.victim = subprocess.Popen(["sleep", "1000"], user=65534, group=65534, extra_groups=[])

    def plan(self, folders: list[str]) -> dict[str, Any]:
        column = 0 if MACHINE == "x86_64" else 1
        numbers = NUMBERS[MACHINE]

        def filled(argument: object) -> object:
            if argument in ("victim", "host"):
                return self.victim.pid if argument == "victim" else os.getpid()
            return argument.removeprefix("name=") if isinstance(argument, str) else argument

        return {
            "paths": PATHS,
            "folders": folders,
            "secret": str(self.secret),
            "victim": self.victim.pid,
            "port": self.port,
            "dns": self.dns_port,
            "socket": str(self.folder / "socket"),
            "minimum": "kernel",
            "hostname": os.uname().nodename,
            "calls": [[name, number[column], *map(filled, args)] for name, number, args in CALLS + FOR_ROOT],
            "getpid": numbers["getpid"],
            "pread64": numbers["pread64"],
            "clone": numbers["clone"],
            "exit_group": numbers["exit_group"],
        }

    async def listen(self) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            await reader.read(65536)  # a query, or the end of a connection without one
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()

        self.tcp = await asyncio.start_server(answer, "127.0.0.1", 0)
        self.port = self.tcp.sockets[0].getsockname()[1]
        self.unix = await asyncio.start_unix_server(answer, self.folder / "socket")
        os.chmod(self.folder / "socket", 0o777)
        loop = asyncio.get_running_loop()
        self.dns, _ = await loop.create_datagram_endpoint(lambda: NameServer(self), local_addr=("127.0.0.1", 0))
        self.dns_port = self.dns.get_extra_info("sockname")[1]

    async def close(self) -> None:
        for server in (self.tcp, self.unix):
            server.close()
            await server.wait_closed()
        self.dns.close()
        self.victim.kill()
        self.victim.wait()


class NameServer(asyncio.DatagramProtocol):
    """Answer every address query with 192.0.2.1."""

    def __init__(self, lure: Lure) -> None:
        self.lure = lure

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.lure.connections += 1
        end = data.index(b"\0", 12) + 5
        answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01"
        reply = data[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + data[12:end] + answer
        self.transport.sendto(reply, addr)


@pytest.fixture
async def lure() -> AsyncIterator[Lure]:
    # Not under pytest's folder, which other users can't read: Landlock alone must keep them out.
    with tempfile.TemporaryDirectory(prefix="lure-") as folder:
        made = Lure(Path(folder))
        made.reset()
        await made.listen()
        yield made
        await made.close()


def wins(said: str) -> tuple[set[str], set[str]]:
    rows = [json.loads(line) for line in said.splitlines()]
    assert rows[-1]["name"] == "end", said[-2000:]
    return {row["name"] for row in rows if row["won"]}, {row["name"] for row in rows if not row["won"]}


@pytest.mark.integration
async def test_outside_of_the_jail_every_attempt_of_the_hostile_program_succeeds(lure: Lure) -> None:
    plan = lure.plan([str(lure.open)])
    fd = os.open(lure.secret, os.O_RDONLY)
    env = {"PATH": os.environ["PATH"], "GLOVEPORT_CANARY": "canary", "DENO_DIR": str(lure.folder / "deno")}
    command = (str(find_deno_bin()), "run", *FLAGS, "-A", "--unstable-net", str(HERE / "hostile.js"), json.dumps(plan))
    out, err = await run(*command, env=env, pass_fds=(fd,))
    os.close(fd)
    won, lost = wins(out)
    reads = {name for name in won if name.startswith(("read /", "list /"))}
    assert len(reads) >= 40, (sorted(lost), err)
    failed = {name for name in lost if not name.startswith(("read /", "list /", "errno ", "end"))}
    allowed = set() if os.geteuid() == 0 else {name for name, _, _ in FOR_ROOT}
    assert failed <= allowed, (failed, err)
    assert lure.connections >= 4
    assert lure.victim.wait(timeout=120) == -signal.SIGKILL
    assert not lure.secret.exists()


@pytest.mark.integration
@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_in_the_jail_no_attempt_of_the_hostile_program_succeeds(
    lure: Lure, user: str, without: list[str], strength: str
) -> None:
    folders = ["", "/tmp", "/dev", "/dev/shm", "/guest", "/engine", "/proc/self/cwd", str(lure.open)]
    plan = lure.plan(folders)
    told = await play("hostile", plan, user=user, without=without, inherit=str(lure.secret))
    won, lost = wins(told["said"])
    assert told["strength"] == strength
    # Without its own namespaces, the guest may see the host's name, as it may see names of files, and its own memory map,
    # which the C library needs.
    seen = {"the name of the host", "read /proc/self/maps"} if strength == "kernel" else set()
    assert won - seen == {"alive: raw system calls"}, told["stderr"]
    assert len(lost) > 150
    assert lure.connections == 0
    assert lure.victim.poll() is None
    assert lure.secret.read_text() == "canary"
    assert [path.name for path in lure.open.iterdir()] == ["secret"]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("without", "won_again"),
    [
        (["seccomp"], {"memfd_create", "socket AF_UNIX", "fork", "fcntl F_SETSIG kill", "prctl PR_SET_PDEATHSIG"}),
        (["namespaces", "landlock"], {"read /etc/passwd", "read /proc/self/maps", "read the secret file"}),
        (["namespaces", "landlock", "seccomp"], {"tcp connect", "spawn a process", "kill a host process", "fetch"}),
    ],
)
async def test_with_a_layer_off_the_hostile_program_wins_back_what_the_layer_kept(
    lure: Lure, without: list[str], won_again: set[str]
) -> None:
    plan = {**lure.plan([str(lure.open)]), "minimum": "none"}
    told = await play("hostile", plan, user="self", without=without)
    assert told["strength"] == "none"
    assert won_again <= wins(told["said"])[0], told["stderr"]


@pytest.mark.integration
@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_a_guest_has_no_privilege_no_file_and_no_variable_that_it_was_not_given(
    user: str, without: list[str], strength: str
) -> None:
    told = await play("report", {"minimum": "kernel"}, user=user, without=without, inherit=os.devnull)
    seen, status = told["facts"], told["facts"]["status"]
    assert told["strength"] == strength
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert "0" not in status["Uid"].split() + status["Gid"].split()
    assert "0" not in status["Groups"].split()
    assert sorted(seen["environ"]) == sorted(f"{name}={value}" for name, value in ENV.items())
    assert not [link for link in seen["fds"].values() if link.startswith("/")]
    if strength == "full":
        assert set(seen["own"]) == {"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"}
        assert status["CapBnd"] == "0" * 16
        assert status["NSpid"].split()[-1] == "1"


@pytest.mark.integration
async def test_a_guest_is_bounded_in_what_it_can_use_up() -> None:
    told = await play("report", {"minimum": "kernel"}, user="self", without=[])
    limits = {line[:26].strip(): line[26:].split() for line in told["facts"]["limits"].splitlines()[1:]}
    expected = {
        "Max core file size": "1",
        "Max file size": "0",
        "Max open files": "64",
        "Max processes": "128",
        "Max locked memory": "0",
        "Max msgqueue size": "0",
        "Max data size": str(1 << 30),
        "Max cpu time": "7",
    }
    assert told["facts"]["oom_score_adj"] == 1000
    assert {name: limits[name][:2] for name in expected} == {name: [value, value] for name, value in expected.items()}


@pytest.mark.integration
async def test_a_guest_without_a_user_namespace_can_not_take_all_process_ids() -> None:
    told = await play("report", {"minimum": "kernel"}, user="nobody", without=["namespaces"])
    (row,) = [line for line in told["facts"]["limits"].splitlines() if line.startswith("Max processes")]
    assert told["strength"] == "kernel"
    assert int(row.split()[2]) <= _threads_of_the_machine() + 2 * 4096


def _threads_of_the_machine() -> int:
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def engine_path(strength: str) -> str:
    deno = str(find_deno_bin())
    return f"/engine/{os.path.basename(deno)}" if strength == "full" else deno


@pytest.mark.integration
@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_a_guest_execs_once_and_never_again(user: str, without: list[str], strength: str) -> None:
    plan = {"engine": engine_path(strength)}
    told = await play("exec_again", plan, user=user, without=without)
    assert (told["strength"], told["said"]) == (strength, "errno 38\n")


@pytest.mark.integration
async def test_without_a_listener_a_second_exec_would_reach_the_engine_and_the_report_says_so() -> None:
    without = ["listener"]
    told = await play("exec_again", {"engine": engine_path("full")}, user="self", without=without)
    assert told["said"].startswith("deno ")
    told = await play("report", {"minimum": "full"}, user="self", without=without)
    holds, detail, fix = told["layers"]["single exec"]
    assert (told["strength"], told["said"]) == ("full", "ready\n")
    assert not holds
    assert "seccomp" in detail
    assert "Landlock limits exec" in fix


def test_the_tables_of_calls_agree_with_the_jails_own() -> None:
    column = 0 if MACHINE == "x86_64" else 1
    known = NUMBERS[MACHINE]
    for name, number, _ in CALLS + FOR_ROOT:
        if name.split()[0] in known:
            assert known[name.split()[0]] == number[column]
