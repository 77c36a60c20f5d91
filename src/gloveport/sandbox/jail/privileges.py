"""What a guest is rid of before it starts: root, capabilities, the means to use a machine up, and a life of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import struct
from errno import EINVAL, EPERM

from gloveport.sandbox.jail.namespaces import NOBODY, write
from gloveport.sandbox.jail.syscalls import call, prctl, prctl_while

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 1, 24, 28, 38
_SECUREBITS_LOCKED = 0xEF  # no root magic, no fix-up, no kept and no raised capabilities; each locked
_CAPABILITY_HEADER = struct.pack("2I", 0x20080522, 0)  # the third version of it, for this process
_NO_CAPABILITIES = struct.pack("6I", *[0] * 6)
_CLOSE_RANGE_CLOEXEC = 4

_BOUNDS = {
    resource.RLIMIT_CORE: 1,  # not 0: only at 1 does the kernel start no program of the host that core_pattern names
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_SIGPENDING: 64,
    resource.RLIMIT_STACK: 8 * 1024 * 1024,
    resource.RLIMIT_NICE: 0,
    resource.RLIMIT_RTPRIO: 0,
}
MOST_THREADS = 128
_ROOM = 4096


def thread_bound(uid: int, *, own_user: bool) -> int:
    """The RLIMIT_NPROC for a guest of this uid, which counts all threads of a user in a user namespace.

    A guest without one of its own can get more threads than it should, for as long as it takes to see that, but can't
    take all process ids of the machine.
    """
    return MOST_THREADS if own_user else _count_threads(uid) + _ROOM


def _count_threads(uid: int) -> int:
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            threads = os.stat(f"/proc/{name}/task")
            found += threads.st_nlink - 2 if threads.st_uid == uid else 0
    return found


def limits(threads: int) -> list[tuple[int, int]]:
    """What a guest can use up at most, by resource; never more than this process itself."""
    hard = {name: resource.getrlimit(name)[1] for name in (*_BOUNDS, resource.RLIMIT_NPROC)}
    wanted = {**_BOUNDS, resource.RLIMIT_NPROC: threads}
    return [
        (name, most if hard[name] == resource.RLIM_INFINITY else min(most, hard[name])) for name, most in wanted.items()
    ]


def set_limits(proc: int, limits: list[tuple[int, int]]) -> None:
    """Bound what a guest can use up; memory and processor time are set from outside, once the engine is idle."""
    write(proc, "self/oom_score_adj", b"1000")  # when memory runs out, the kernel takes a guest, not the host
    for name, most in limits:
        resource.setrlimit(name, (most, most))


def leave_root() -> None:
    """Become nobody, where this process is root on the host and may change that; nothing otherwise."""
    if os.geteuid() != 0:
        return
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except PermissionError:
        return  # a root without CAP_SETUID; the report says so


def no_new_privileges() -> None:
    """Let no exec ever bring a privilege; Landlock and seccomp ask for it."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Leave no capability in any set, and no way to one."""
    refusal = prctl_while(_PR_CAPBSET_DROP, range(64))
    if refusal not in (0, EPERM, EINVAL):  # nothing to drop them with; or past the last one
        raise OSError(refusal, f"capability bounding set: {os.strerror(refusal)}")
    with contextlib.suppress(PermissionError):  # without CAP_SETPCAP, under no_new_privs, nothing could come back
        prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies; a later change of credentials would undo it."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def keep_no_descriptors() -> None:
    """Let no descriptor above 2 survive the exec."""
    call("close_range", 3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def close_descriptors(first: int) -> None:
    """Close this descriptor and all above it, now: what is forked ready to run has no exec that would."""
    call("close_range", first, 0xFFFFFFFF, 0)
