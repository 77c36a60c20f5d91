"""What a run can leave behind in or around this process, and what a pool holds that waits for the next one."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from gloveport import Gloveport
from gloveport.sandbox.watchdog import WATCHDOG, Watched
from tests.conftest import children_of, open_files

DEADLINE = 300.0
PLACES = (Path("/tmp"), Path("/dev/shm"))


@dataclass(frozen=True)
class Leftovers:
    """Processes, descriptors, temporary files, tasks and threads, at one moment."""

    children: frozenset[int]
    files: frozenset[str]
    temporary: frozenset[str]
    tasks: int
    threads: int

    @classmethod
    def now(cls) -> Leftovers:
        """What there is now, with the watchdog's thread and timer, which stay until this process ends."""
        pidfd = os.pidfd_open(os.getpid())
        WATCHDOG.watch(Watched(os.getpid(), pidfd)).stop()
        os.close(pidfd)
        gc.collect()
        temporary = {str(path) for place in PLACES for path in place.glob("gloveport-*") if _is_left(path)}
        return cls(
            frozenset(children_of(os.getpid())),
            frozenset(open_files()),
            frozenset(temporary),
            len(asyncio.all_tasks()),
            threading.active_count(),
        )


def _is_left(path: Path) -> bool:
    """False for what a fork server holds that lives, ours or another's: it has the lock; and for what tests lay out."""
    if "escape" in path.name:
        return False
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


async def assert_nothing_left(before: Leftovers) -> None:
    """All is as before. Of temporary files, others on this machine have some too, that come and go: ours would stay."""
    now = Leftovers.now()
    assert replace(now, temporary=before.temporary) == before
    async with asyncio.timeout(DEADLINE):
        while Leftovers.now().temporary - before.temporary:  # noqa: ASYNC110 - files have no event for it
            await asyncio.sleep(0.1)


async def settled(port: Gloveport) -> None:
    """Wait until the pools have started and buried all that they were about to."""
    async with asyncio.timeout(DEADLINE):
        while waiting := {task for pool in port._pools.open.values() for task in pool._starting | pool._retiring}:
            await asyncio.wait(waiting)
            await asyncio.sleep(0)


def strangers(port: Gloveport, before: Leftovers) -> set[int]:
    """Return the child processes that do not belong to an idle port: no fork server, zygote, spare guest or task process."""
    tasks = port._programs.tasks
    known: set[int] = {process.worker.guest.pid for idle in tasks._idle.values() for process in idle}
    for pool in [*port._pools.open.values(), *([tasks._pool] if tasks._pool else [])]:
        server = pool._launcher._server and pool._launcher._server.process
        assert server is not None
        known |= {server.pid} | {worker.guest.pid for worker in pool._ready}
        if pool._launch.zygote:
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            known |= {int(pid) for pid in children[:1]}
    return children_of(os.getpid()) - before.children - known
