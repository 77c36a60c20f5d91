"""Namespaces: the fork server enters a user namespace, and `clone` starts each guest in new namespaces.

In the fork server's user namespace, uid 0 is an ordinary uid outside. Each guest has a user namespace below it, which
maps no uid 0 at all.

A `NetworkPool` gives each guest an empty network namespace and reuses it after the guest has ended: creating and
destroying one costs the kernel 0.7 ms, a tenth of a run in a forked engine. A guest can't leave anything behind in it,
because it belongs to the fork server's user namespace, where no guest has a privilege.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Callable

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS, call, prctl, prepare, prepare_write

NEWNS = 0x00020000
NEWCGROUP = 0x02000000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000
CLONE_FLAGS = NEWPID | NEWIPC | NEWUTS | NEWCGROUP
GUEST_FLAGS = CLONE_FLAGS | NEWUSER | NEWNET  # the guest enters the last two itself

_CLONE_PIDFD = 0x00001000
_CLONE_PARENT = 0x00008000
_PR_SET_DUMPABLE = 4

NOBODY = 65534
GUEST_NAME = b"guest"
_MAX_FREE_NETWORKS = 16


def outside_id(own: int) -> int:
    """Return the uid or gid of guests on the host: the caller's own, or nobody when the caller is root."""
    return own if own else NOBODY


def enter_user_namespace(proc: int) -> None:
    """Move this process into a user namespace whose uid 0 is `outside_id` outside. Call `become_nobody` next."""
    uid, gid = outside_id(os.geteuid()), outside_id(os.getegid())
    me = os.getpid()
    reader, writer = os.pipe()
    # A process outside the namespace must write the map: from inside, only the caller's own uid could be mapped.
    helper = os.fork()
    if helper == 0:
        failed = 1
        try:
            os.close(writer)
            if os.read(reader, 1):
                write_proc(proc, f"{me}/setgroups", b"deny")  # applies to every user namespace below, too
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
    """Take on the only uid of the user namespace: 0 inside, `outside_id` outside."""
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    # A change of credentials makes /proc/self unwritable for its own process, which still has maps to write.
    prctl(_PR_SET_DUMPABLE, 1)


def write_maps(proc: int, process: str, *, uid: tuple[int, int], gid: tuple[int, int]) -> None:
    """Map one uid and one gid, each (inside, outside), for a process that has just entered a user namespace."""
    write_proc(proc, f"{process}/uid_map", b"%d %d 1" % uid)
    write_proc(proc, f"{process}/gid_map", b"%d %d 1" % gid)


def write_proc(proc: int, path: str, text: bytes) -> None:
    """Write to a file under /proc."""
    prepare_write(proc, path, text)()


def clone(flags: int) -> tuple[int, int]:
    """Fork into new namespaces; return (pid, pidfd) in the parent, (0, -1) in the child. Requires a single thread.

    Python's fork hooks do not run, which saves 0.4 ms. That is safe for a child that soon execs or exits; a child that
    lives longer would need PyOS_BeforeFork and PyOS_AfterFork_Child around this call.
    """
    pidfd = ctypes.c_int(-1)
    pid = call("clone", flags | _CLONE_PIDFD | signal.SIGCHLD, 0, ctypes.byref(pidfd), 0, 0)
    return pid, pidfd.value if pid else -1


def make_sibling_cloner(flags: int) -> Callable[[], int]:
    """Return a function that forks a sibling (a child of this process's parent) into new namespaces.

    The function returns the sibling's pid, 0 in the sibling, or a negative errno. A call leaves the memory of this
    process unchanged, so that every guest finds its objects at the same addresses: it passes plain integers, which fit
    a C int here. Six ctypes wrappers, freed in the order of their creation, would swap their places at the next call.
    """
    syscall = ctypes.PyDLL(None, use_errno=True)["syscall"]
    number, flags = NUMBERS[MACHINE]["clone"], flags | _CLONE_PARENT | signal.SIGCHLD

    def make() -> int:
        pid = syscall(number, flags, 0, 0, 0, 0)
        return pid if pid >= 0 else -ctypes.get_errno()

    return make


def guest_namespace_steps(proc: int, network: int) -> list[Callable[[], object]]:
    """Return what finishes the namespaces of a child after `clone(CLONE_FLAGS)`: network, host name, own user namespace.

    The user namespace comes last so that the fork server's user owns all the others: a guest that gains a privilege in
    its own user namespace has none over them.
    """
    return [
        prepare("setns", network, NEWNET),
        prepare("sethostname", ctypes.c_char_p(GUEST_NAME), len(GUEST_NAME)),
        prepare("unshare", NEWUSER),
        prepare_write(proc, "self/uid_map", b"%d 0 1" % NOBODY),
        prepare_write(proc, "self/gid_map", b"%d 0 1" % NOBODY),
    ]


class NetworkPool:
    """Network namespaces for guests, as descriptors. The fork server itself has a separate one."""

    def __init__(self, proc: int) -> None:
        self._proc = proc
        call("unshare", NEWNET)
        self._own = self._current()
        self._free: list[int] = []

    def take(self) -> int:
        """Return a network namespace that no process is in."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, network: int) -> None:
        """Take back the network of a guest that has ended together with all its processes."""
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
    """Stands in for a NetworkPool where namespaces are unavailable: its descriptor is never used."""

    def take(self) -> int:
        """Return -1, which is no descriptor."""
        return -1

    def give_back(self, network: int) -> None:
        """Do nothing."""
