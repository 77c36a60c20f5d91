"""The zygote: the process whose forks become the guests of a forked engine. It runs in the guests' root.

    fork server ── pages ───────────────────────────► zygote        (once; see `prefault`)
    fork server ── role, (stdin, stderr, sync, network) ─► zygote ── clone ──► guest   (a child of the fork server)
    fork server ◄── pid ──────────────────────────────────┘                     │
    fork server ◄── "jailed" ───────────────────────────────────────────────────┘

The zygote can fork the next guest while this one confines itself. Between two forks it reads one message, closes the
descriptors that came with it, and writes one number, and its memory is then as it was before. So the first guest and the
thousandth find the same objects at the same addresses. The zygote never receives data of a run.

It has one thread, which continues in the guest. Python's fork hooks do not run, so nothing is reset.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EBADF
from types import ModuleType

from gloveport.sandbox.jail import heap, namespaces, prefault, privileges, seccomp
from gloveport.sandbox.jail.confinement import Confinement, make_exec_watch
from gloveport.sandbox.jail.syscalls import prepare
from gloveport.sandbox.jail.workspace import WorkspaceQuota

# The descriptors that the zygote inherits at its exec.
WAKE_FD, PROC_FD, RULESET_FD = 3, 4, 5  # or, from the last one on, the files of the rules
FIRST_FREE_FD = 3

READY, JAILED = b"r", b"jailed"
# A trial guest does what a run does, then waits while its pages are recorded. A hasty one prefaults no pages.
GUEST, HASTY, TRIAL, WARM_UP = b"guest", b"hasty", b"trial", b"warm-up"
PREFAULT = b"prefault"  # is no role: the table of pages follows
_GUESTS = (GUEST, HASTY, TRIAL)
_ROLES = {role: role for role in (*_GUESTS, WARM_UP, PREFAULT, b"")}
_MAX_ROLE_BYTES = 16
_STATE_BYTES = 64 * 1024
_PACKAGE = "gloveport_guest"
_exit = os._exit  # a guest package may replace it


def main(folder: str, heap_bytes: str) -> None:
    """Load the guest package from `folder`, then fork guests until the fork server ends.

    `heap_bytes` is less than what the objects of the package take, or `unpacked` where few guests come.
    """
    privileges.die_with_parent()
    gc.disable()  # while the package is loaded
    state = json.loads(os.read(WAKE_FD, _STATE_BYTES))
    confinement = Confinement(
        holds=frozenset(state["holds"]),
        proc=PROC_FD,
        engine=-1,
        argv=(),
        env={},
        files=tuple((fd, access) for fd, access in enumerate(state["rules"], RULESET_FD)),
        watch=make_exec_watch(),
        calls=seccomp.SeccompProgram(seccomp.BpfFilter(bytes.fromhex(state["filter"]), tuple(state["pid_offsets"]))),
        threads=state["threads"],
        ruleset=None if state["workspace"] else RULESET_FD,
        workspace=WorkspaceQuota(*state["workspace"]) if state["workspace"] else None,
    )
    clone = namespaces.make_sibling_cloner(namespaces.CLONE_FLAGS if "namespaces" in confinement.holds else 0)
    table = mmap.mmap(-1, prefault.TABLE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    fds = _free_descriptors(4 if "namespaces" in confinement.holds else 3)
    receive, close = _make_receiver(fds), prepare("close_range", fds[0], fds[-1], 0)
    enter = _prepare_entry(confinement, fds, prefault.make_prefaulter(table))
    _forget_own_modules()
    packed = heap_bytes != "unpacked"
    if packed:
        heap.reserve(int(heap_bytes))
    package = _load(folder)
    _tidy()
    if packed:
        heap.fill_holes()
        heap.use_large_pages(PROC_FD)
    gc.freeze()  # no collection writes to, and so copies, the pages that all guests share
    os.write(WAKE_FD, READY)
    role = _fork_guests(receive, clone, close, table)
    if not role:
        _exit(0)
    enter(role)
    if role == TRIAL:
        _run_trial(package)
    _run(package.main)


def _load(folder: str) -> ModuleType:
    sys.path.insert(0, folder)
    package = importlib.import_module(_PACKAGE)
    package.preload()
    return package


def _forget_own_modules() -> None:
    """Remove our modules and paths from what guests can see. A guest package may have modules of the same name."""
    own = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == own]:
        del sys.modules[name]
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    sys.path.remove(ours)
    sys.argv[:] = [""]
    for place in [place for place in sys.path_importer_cache if place == ours or place.startswith(f"{ours}/")]:
        del sys.path_importer_cache[place]


def _tidy() -> None:
    """Remove what is left of our start."""
    for finder in sys.path_importer_cache.values():
        # The folders never change, and at `kernel` strength the library's folder can't be listed a second time.
        if finder is not None:
            vars(finder)["invalidate_caches"] = object
    script = vars(sys.modules["__main__"])
    for name in [name for name in script if not name.startswith("__")]:
        del script[name]
    gc.enable()
    gc.collect()


def _free_descriptors(count: int) -> tuple[int, ...]:
    """Return the numbers that the next descriptors of this process will get."""
    opened = tuple(os.dup(WAKE_FD) for _ in range(count))
    for fd in opened:
        os.close(fd)
    return opened


def _make_receiver(fds: tuple[int, ...]) -> Callable[[], bytes]:
    """Return a function that receives the role of the next guest, and its descriptors at these numbers.

    The role is empty when the fork server has ended. It is always one of a few objects: one that was received lives until
    the next is there, so two would alternate.
    """
    receive, flags = socket.socket(fileno=WAKE_FD).recvmsg, int(socket.MSG_CMSG_CLOEXEC)
    space, unpack = socket.CMSG_SPACE(len(fds) * 4), struct.Struct(f"={len(fds)}i").unpack

    def next_role() -> bytes:
        role, received, _, _ = receive(_MAX_ROLE_BYTES, space, flags)
        known = _ROLES[role]
        if (unpack(received[0][2]) if received else ()) != (fds if known in _GUESTS else ()):
            raise OSError(EBADF, "the descriptors of a guest are not those that were expected")
        return known

    return next_role


def _fork_guests(
    receive: Callable[[], bytes], clone: Callable[[], int], close: Callable[[], int], table: mmap.mmap
) -> bytes:
    """Return its role in each guest, and nothing in the zygote when the fork server has ended."""
    while role := receive():
        if role == PREFAULT:
            os.readv(WAKE_FD, [table])
        elif _fork_one(clone):
            if role == WARM_UP:
                _exit(0)
            return role
        elif role != WARM_UP:
            close()
    return role


# A separate function, so that it frees its objects before the next call creates them again. Otherwise two objects would
# alternate between two addresses, and every second guest would differ.


def _fork_one(clone: Callable[[], int]) -> bool:
    pid = clone()
    if pid == 0:
        return True
    os.write(WAKE_FD, pid.to_bytes(4, "little", signed=True))
    return False


def _prepare_entry(
    confinement: Confinement, fds: tuple[int, ...], prefault_pages: Callable[[int], None]
) -> Callable[[bytes], None]:
    """Return the function that confines a guest, which has its descriptors at these numbers.

    All that can be computed before the fork is: a guest pays with a copied page for each object that it touches.
    """
    stdio, stderr, sync, *network = fds
    steps = confinement.steps(*network or (-1,), sync=sync)
    filter_calls = confinement.calls.prepare() if "seccomp" in confinement.holds else None
    close_others = privileges.prepare_to_close_from(FIRST_FREE_FD + 1)
    dup2, write, close = os.dup2, os.write, os.close

    def enter(role: bytes) -> None:
        layer, report = "start", sync
        try:
            prefault_pages(prefault.ALL if role == GUEST else prefault.NONE)
            for target, source in ((0, stdio), (1, stdio), (2, stderr)):
                dup2(source, target)
            for layer, step in steps:  # noqa: B007  `layer` is used after the loop
                step()
            layer = "descriptors"
            dup2(sync, FIRST_FREE_FD)
            report = FIRST_FREE_FD
            close_others()
            layer = "seccomp"
            if filter_calls is not None:
                filter_calls()
            # PDEATHSIG is set by now. This fails if the parent died before that: nobody else holds the other end.
            write(report, JAILED)
            close(report)
        except BaseException as error:  # noqa: BLE001  the outer edge of the child: report any failure to the parent
            with suppress(OSError):
                write(report, f"{layer}: {error}".encode()[:1000])
            _exit(127)

    return enter


def _run_trial(package: ModuleType) -> None:
    reply = os.dup(0)  # rehearse() takes over descriptor 0
    if hasattr(package, "rehearse"):
        package.rehearse()
    os.write(reply, READY)
    os.read(reply, 1)
    _exit(0)


def _run(program: Callable[[], None]) -> None:
    code = 1
    try:
        program()
        code = 0
    except BaseException as error:  # noqa: BLE001  the outer edge of the guest
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        _exit(code)
