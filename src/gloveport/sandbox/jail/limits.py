"""The resource limits of a guest process: open files, threads, stack, file size, core dumps.

The host sets the limits of a run (memory, CPU time) later: see `worker.py` and `run_attempt.py`.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable

from gloveport.sandbox.jail.syscalls import prepare_write

_RESOURCE_LIMITS = {
    resource.RLIMIT_CORE: 1,  # not 0: only 1 keeps the kernel from starting the host program in core_pattern
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    # All processes of a user share one count: where guests have no user of their own, a limit would show it (S24).
    resource.RLIMIT_SIGPENDING: 0,
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


def resource_limits(threads: int, max_file_bytes: int = 0) -> list[tuple[int, int]]:
    """Return the resource limits of a guest, none above the hard limit of this process."""
    hard = {name: resource.getrlimit(name)[1] for name in (*_RESOURCE_LIMITS, resource.RLIMIT_NPROC)}
    wanted = {**_RESOURCE_LIMITS, resource.RLIMIT_NPROC: threads, resource.RLIMIT_FSIZE: max_file_bytes}
    return [
        (name, value if hard[name] == resource.RLIM_INFINITY else min(value, hard[name])) for name, value in wanted.items()
    ]


def prepare_limits(proc: int, limits: list[tuple[int, int]]) -> Callable[[], None]:
    """Return a function that applies resource limits to its process.

    The host sets memory and CPU time later, once the engine is idle.
    """
    go_first = prepare_write(proc, "self/oom_score_adj", b"1000")  # the kernel then kills a guest before the host
    set_limit, pairs = resource.setrlimit, [(name, (value, value)) for name, value in limits]

    def apply() -> None:
        go_first()
        for name, pair in pairs:
            set_limit(name, pair)

    return apply
