"""Guests of the zygote start identical down to their addresses, share nothing, and leave nothing; weak jails are refused."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gloveport
from gloveport import Gloveport
from gloveport.errors import SandboxError
from gloveport.sandbox.engines.zygote_launch import ENVIRONMENT, PACKAGE, find_python
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launcher
from tests.sandbox.jail.host import REPOSITORY, ask, children_of, facts, python_launch
from tests.sandbox.jail.stage import host_command, host_env, play, run
from tests.sandbox.test_cpython_jail import SURROUNDINGS

pytestmark = pytest.mark.integration

MB = 1024 * 1024
PRIVATE_KB = 3 * 1024


@pytest.fixture
async def launcher() -> AsyncIterator[Launcher]:
    made = Launcher(python_launch("ask.py"))
    await made.start()
    yield made
    await made.close()


async def start(launcher: Launcher) -> Guest:
    guest = await launcher.spawn()
    async with asyncio.timeout(120):
        assert await asyncio.get_running_loop().sock_recv(guest.socket, 100) == b'"ready"\n'
    return guest


async def answer(guest: Guest, source: str) -> Any:
    async with asyncio.timeout(120):
        return await ask(guest, source)


async def wait(guest: Guest) -> tuple[int | None, int | None]:
    async with asyncio.timeout(120):
        exit = await guest.wait()
    return exit.code, exit.signal


def of_process(pid: int, name: str) -> list[str]:
    return Path(f"/proc/{pid}/{name}").read_text().splitlines()


def zygote_of(launcher: Launcher, *guests: Guest) -> int:
    assert launcher._server is not None
    (zygote,) = set(children_of(launcher._server.process.pid)) - {guest.pid for guest in guests}
    return zygote


# ── identical ──

# Blocks of every size for which Python keeps free lists, and larger ones; and the time of the next collection.
LAYOUT = """
import gc
kept, out = [], [gc.get_count(), gc.get_stats(), hash("x"), hash(b"y"), id(gc), id(object)]
for size in range(0, 1200, 8):
    kept += [bytes(size + 1) for _ in range(50)]
for _ in range(200):
    kept += [{}, [], object(), set(), (kept,), 1.5 * len(kept), 10**12 + len(kept), lambda: 0, type("T", (), {})]
out += [id(one) for one in kept]
out += [[kept.index(one) for one in {one for one in kept[-900:] if type(one) is object}]]
"""


@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_every_guest_of_every_launcher_finds_the_same_hashes_and_addresses(
    user: str, without: list[str], strength: str
) -> None:
    plan = {"guests": 6, "questions": [LAYOUT]}
    first = await play("ask", plan, user=user, without=without)
    second = await play("ask", plan, user=user, without=without)
    assert first["strength"] == second["strength"] == strength
    alike = {json.dumps(answers) for told in (first, second) for answers in told["answers"]}
    assert len(alike) == 1
    assert len(json.loads(alike.pop())[0]) > 9000


async def test_the_hundredth_guest_is_like_the_first(launcher: Launcher) -> None:
    guest = await start(launcher)
    first = await answer(guest, LAYOUT)
    guest.close()
    for _ in range(99):
        guest = await start(launcher)
        guest.close()
    guest = await start(launcher)
    assert await answer(guest, LAYOUT) == first
    guest.close()


HOST_PATHS = """
import os, sys, types
seen, found = set(), set()
def code(made):
    found.add(made.co_filename)
    for constant in made.co_consts:
        if isinstance(constant, types.CodeType):
            code(constant)
for module in list(sys.modules.values()):
    spec = getattr(module, "__spec__", None)
    for holder, name in ((module, "__file__"), (module, "__cached__"), (spec, "origin"), (spec, "cached")):
        found.add(str(getattr(holder, name, None)))
    found.update(map(str, getattr(module, "__path__", ())))
    for value in list(vars(module).values()):
        for part in (value, *(vars(value).values() if isinstance(value, type) else ())):
            if isinstance(part, types.FunctionType):
                code(part.__code__)
found.update((*sys.path, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.executable, sys._stdlib_dir, *sys.argv))
found.update(sys.orig_argv[:1], os.environ.values(), sys.path_importer_cache, [os.getcwd(), os.__file__])
out = sorted(found)
"""


async def test_no_path_of_the_host_is_to_be_found_in_a_guest(launcher: Launcher) -> None:
    guest = await start(launcher)
    found = await answer(guest, HOST_PATHS)
    paths = [text for text in found if "/" in text]
    _, library = find_python()
    inside = (f"/usr/{sys.platlibdir}/{os.path.basename(library)}", f"/guest/{PACKAGE}", "/guest", "/usr/bin/python")
    zip_file = f"/usr/{sys.platlibdir}/python{sys.version_info[0]}{sys.version_info[1]}.zip"
    assert [path for path in paths if not path.startswith(inside) and path not in ("/", "/usr", zip_file)] == []
    assert len(paths) > 100
    assert await answer(guest, "import sys; out = sorted(n for n in sys.modules if n.startswith('gloveport'))") == [PACKAGE]
    guest.close()


IMPORTS = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
importlib.invalidate_caches()
out = []
for name in sorted(sys.stdlib_module_names):
    if name not in ("antigravity", "this", "idlelib", "__main__"):
        try:
            importlib.import_module(name)
        except (ImportError, PermissionError):
            out.append(name)
"""


@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_the_whole_standard_library_can_be_imported_and_nothing_that_is_installed(
    user: str, without: list[str], strength: str
) -> None:
    installed = ["pytest", "deno", "pip", "setuptools", "gloveport", "sitecustomize", "test", "ensurepip", "turtledemo"]
    tries = f"""
out = []
for name in {installed!r}:
    try:
        out.append(__import__(name).__name__)
    except (ImportError, PermissionError):
        pass
"""
    told = await play("ask", {"guests": 1, "questions": [IMPORTS, tries]}, user=user, without=without)
    program, _ = find_python()
    outside, _ = await run(program, "-I", "-S", "-c", f"{IMPORTS}\nimport json; print(json.dumps(out))", env={})
    (missing, wrong), lacking = told["answers"][0], set(json.loads(outside))
    assert told["strength"] == strength
    assert set(missing) - lacking <= {"_tkinter", "ensurepip", "tkinter", "turtle", "turtledemo"}
    assert wrong == []


# ── isolated ──

PLANT = """
import builtins, json, os, sys, types, gc, random, decimal, threading
builtins.planted = json.planted = os.environ["planted"] = sys.planted = "canary"
sys.modules["planted"] = types.ModuleType("planted")
sys.path.append("/planted"); sys.argv.append("planted"); sys.path_hooks.append("planted")
json.dumps.__defaults__ = (); random.seed(1); decimal.getcontext().prec = 3; threading.planted = 1
gc.disable(); sys.setrecursionlimit(77); sys.setswitchinterval(9); os.environ["TZ"] = "planted"
int.__doc__; len("canary" * 1000); out = "planted"
import ctypes; ctypes.memset(id(257) + 24, 7, 4)
"""
LOOK = """
import builtins, json, os, sys, gc, random, decimal, threading
out = [hasattr(builtins, "planted"), hasattr(json, "planted"), "planted" in os.environ, hasattr(sys, "planted")]
out += ["planted" in sys.modules, "/planted" in sys.path, "planted" in sys.argv, "planted" in sys.path_hooks]
out += [os.environ["TZ"] == "planted", not gc.isenabled(), sys.getrecursionlimit() == 77, sys.getswitchinterval() > 1]
out += [decimal.getcontext().prec == 3, hasattr(threading, "planted"), 257 != 256 + len("x")]
"""


async def test_what_a_guest_does_to_its_memory_is_seen_by_no_other(launcher: Launcher) -> None:
    before = await start(launcher)
    planter = await start(launcher)
    assert await answer(planter, PLANT) == "planted"
    assert any(await answer(planter, LOOK))
    after = await start(launcher)
    for guest in (before, after):
        assert not any(await answer(guest, LOOK))
    for guest in (before, planter, after):
        guest.close()


async def test_a_guest_shares_no_memory_and_no_descriptor_with_its_zygote(launcher: Launcher) -> None:
    guest, other = await start(launcher), await start(launcher)
    zygote = zygote_of(launcher, guest, other)
    for pid in (guest.pid, zygote):
        assert not [line for line in of_process(pid, "maps") if line.split()[1].endswith("s")]
    fds = facts(guest.pid)["fds"]
    assert sorted(fds) == [0, 1, 2]
    assert fds[0] == fds[1]
    assert not set(fds.values()) & (set(facts(zygote)["fds"].values()) | set(facts(other.pid)["fds"].values()))
    for made in (guest, other):
        made.close()


async def test_a_guest_that_waits_has_little_memory_of_its_own(launcher: Launcher) -> None:
    guests = [await start(launcher) for _ in range(4)]
    for guest in guests:
        fields = dict(line.split(":", 1) for line in of_process(guest.pid, "smaps_rollup")[1:])
        assert int(fields["Private_Dirty"].split()[0]) < PRIVATE_KB
        guest.close()


@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_a_forked_guest_has_no_privilege_no_file_and_no_variable_that_it_was_not_given(
    user: str, without: list[str], strength: str
) -> None:
    told = await play("report", {"minimum": "kernel", "engine": "cpython"}, user=user, without=without, inherit=os.devnull)
    seen, status = told["facts"], told["facts"]["status"]
    assert (told["strength"], told["said"]) == (strength, "ready\n")
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"], status["Threads"]) == ("1", "2", "1")
    assert "0" not in status["Uid"].split() + status["Gid"].split()
    assert "0" not in status["Groups"].split()
    assert sorted(seen["environ"]) == sorted(f"{name}={value}" for name, value in ENVIRONMENT.items())
    assert sorted(seen["fds"]) == ["0", "1", "2"]
    assert not [link for link in seen["fds"].values() if link.startswith("/")]
    assert seen["oom_score_adj"] == 1000
    limits = {line[:26].strip(): line[26:].split() for line in seen["limits"].splitlines()[1:]}
    expected = {"Max core file size": "1", "Max file size": "0", "Max open files": "64", "Max locked memory": "0"}
    assert {name: limits[name][:2] for name in expected} == {name: [value, value] for name, value in expected.items()}
    if strength == "full":
        assert set(seen["own"]) == {"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"}
        assert status["CapBnd"] == "0" * 16
        assert status["NSpid"].split()[-1] == "1"


# ── limits ──


async def test_a_guest_that_takes_too_much_memory_gets_an_error_that_it_can_catch(launcher: Launcher) -> None:
    guest = await start(launcher)
    idle = int(facts(guest.pid)["status"]["VmData"].split()[0]) * 1024
    guest.set_limits(data_bytes=idle + 64 * MB, cpu_seconds=None)
    hungry = """
all = []
try:
    while True: all.append(bytearray(10**6))
except MemoryError:
    all, out = len(all), True
out = all
"""
    assert 30 < await answer(guest, hungry) < 70
    assert await answer(guest, "out = len(bytearray(50 * 10**6))") == 50 * 10**6
    guest.close()


async def test_a_guest_that_computes_too_long_is_killed(launcher: Launcher) -> None:
    guest = await start(launcher)
    guest.set_limits(data_bytes=None, cpu_seconds=1)
    await asyncio.get_running_loop().sock_sendall(guest.socket, json.dumps("while True: pass").encode() + b"\n")
    async with asyncio.timeout(120):
        exit = await guest.wait()
    assert exit.signal == signal.SIGKILL
    assert 0.5 < exit.cpu_seconds < 2
    guest.close()


async def test_a_guest_that_crashes_takes_nobody_with_it(launcher: Launcher) -> None:
    guest, other = await start(launcher), await start(launcher)
    await asyncio.get_running_loop().sock_sendall(
        guest.socket, json.dumps("import ctypes; ctypes.string_at(0)").encode() + b"\n"
    )
    assert await wait(guest) == (None, signal.SIGSEGV)
    assert await answer(other, "out = 1") == 1
    after = await start(launcher)
    for made in (guest, other, after):
        made.close()


async def test_a_guest_that_comes_to_its_end_exits_with_zero(launcher: Launcher) -> None:
    guest = await start(launcher)
    guest.socket.shutdown(1)
    assert await wait(guest) == (0, None)
    guest.close()


# ── ends ──


@pytest.mark.parametrize(("user", "without"), [("self", []), ("reachable", ["namespaces"]), ("nobody", [])])
async def test_two_hundred_forked_guests_killed_at_any_moment_leave_nothing(user: str, without: list[str]) -> None:
    told = await play("churn", {"batches": 20, "guests": 10, "engine": "cpython"}, user=user, without=without)
    before, after = told["before"], told["after"]
    before.pop("memory")  # other processes on this machine may have theirs there
    assert os.path.basename(told["directory"] or "") not in after.pop("memory")
    assert after == before
    assert max(told["server_fds"]) == min(told["server_fds"])


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(("user", "without"), [("self", []), ("reachable", ["namespaces"])])
def test_neither_guests_nor_their_zygote_outlive_a_host_that_is_killed(user: str, without: list[str], frozen: bool) -> None:
    command = host_command("linger", {"guests": 3, "engine": "cpython"}, user=user, without=without)
    host = subprocess.Popen(command, env=host_env(), stdout=subprocess.PIPE, cwd=REPOSITORY)
    assert host.stdout is not None
    told = json.loads(host.stdout.readline())
    assert len(told["children"]) == 4
    assert set(told["guests"]) < set(told["children"])
    watched = [os.pidfd_open(pid) for pid in (told["server"], *told["children"])]
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


async def test_a_zygote_that_was_lost_is_replaced_and_its_guests_live_on(launcher: Launcher) -> None:
    before = await start(launcher)
    layout = await answer(before, LAYOUT)
    lost = zygote_of(launcher, before)
    os.kill(lost, signal.SIGKILL)
    after = await start(launcher)
    assert zygote_of(launcher, before, after) != lost
    assert await answer(after, LAYOUT) == layout
    assert await answer(before, "out = 1") == 1
    for guest in (before, after):
        guest.close()


async def test_a_zygote_that_hangs_fails_the_spawn_and_not_the_next(launcher: Launcher) -> None:
    frozen = zygote_of(launcher)
    os.kill(frozen, signal.SIGSTOP)
    with pytest.raises(SandboxError, match="zygote does not answer"):
        await launcher.spawn()
    guest = await start(launcher)
    assert zygote_of(launcher, guest) != frozen
    guest.close()


# ── unusable packages and platforms ──


async def test_a_guest_package_that_fails_to_load_is_refused_with_its_own_words() -> None:
    made = python_launch("echo.py")
    broken = {**made.files, f"/guest/{PACKAGE}/__init__.py": b"raise ValueError('not today')"}
    launcher = Launcher(replace(made, files=broken))
    with pytest.raises(SandboxError, match=r"the zygote did not start(.|\n)*not today"):
        await launcher.start()


async def test_what_a_guest_package_raises_is_read_from_its_stderr() -> None:
    made = python_launch("echo.py")
    source = b"def preload(): pass\ndef main(): raise ValueError('heard')"
    launcher = Launcher(replace(made, files={**made.files, f"/guest/{PACKAGE}/__init__.py": source}))
    await launcher.start()
    guest = await launcher.spawn()
    assert await wait(guest) == (1, None)
    assert b"heard" in os.read(guest.stderr, 65536)
    guest.close()
    await launcher.close()


@pytest.mark.parametrize("user", ["reachable", "nobody"])
@pytest.mark.parametrize(
    ("without", "strength", "words"),
    [
        (["namespaces", "signal scope"], "kernel", ("signal scope: Landlock ABI 5 has no scopes", "Linux 6.12")),
        (["namespaces", "landlock"], "none", ("landlock_create_ruleset", "Linux 5.13")),
        (["seccomp"], "none", ("seccomp: Operation not permitted", "CONFIG_SECCOMP_FILTER")),
    ],
)
async def test_a_jail_that_does_not_hold_native_code_is_refused_with_the_reason_and_the_fix(
    user: str, without: list[str], strength: str, words: tuple[str, str]
) -> None:
    told = await play("report", {"minimum": "none", "engine": "cpython"}, user=user, without=without)
    assert told["refused"] == "sandbox-unavailable"
    assert f"of strength `{strength}`, and this engine requires `full`, or `kernel` with the layer" in told["message"]
    assert words[0] in told["message"]
    assert words[1] in told["hint"]


async def test_namespaces_make_up_for_a_landlock_without_scopes() -> None:
    told = await play("report", {"minimum": "full", "engine": "cpython"}, user="self", without=["signal scope"])
    assert (told["strength"], told["said"]) == ("full", "ready\n")
    assert not told["layers"]["signal scope"][0]


async def test_addresses_that_cannot_be_fixed_are_reported_and_guests_start_all_the_same() -> None:
    told = await play("report", {"minimum": "full", "engine": "cpython"}, user="self", without=["fixed addresses"])
    holds, detail, fix = told["layers"]["fixed addresses"]
    assert (told["strength"], told["said"], holds) == ("full", "ready\n", False)
    assert "personality" in detail
    assert "ADDR_NO_RANDOMIZE" in fix


async def test_an_interpreter_that_guests_could_not_read_is_refused_with_its_path() -> None:
    folder = REPOSITORY / "closed"
    folder.mkdir(mode=0o700)
    try:
        plan = {"minimum": "kernel", "engine": "cpython", "closed": str(folder)}
        told = await play("report", plan, user="reachable", without=["namespaces"])
    finally:
        folder.rmdir()
    if os.geteuid() == 0:
        assert told["refused"] == "sandbox-unavailable"
        assert f"{folder} can't be read by the user that guests run as" in told["message"]
    else:
        assert told["said"] == "ready\n"


# Everything that Python itself shows of where a thing lies: modules, code, settings, arguments, a traceback.
SHOWN = """
import gc, json, os, sys, sysconfig, traceback, types
import decimal, email, html.parser, unittest, xml.dom.minidom

shown, codes = {}, [thing.__code__ for thing in gc.get_objects() if isinstance(thing, types.FunctionType)]
for module in list(sys.modules.values()):
    codes += [thing.__code__ for thing in vars(module).values() if isinstance(thing, types.FunctionType)]
    places = [str(getattr(module, name, "")) for name in ("__file__", "__cached__", "__path__", "__spec__")]
    shown[f"module {module.__name__}"] = " ".join(places)
while codes:
    code = codes.pop()
    shown[f"code {code.co_qualname}"] = code.co_filename
    codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
for name in dir(sys):
    shown[f"sys.{name}"] = repr(getattr(sys, name))
for name, value in {**sysconfig.get_config_vars(), **sysconfig.get_paths()}.items():
    shown[f"sysconfig {name}"] = str(value)
shown["environment"] = repr(os.environ)
try:
    json.loads("{")
except ValueError:
    shown["traceback"] = traceback.format_exc()
[place for place, text in shown.items() if any(word in text for word in input)]
"""


async def test_python_shows_no_path_of_the_host() -> None:
    """Threat S9. The interpreter's own file contains the path that it was built for; see SECURITY.md."""
    paths = {sys.base_prefix, sys.prefix, str(Path(gloveport.__file__).parents[2]), str(Path.home()), tempfile.gettempdir()}
    async with Gloveport(minimum="full") as port:
        outcome = await port.run(SHOWN, language="python", engine="cpython", input=sorted(paths - {"/", "/usr"}))
    assert outcome.value == [], outcome
