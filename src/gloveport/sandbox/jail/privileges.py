"""Drop privileges before the guest starts: root, capabilities, unlimited resources, and surviving its parent."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import struct
from errno import EINVAL, EPERM

from gloveport.sandbox.jail.namespaces import NOBODY, write_proc
from gloveport.sandbox.jail.syscalls import call, prctl, prctl_while

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 1, 24, 28, 38
_SECUREBITS_LOCKED = 0xEF  # NOROOT, NO_SETUID_FIXUP, no KEEP_CAPS, NO_CAP_AMBIENT_RAISE; all locked
_CAPABILITY_HEADER = struct.pack("2I", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, pid 0: this process
_NO_CAPABILITIES = struct.pack("6I", *[0] * 6)
_CLOSE_RANGE_CLOEXEC = 4

_RESOURCE_LIMITS = {
    resource.RLIMIT_CORE: 1,  # not 0: only 1 keeps the kernel from starting the host program in core_pattern
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_SIGPENDING: 64,
    resource.RLIMIT_STACK: 8 * 1024 * 1024,
    resource.RLIMIT_NICE: 0,
    resource.RLIMIT_RTPRIO: 0,
}
MAX_THREADS = 128
_SPARE_THREADS = 4096


def thread_limit(uid: int, *, own_user: bool) -> int:
    """Return the RLIMIT_NPROC for a guest with this uid. The kernel counts all threads of a uid in a user namespace.

    A guest without its own user namespace can exceed MAX_THREADS until the host notices and ends it, but it can't use
    up all process ids of the machine.
    """
    return MAX_THREADS if own_user else _count_threads(uid) + _SPARE_THREADS


def _count_threads(uid: int) -> int:
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            threads = os.stat(f"/proc/{name}/task")
            found += threads.st_nlink - 2 if threads.st_uid == uid else 0
    return found


def resource_limits(threads: int) -> list[tuple[int, int]]:
    """Return the resource limits of a guest, none above the hard limit of this process."""
    hard = {name: resource.getrlimit(name)[1] for name in (*_RESOURCE_LIMITS, resource.RLIMIT_NPROC)}
    wanted = {**_RESOURCE_LIMITS, resource.RLIMIT_NPROC: threads}
    return [
        (name, value if hard[name] == resource.RLIM_INFINITY else min(value, hard[name])) for name, value in wanted.items()
    ]


def set_limits(proc: int, limits: list[tuple[int, int]]) -> None:
    """Apply resource limits to this process. The host sets memory and CPU time later, once the engine is idle."""
    write_proc(proc, "self/oom_score_adj", b"1000")  # when memory runs out, the kernel kills a guest before the host
    for name, value in limits:
        resource.setrlimit(name, (value, value))


def leave_root() -> None:
    """Become nobody if this process is root on the host and may change its uid; otherwise do nothing."""
    if os.geteuid() != 0:
        return
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except PermissionError:
        return  # root without CAP_SETUID; the probe of the layer `identity` reports it


def set_no_new_privileges() -> None:
    """Set no_new_privs: no exec can gain a privilege. Landlock and seccomp require it."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Clear every capability set and lock the securebits, so that no capability can come back."""
    refusal = prctl_while(_PR_CAPBSET_DROP, range(64))
    if refusal not in (0, EPERM, EINVAL):  # no CAP_SETPCAP, or past the last capability
        raise OSError(refusal, f"capability bounding set: {os.strerror(refusal)}")
    with contextlib.suppress(PermissionError):  # no CAP_SETPCAP; no_new_privs prevents regaining any
        prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. A later change of credentials would undo it."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def close_descriptors_on_exec() -> None:
    """Mark every descriptor above 2 close-on-exec."""
    call("close_range", 3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def close_descriptors_from(first: int) -> None:
    """Close this descriptor and all above it now: a forked guest makes no exec that would close them."""
    call("close_range", first, 0xFFFFFFFF, 0)
