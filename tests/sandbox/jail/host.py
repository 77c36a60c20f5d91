"""A host process in its own environment: `python -m tests.sandbox.jail.host JSON` plays one scene and prints JSON.

The environment is real: another user (`nobody`), and a seccomp filter that refuses the system calls of some layers.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import random
import signal
import struct
import sys
import tempfile
import threading
from dataclasses import replace
from errno import ENOSYS, EPERM
from pathlib import Path
from typing import Any

from deno import find_deno_bin

from gloveport import Gloveport, OptionError
from gloveport.errors import SandboxError
from gloveport.sandbox.engines.cpython.engine import ENGINE as CPYTHON
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import try_engines
from gloveport.sandbox.engines.zygote_launch import PACKAGE
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.jail import confinement, filesystem, fork_server, limits, privileges, seccomp, zygote_client
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.jail.namespaces import NoNetworkPool
from gloveport.sandbox.jail.syscalls import MACHINE, call
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.types import Strength
from tests.sandbox.jail import commands, container

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
ENV = {"DENO_DIR": "/none", "DENO_EMIT_CACHE_MODE": "disable", "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1", "TZ": "UTC"}
FLAGS = ("--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--cached-only", "--no-code-cache")
NOBODY = 65534
CONTAINED, CONTAINED_NOBODY = "container", "container nobody"
DEADLINE = 300.0

NAMESPACE_FLAGS, NEW_LISTENER = 0x7E020000, 1 << 3
TAKEN_AWAY: dict[str, dict[str, seccomp.Rule]] = {
    "namespaces": {
        "unshare": seccomp.errno_action(EPERM),
        "clone": seccomp.allow_if(seccomp.ArgumentTest(0, 0, mask=NAMESPACE_FLAGS)),
    },
    "mount": {"mount": seccomp.errno_action(EPERM)},
    "networks": {"setns": seccomp.errno_action(EPERM)},
    "landlock": {"landlock_create_ruleset": seccomp.errno_action(ENOSYS)},
    "seccomp": {"seccomp": seccomp.errno_action(EPERM)},
    "listener": {"seccomp": seccomp.allow_if(seccomp.ArgumentTest(1, 0, mask=NEW_LISTENER))},
    "fixed addresses": {"personality": seccomp.errno_action(EPERM)},
}


def launch(program: str, *args: str, flags: tuple[str, ...] = ()) -> Launch:
    """Return the launch of a Deno whose main module is one of the programs here."""
    return Launch(
        executable=str(find_deno_bin()),
        argv=("deno", "run", *FLAGS, *flags, "/guest/main.js", *args),
        env=ENV,
        files={"/guest/main.js": (HERE / program).read_bytes()},
    )


def python_launch(program: str) -> Launch:
    """Return the launch of a Python whose guest package is one of the programs here."""
    made = CPYTHON.launch(ProcessOptions("cpython"))
    files = {path: content for path, content in made.files.items() if not path.startswith(f"/guest/{PACKAGE}/")}
    return replace(made, files={**files, f"/guest/{PACKAGE}/__init__.py": (HERE / "python" / program).read_bytes()})


def echo_launch(plan: dict[str, Any]) -> Launch:
    """Return the launch of an echoing guest on the engine that the plan names."""
    if plan.get("engine") != "cpython":
        return launch("echo.js")
    made = python_launch("echo.py")
    if "closed" in plan:
        made = replace(made, folders={**made.folders, "/closed": Folder(plan["closed"])})
    return made


# ── environment ──


def become_nobody() -> None:
    """Become an ordinary user who can still reach the interpreter and the repository; do nothing if already one."""
    if os.geteuid() != 0:
        return
    open_the_way()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    call("prctl", 4, 1, 0, 0, 0)


def leave_root() -> None:
    """Become nobody, irrevocably; in a user namespace that does not map nobody, become root without any privilege."""
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    privileges.prepare_to_drop_capabilities()()
    call("prctl", 4, 1, 0, 0, 0)


def open_the_way() -> None:
    """Let every user reach the interpreter and the repository, as is usual; do nothing as an ordinary user."""
    if os.geteuid() != 0:
        return
    needed = {os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, REPOSITORY)}
    call("unshare", 0x00020000)
    _mount(None, "/", 1 << 18 | 16384)
    for path in sorted(needed):
        closed = next((p for p in [*reversed(Path(path).parents), Path(path)] if not p.stat().st_mode & 0o001), None)
        if closed is None:
            continue
        held = os.open(path, os.O_PATH)
        _mount("tmpfs", str(closed), 0, kind="tmpfs", options="mode=0755")
        os.makedirs(path)
        _mount(f"/proc/self/fd/{held}", path, 4096)
        os.close(held)


def _mount(source: str | None, target: str, flags: int, *, kind: str | None = None, options: str | None = None) -> None:
    texts = [ctypes.c_char_p(text.encode()) if text else None for text in (source, target, kind, options)]
    call("mount", texts[0], texts[1], texts[2], flags, texts[3])


def take_away(layers: list[str]) -> None:
    """Have the kernel refuse the system calls of these layers, to this process and all that it starts."""
    if not layers:
        return
    rules: dict[str, seccomp.Rule] = {}
    for layer in layers:
        rules.update(TAKEN_AWAY.get(layer, {}))
    privileges.prepare_no_new_privileges()()
    if "signal scope" in layers:
        _give_old_landlock()
    seccomp.SeccompProgram(seccomp.compile_filter(rules, machine=MACHINE, default=seccomp.ALLOW)).prepare()()


def _give_old_landlock() -> None:
    """Have the kernel report Landlock ABI 5, which has no scopes: a thread here answers the query."""
    rules: dict[str, seccomp.Rule] = {"landlock_create_ruleset": seccomp.NOTIFY}
    listener = seccomp.SeccompProgram(
        seccomp.compile_filter(rules, machine=MACHINE, default=seccomp.ALLOW)
    ).install_with_listener()

    def answer() -> None:
        while True:
            notice = bytearray(80)
            fcntl.ioctl(listener, 0xC0502100, notice)
            number, flags = *struct.unpack_from("=Q", notice), *struct.unpack_from("=Q", notice, 48)
            version = struct.pack("=QqiI", number, 5, 0, 0)
            with contextlib.suppress(FileNotFoundError):  # the caller has ended
                fcntl.ioctl(listener, 0xC0182101, version if flags == 1 else struct.pack("=QqiI", number, 0, 0, 1))

    threading.Thread(target=answer, daemon=True).start()


# ── scenes ──


async def read_all(guest: Guest) -> str:
    """Return everything that a guest writes to its stdout until it ends."""
    loop, pieces = asyncio.get_running_loop(), list[bytes]()
    with contextlib.suppress(ConnectionError):
        while piece := await loop.sock_recv(guest.socket, 65536):
            pieces.append(piece)
    return b"".join(pieces).decode()


def facts(pid: int) -> dict[str, Any]:
    """Return what the kernel shows of a process, seen from the host."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    spaces = ("user", "pid", "net", "ipc", "uts", "cgroup", "mnt")
    fds = Path(f"/proc/{pid}/fd")
    return {
        "status": status,
        "own": [name for name in spaces if os.stat(f"/proc/{pid}/ns/{name}") != os.stat(f"/proc/self/ns/{name}")],
        "environ": Path(f"/proc/{pid}/environ").read_text().split("\0")[:-1],
        "fds": {int(fd.name): os.readlink(fd) for fd in fds.iterdir()},
        "limits": Path(f"/proc/{pid}/limits").read_text(),
        "oom_score_adj": int(Path(f"/proc/{pid}/oom_score_adj").read_text()),
    }


def descriptors(pid: int) -> list[str]:
    """Return what a process holds open."""
    return [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]


async def play_hostile(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what the hostile program achieved, and the strength of the jail."""
    return await _play("hostile.js", json.dumps(plan), plan["minimum"])


async def play_exec_again(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a second exec of the engine."""
    return await _play("exec_again.js", plan["engine"])


async def _play(program: str, argument: str, minimum: Strength = "kernel") -> dict[str, Any]:
    launcher = Launcher(launch(program, argument, flags=("-A", "--unstable-net")), minimum=minimum)
    try:
        report = await launcher.start()
        guest = await launcher.spawn()
        said = await read_all(guest)
        await guest.wait()
        stderr = os.read(guest.stderr, 65536).decode()
        guest.close()
        return {"strength": report.strength, "said": said, "stderr": stderr}
    finally:
        await launcher.close()


async def play_report(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the report on the jail here and the state of a guest, or the refusal."""
    launcher = Launcher(echo_launch(plan), minimum=plan["minimum"])
    try:
        report = await launcher.start()
    except SandboxError as error:
        return {"refused": error.code, "message": error.message, "hint": error.hint, "data": error.data}
    try:
        guest = await launcher.spawn()
        said = await asyncio.get_running_loop().sock_recv(guest.socket, 100)
        guest.set_limits(data_bytes=1 << 30, cpu_seconds=7)
        seen = facts(guest.pid)
        guest.close()
    finally:
        await launcher.close()
    layers = {layer.name: [layer.in_force, layer.detail, layer.fix] for layer in report.layers}
    return {"strength": report.strength, "layers": layers, "said": said.decode(), "facts": seen}


async def play_run(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a Python program here, and the engine that ran it."""
    engine = None
    with tempfile.TemporaryDirectory() as folder:
        port = Gloveport(spare=0, minimum=plan["minimum"], store=Path(folder) / "store.sqlite")
        outcome = await port.run(plan["code"], language="python", engine=plan.get("engine"))
        with contextlib.suppress(OptionError):
            engine = (await port.recording(outcome.run)).engine
        await port.close()
    error = outcome.error and [outcome.error.code, outcome.error.message]
    return {"value": outcome.value, "error": error, "engine": engine}


async def play_engines(_: dict[str, Any]) -> dict[str, Any]:
    """Return the languages that each engine runs here by default; None for an engine that can't be used."""
    return {engine.name: engine.chosen if engine.available else None for engine in await try_engines()}


async def play_linger(plan: dict[str, Any]) -> dict[str, Any]:
    """Start guests, print their pids, and wait to be killed."""
    launcher = Launcher(echo_launch(plan))
    await launcher.start()
    guests = [await launcher.spawn() for _ in range(plan["guests"])]
    for guest in guests:
        await asyncio.get_running_loop().sock_recv(guest.socket, 100)
    assert launcher._server is not None
    told = {"server": launcher._server.process.pid, "guests": [guest.pid for guest in guests]}
    print(json.dumps({**told, "children": children_of(launcher._server.process.pid)}), flush=True)
    await asyncio.Event().wait()
    return {}


def children_of(pid: int) -> list[int]:
    """Return the children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def exists(pid: int) -> bool:
    """Return whether a process with this pid exists."""
    return Path(f"/proc/{pid}").exists()


def left() -> dict[str, Any]:
    """Return what this process holds open and what it left on the machine."""
    return {
        "fds": len(os.listdir("/proc/self/fd")),
        "children": Path("/proc/self/task", str(os.getpid()), "children").read_text(),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "memory": sorted(name for name in os.listdir("/dev/shm") if name.startswith("gloveport-") and _is_orphan(name)),
    }


def _is_orphan(name: str) -> bool:
    """Return whether a scratch directory is abandoned: a running fork server, ours or not, holds its lock."""
    try:
        fd = os.open(f"/dev/shm/{name}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


async def play_churn(plan: dict[str, Any]) -> dict[str, Any]:
    """Kill many guests at many moments; return what is left: descriptors, processes, mounts, files in memory."""
    before = left()
    launcher = Launcher(echo_launch(plan))
    await launcher.start()
    assert launcher._server is not None
    chance, server_fds = random.Random(1), list[int]()
    for _ in range(plan["batches"]):
        await asyncio.gather(*(_short_life(launcher, chance.random()) for _ in range(plan["guests"])))
        held = descriptors(launcher._server.process.pid)
        server_fds.append(len([link for link in held if not link.startswith("net:")]))  # networks stay for reuse
    await launcher.close()
    return {"before": before, "after": left(), "server_fds": server_fds, "directory": launcher._directory}


async def _short_life(launcher: Launcher, fate: float) -> None:
    guest = await launcher.spawn()
    if fate > 0.7:
        await asyncio.get_running_loop().sock_recv(guest.socket, 100)
    elif fate > 0.3:
        await asyncio.sleep(fate / 50)
    guest.kill()
    guest.kill()
    exit = await guest.wait()
    assert (exit.code, exit.signal) == (None, signal.SIGKILL)
    guest.close()


async def play_orphan(_: dict[str, Any]) -> dict[str, Any]:
    """Kill the fork server; return the path of the files that it can't remove any more."""
    launcher = Launcher(launch("echo.js"))
    await launcher.start()
    assert launcher._server is not None
    launcher._server.process.kill()
    await launcher.close()
    return {"directory": launcher._directory}


async def play_broken(_: dict[str, Any]) -> dict[str, Any]:
    """Return the errors of spawns in which a layer fails that the probes found to work."""
    deno, null = os.open(str(find_deno_bin()), os.O_PATH), os.open(os.devnull, os.O_RDWR)
    whole = confinement.Confinement(
        holds=frozenset({"landlock", "seccomp", "single exec"}),
        proc=os.open("/proc", os.O_PATH),
        engine=deno,
        argv=("deno", "--version"),
        env=ENV,
        files=(),
        watch=confinement.make_exec_watch(),
        calls=confinement.make_guest_filter(may_exec=True),
        threads=limits.MAX_THREADS,
    )
    nonsense = seccomp.SeccompProgram(seccomp.BpfFilter(b"nonsense"))
    broken = {
        "landlock": replace(whole, files=((9999, 4),)),
        "single exec": replace(whole, watch=nonsense),
        "seccomp": replace(whole, calls=nonsense),
        "namespaces": replace(whole, holds=whole.holds | {"namespaces"}, proc=null),
        "exec": whole,  # no Landlock rule allows the engine
    }
    said: dict[str, str] = {}
    for name, made in broken.items():
        try:
            fork_server.spawn(made, null, stdio=null, stderr=null)
        except fork_server.SpawnError as error:
            said[name] = str(error)
    return {"said": said, "children": left()["children"]}


class _Dead(NoNetworkPool):
    """Networks that no guest can enter."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDWR)
        self.out = 0

    def take(self) -> int:
        self.out += 1
        return self._null

    def give_back(self, network: int) -> None:
        self.out -= 1


async def play_lost_trial_guest(_: dict[str, Any]) -> dict[str, Any]:
    """Return the error of a zygote whose trial guest can't be jailed, and the number of networks still taken."""
    made, dead = python_launch("echo.py"), _Dead()
    spec = filesystem.LaunchSpec(made.executable, made.argv, made.env, made.files, made.folders, zygote=True)
    prepared, _, place, _ = fork_server.prepare(spec)
    try:
        zygote_client.ZygoteClient(prepared, place, dead).open()
    except fork_server.SpawnError as error:
        return {"said": str(error), "out": dead.out}
    return {}


async def play_session(_: dict[str, Any]) -> dict[str, Any]:
    """Return the results of two runs of a session, or the errors."""
    code = "import os\nopen('n', 'a').write('x')\nos.makedirs('d/e', exist_ok=True)\n[open('n').read(), os.listdir('d')]"
    async with Gloveport(minimum="kernel") as port:
        runs = [await port.run(code, language="python", session="s") for _ in range(2)]
    return {"values": [run.value for run in runs], "errors": [str(run.error) for run in runs if run.error is not None]}


async def play_packages(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the results of Python programs that import packages of a data folder, and how strong their jail was."""
    os.environ["XDG_DATA_HOME"] = plan["data"]
    async with Gloveport(minimum="kernel") as port:
        runs = [await port.run(code, language="python") for code in plan["programs"]]
        engine = await port._pools.find(port._pools.options("python", None, port.limits)).open()
    return {"values": [run.value for run in runs], "strength": engine.strength}


async def play_hostile_python(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what the hostile Python achieved against its host, fork server, zygote and sibling."""
    launcher = Launcher(python_launch("hostile.py"))
    try:
        report = await launcher.start()
        assert launcher._server is not None
        server = launcher._server.process.pid
        (zygote,) = children_of(server)
        sibling, guest = await launcher.spawn(), await launcher.spawn()
        others = {"the host": os.getpid(), "the fork server": server, "the zygote": zygote, "a sibling": sibling.pid}
        await asyncio.get_running_loop().sock_sendall(guest.socket, json.dumps({**plan, "others": others}).encode() + b"\n")
        said = await read_all(guest)
        exit = await guest.wait()
        stderr = os.read(guest.stderr, 65536).decode()
        alive = sum(map(exists, others.values()))
        for made in (guest, sibling):
            made.close()
        return {"strength": report.strength, "said": said, "stderr": stderr, "code": exit.code, "alive": alive}
    finally:
        await launcher.close()


async def play_ask(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of each guest to the questions."""
    launcher = Launcher(python_launch("ask.py"))
    try:
        report = await launcher.start()
        guests = [await launcher.spawn() for _ in range(plan["guests"])]
        for guest in guests:
            assert await _line(guest) == "ready"
        answers = [[await ask(guest, question) for question in plan["questions"]] for guest in guests]
        for guest in guests:
            guest.close()
    finally:
        await launcher.close()
    return {"strength": report.strength, "answers": answers}


async def ask(guest: Guest, source: str) -> Any:
    """Have `ask.py` run the source; return its answer."""
    await asyncio.get_running_loop().sock_sendall(guest.socket, json.dumps(source).encode() + b"\n")
    return await _line(guest)


async def _line(guest: Guest) -> Any:
    line = b""
    while not line.endswith(b"\n"):
        piece = await asyncio.get_running_loop().sock_recv(guest.socket, 1 << 20)
        assert piece, os.read(guest.stderr, 65536).decode()
        line += piece
    return json.loads(line)


async def play_program(plan: dict[str, Any]) -> dict[str, Any]:
    """Return how a program ended."""
    async with Gloveport(minimum=plan.get("minimum", "kernel"), spare=0) as port:
        outcome = await port.run(plan["code"], language=plan["language"], engine=plan.get("engine"))
    return {"value": outcome.value, "error": outcome.error and outcome.error.message}


SCENES = {
    "program": play_program,
    "hostile": play_hostile,
    "hostile_python": play_hostile_python,
    "session": play_session,
    "packages": play_packages,
    "ask": play_ask,
    "exec_again": play_exec_again,
    "report": play_report,
    "run": play_run,
    "engines": play_engines,
    "commands": commands.play_commands,
    "allowed": commands.play_allowed,
    "linger": play_linger,
    "churn": play_churn,
    "broken": play_broken,
    "lost_trial_guest": play_lost_trial_guest,
    "orphan": play_orphan,
}


def main() -> None:
    """Play the scene that the argument names."""
    wanted = json.loads(sys.argv[1])
    if wanted.get("inherit"):
        os.set_inheritable(os.open(wanted["inherit"], os.O_RDONLY), True)
    if wanted["user"] == "nobody":
        become_nobody()
    elif wanted["user"] == "reachable":
        open_the_way()
    elif wanted["user"] == "powerless":
        privileges.prepare_to_drop_capabilities()()
    elif wanted["user"] == CONTAINED:
        open_the_way()
        container.enter()
    elif wanted["user"] == CONTAINED_NOBODY:
        open_the_way()
        container.enter()
        leave_root()
    take_away(wanted["without"])

    async def play() -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE):
            return await SCENES[wanted["scene"]](wanted["plan"])

    print(json.dumps(asyncio.run(play())))


if __name__ == "__main__":
    main()
