"""Find out which layers of the jail work on this machine, by putting a child of the fork server into each of them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, ENOSYS, EPERM

from gloveport.sandbox.jail import filesystem, landlock, namespaces, privileges, zygote_client
from gloveport.sandbox.jail.confinement import Confinement
from gloveport.sandbox.jail.filesystem import RootLayout
from gloveport.sandbox.jail.namespaces import NetworkPool
from gloveport.sandbox.jail.strength import Layer
from gloveport.sandbox.jail.syscalls import call

RecordLayer = Callable[[str, bool, str], None]

_FIXES = {
    "namespaces": "allow user namespaces: {sysctl}in a container, a seccomp profile that permits unshare and clone",
    "root": "allow mounts in user namespaces: {sysctl}in a container, a profile that permits mount, pivot_root and setns",
    "landlock": "use Linux 5.13 or later with `landlock` in `lsm=`; in a container, a profile that permits landlock_*",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER; in a container, a profile that permits seccomp",
    "single exec": "leave the container whose own filter has a listener; meanwhile Landlock limits exec to the engine",
    "signal scope": "use Linux 6.12 or later; meanwhile seccomp limits signals to the guest itself",
    "fixed addresses": "in a container, a profile that permits personality(ADDR_NO_RANDOMIZE); meanwhile a set of plain "
    "objects can have another order in a run's replay",
    "identity": "run as an ordinary user, or as root with CAP_SETUID and CAP_SETGID",
}
_DEPENDS_ON = {"single exec": "seccomp", "signal scope": "landlock"}
_SYSCTLS = {
    "kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    "user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=10000"),
}


def probe_namespaces(layout: RootLayout, proc: int) -> list[Layer]:
    """Probe the layers `namespaces` and `root`: a child leaves the host as the fork server would, and clones a guest."""

    def attempt(record: RecordLayer) -> None:
        with recording(record, "namespaces", "user, PID, network, IPC, UTS and cgroup namespaces for each guest"):
            _clone_guest(namespaces.GUEST_FLAGS, lambda: None)
        with recording(record, "root", "pivot_root into a read-only tree in memory"):
            filesystem.leave_host(layout, proc)
            network = NetworkPool(proc).take()
            steps = namespaces.guest_namespace_steps(proc, network)
            _clone_guest(namespaces.CLONE_FLAGS, lambda: [step() for step in steps])

    recorded = _in_child(_fork, attempt)
    if not recorded.get("root", (False, ""))[0] and recorded.get("namespaces", (False, ""))[0]:
        recorded["namespaces"] = (False, "available, but without a root of their own")
    return _layers(recorded, ("namespaces", "root"))


def probe_fixed_addresses() -> list[Layer]:
    """Probe the layer `fixed addresses`: a zygote's program gets the same addresses each time, for exact replays."""

    def attempt(record: RecordLayer) -> None:
        with recording(record, "fixed addresses", "objects lie at the same addresses in every process"):
            zygote_client.fix_addresses()

    return _layers(_in_child(_fork, attempt), ("fixed addresses",))


def _clone_guest(flags: int, enter: Callable[[], object]) -> None:
    pid, pidfd = namespaces.clone(flags)
    if pid == 0:
        failed = 1
        try:
            enter()
            failed = 0 if os.getpid() == 1 else 1
        finally:
            os._exit(failed)
    _, status = os.waitpid(pid, 0)
    os.close(pidfd)
    if status:
        raise OSError(EPERM, "a guest could not enter its namespaces")


def find_unreadable(folders: Sequence[str]) -> str | None:
    """Return the first folder that a guest's user can't read without namespaces; None when it can read all."""

    def attempt(record: RecordLayer) -> None:
        privileges.leave_root()
        for folder in folders:
            with recording(record, folder, "open"):
                os.listdir(folder)

    recorded = _in_child(_fork, attempt)
    return next((folder for folder in folders if not recorded.get(folder, (False, ""))[0]), None)


def probe_layers(confinement: Confinement, network: int) -> list[Layer]:
    """Probe the other layers: a child enters each and then tries what the layer must refuse."""

    def attempt(record: RecordLayer) -> None:
        for name, step in confinement.steps(network):
            with recording(record, name, _DETAILS.get(name, "in force")):
                step()
                _CHECKS.get(name, _nothing)()
        with recording(record, "signal scope", "Landlock keeps signals and abstract sockets among a guest's own threads"):
            if landlock.abi_version() < landlock.SCOPE_ABI:
                raise OSError(ENOSYS, f"Landlock ABI {landlock.abi_version()} has no scopes")
        with recording(record, "single exec", "the fork server lets a guest exec once"):
            os.close(confinement.watch.install_with_listener())
            _expect_refusal(lambda: os.execve("/nonexistent", ["none"], {}), ENOSYS)
        with recording(record, "seccomp", "an allow-list of system calls"):
            confinement.restrict_calls()
            _expect_refusal(lambda: call("socket", socket.AF_INET, socket.SOCK_STREAM, 0), EPERM)

    names = (
        "landlock",
        "seccomp",
        "single exec",
        "signal scope",
        "identity",
        "limits",
        *(["workspace"] if confinement.workspace else []),
    )
    return _layers(_in_child(confinement.clone, attempt), names)


_DETAILS = {
    "landlock": "only the engine, its libraries and its files can be opened",
    "identity": "guests are not root on the host",
    "limits": "resource limits",
}


def _nothing() -> None:
    pass


def _check_landlock() -> None:
    _expect_refusal(lambda: os.open("/", os.O_RDONLY | os.O_DIRECTORY), EACCES)


def _check_identity() -> None:
    if os.geteuid() == 0:
        raise OSError(EPERM, "guests run as root, because this root may not change its user")


_CHECKS: dict[str, Callable[[], None]] = {"landlock": _check_landlock, "identity": _check_identity}


def _expect_refusal(attempt: Callable[[], object], code: int) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno == code:
            return
        raise
    raise OSError(EPERM, "applied, but it refuses nothing")


@contextmanager
def recording(record: RecordLayer, name: str, detail: str) -> Iterator[None]:
    """Record the layer as in force, with `detail`, when the block succeeds; else as missing, with the error."""
    try:
        yield
    except OSError as error:
        record(name, False, error.strerror or str(error))
    else:
        record(name, True, detail)


def _fork() -> tuple[int, int]:
    return namespaces.clone(0)


def _in_child(start: Callable[[], tuple[int, int]], attempt: Callable[[RecordLayer], None]) -> dict[str, tuple[bool, str]]:
    """Run `attempt` in a forked child; return what it recorded. A layer recorded as missing once stays missing."""
    reader, writer = os.pipe()
    pid, pidfd = start()
    if pid == 0:
        try:
            attempt(lambda *words: _write(writer, words))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as lines:
        recorded = [json.loads(line) for line in lines]
    os.waitpid(pid, 0)
    os.close(pidfd)
    result: dict[str, tuple[bool, str]] = {}
    for name, holds, detail in recorded:
        if result.get(name, (True, ""))[0]:
            result[name] = (holds, detail)
    return result


def _write(fd: int, words: tuple[str, bool, str]) -> None:
    os.write(fd, json.dumps(words).encode() + b"\n")


def _layers(recorded: dict[str, tuple[bool, str]], names: tuple[str, ...]) -> list[Layer]:
    layers: list[Layer] = []
    for name in names:
        holds, detail = recorded.get(name, (False, "could not be tried"))
        layers.append(Layer(name, holds, detail, None if holds else _fix(name, recorded)))
    return layers


def _fix(name: str, recorded: dict[str, tuple[bool, str]]) -> str:
    """Return how to get a missing layer, or the layer that it depends on when that one is missing too."""
    below = _DEPENDS_ON.get(name)
    if below and not recorded.get(below, (False, ""))[0]:
        name = below
    return _FIXES.get(name, "see the detail").format(sysctl=_sysctl_fix())


def _sysctl_fix() -> str:
    for path, (bad, fix) in _SYSCTLS.items():
        try:
            with open(f"/proc/sys/{path}", encoding="ascii") as file:
                if file.read().strip() == bad:
                    return f"{fix}; "
        except OSError:
            continue
    return ""
