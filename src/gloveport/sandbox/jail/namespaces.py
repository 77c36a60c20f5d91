"""Namespaces: the fork server moves into a user namespace, and `clone` starts each guest in fresh ones of its own.

The fork server lives in a user namespace in which its uid 0 is an ordinary uid outside; a guest lives in one below it,
in which there is no uid 0 at all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Callable

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS, call, prctl

NEWNS = 0x00020000
NEWCGROUP = 0x02000000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000
CLONE_FLAGS = NEWPID | NEWIPC | NEWUTS | NEWCGROUP
GUEST_FLAGS = CLONE_FLAGS | NEWUSER | NEWNET  # into the last two a guest moves by itself

_CLONE_PIDFD = 0x00001000
_CLONE_PARENT = 0x00008000
_PR_SET_DUMPABLE = 4

NOBODY = 65534
GUEST_NAME = b"guest"
_MAX_FREE_NETWORKS = 16


def outside_id(own: int) -> int:
    """The uid (or gid) that guests have on the host: the caller's, but never root's."""
    return own if own else NOBODY


def enter_user_namespace(proc: int) -> None:
    """Move this process into a user namespace whose uid 0 is `outside_id` outside; `become_nobody` completes it."""
    uid, gid = outside_id(os.geteuid()), outside_id(os.getegid())
    me = os.getpid()
    reader, writer = os.pipe()
    # Someone who stayed outside must write the map: inside, only the caller's own uid could be mapped.
    helper = os.fork()
    if helper == 0:
        failed = 1
        try:
            os.close(writer)
            if os.read(reader, 1):
                write(proc, f"{me}/setgroups", b"deny")  # so it is in every user namespace below, too
                write_maps(proc, str(me), uid=(0, uid), gid=(0, gid))
                failed = 0
        finally:
            os._exit(failed)
    os.close(reader)
    try:
        call("unshare", NEWUSER)
        os.write(writer, b"x")
    finally:
        os.close(writer)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError(errno.EPERM, f"uid_map: this process may not map uid {uid}")


def become_nobody() -> None:
    """Take on the one uid of the user namespace: 0 inside, `outside_id` outside."""
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    # A change of credentials hides /proc/self from its own process, which still has maps to write.
    prctl(_PR_SET_DUMPABLE, 1)


def write_maps(proc: int, process: str, *, uid: tuple[int, int], gid: tuple[int, int]) -> None:
    """Map one uid and one gid, (inside, outside), for a process that has just got its user namespace."""
    write(proc, f"{process}/uid_map", b"%d %d 1" % uid)
    write(proc, f"{process}/gid_map", b"%d %d 1" % gid)


def write(proc: int, path: str, text: bytes) -> None:
    """Write to a file of /proc."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def clone(flags: int) -> tuple[int, int]:
    """Fork into new namespaces: (pid, pidfd) in the parent, (0, -1) in the child. The process must have one thread.

    Python is not told of the fork, which saves 0.4 ms and is fine for a child that soon execs or exits. One that is to
    live on needs PyOS_BeforeFork and PyOS_AfterFork_Child around this.
    """
    pidfd = ctypes.c_int(-1)
    pid = call("clone", flags | _CLONE_PIDFD | signal.SIGCHLD, 0, ctypes.byref(pidfd), 0, 0)
    return pid, pidfd.value if pid else -1


def make_sibling_cloner(flags: int) -> Callable[[], int]:
    """What forks into new namespaces a child not of this process but of its parent: its pid, 0 in it, or minus an errno.

    A call leaves this process's memory as it found it: plain integers, which fit into a C int here, are passed without
    a wrapper for each, and six wrappers that are freed in the order of their making would lie the other way round next.
    """
    syscall = ctypes.PyDLL(None, use_errno=True)["syscall"]
    number, flags = NUMBERS[MACHINE]["clone"], flags | _CLONE_PARENT | signal.SIGCHLD

    def make() -> int:
        pid = syscall(number, flags, 0, 0, 0, 0)
        return pid if pid >= 0 else -ctypes.get_errno()

    return make


def enter_guest_namespaces(proc: int, network: int) -> None:
    """The child's part after `clone(CLONE_FLAGS)`: be in a network, on a host of no name, and then nobody.

    In this order, so that all its namespaces belong to the fork server's user: whatever privilege a guest may come by
    in its own user namespace, it has none over them.
    """
    call("setns", network, NEWNET)
    call("sethostname", ctypes.c_char_p(GUEST_NAME), len(GUEST_NAME))
    call("unshare", NEWUSER)
    write_maps(proc, "self", uid=(NOBODY, 0), gid=(NOBODY, 0))


class NetworkPool:
    """The networks of a fork server's guests, as descriptors of namespaces. The fork server itself is in none of them."""

    def __init__(self, proc: int) -> None:
        self._proc = proc
        call("unshare", NEWNET)
        self._own = self._current()
        self._free: list[int] = []

    def take(self) -> int:
        """A network that nobody is in."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, network: int) -> None:
        """Take back the network of a guest that has ended, with all that it started."""
        if len(self._free) < _MAX_FREE_NETWORKS:
            self._free.append(network)
        else:
            os.close(network)

    def _make(self) -> int:
        call("unshare", NEWNET)
        try:
            return self._current()
        finally:
            call("setns", self._own, NEWNET)

    def _current(self) -> int:
        return os.open("self/ns/net", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)


class NoNetworkPool:
    """Where there are no namespaces: what stands for a network is never looked at."""

    def take(self) -> int:
        """No descriptor."""
        return -1

    def give_back(self, network: int) -> None:
        """Nothing."""
