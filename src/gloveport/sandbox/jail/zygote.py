"""The zygote: the process whose forks become the guests of a forked engine. It runs in the guests' root.

    fork server ── pages ───► zygote                       (once; see `prefault`)
    fork server ── "fork" ──► zygote ── clone ──► guest    (a child of the fork server, not of the zygote)
    fork server ◄── pid ────────┘                   │
    fork server ── (stdin, stderr, sync, network) ─►│
    fork server ◄── "ready", once it is jailed ─────┘

Between two forks the zygote reads one byte and writes one number, and its memory is then as it was before. So the first
guest and the thousandth find the same objects at the same addresses. The zygote never receives data of a run.

It has one thread, which continues in the guest. Python's fork hooks do not run, so nothing is reset.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType

from gloveport.sandbox.jail import channel, namespaces, prefault, privileges, seccomp
from gloveport.sandbox.jail.confinement import Confinement, make_exec_watch
from gloveport.sandbox.jail.workspace import WorkspaceQuota

# The descriptors that the zygote inherits at its exec.
WAKE_FD, REQUESTS_FD, PROC_FD, RULESET_FD = 3, 4, 5, 6  # or, from the last one on, the files of the rules
FIRST_FREE_FD = 3

READY, FORK, PREFAULT = b"r", b"f", b"p"
GUEST, TRIAL = b"guest", b"trial"  # a trial guest does what a run does, then waits while its pages are recorded
_STATE_BYTES = 64 * 1024
_PACKAGE = "gloveport_guest"


def main(folder: str) -> None:
    """Load the guest package from `folder`, then fork guests until the fork server ends."""
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
    prefault_pages = prefault.make_prefaulter(table)
    _forget_own_modules()
    package = _load(folder)
    _tidy()
    os.write(WAKE_FD, READY)
    if not _fork_guests(clone, table):
        os._exit(0)
    prefault_pages()
    if _enter(confinement) == TRIAL:
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
    for place in [place for place in sys.path_importer_cache if place == ours or place.startswith(f"{ours}/")]:
        del sys.path_importer_cache[place]


def _tidy() -> None:
    """Remove what is left of our start, and freeze the heap so that its pages stay shared."""
    for finder in sys.path_importer_cache.values():
        # The folders never change, and at `kernel` strength the library's folder can't be listed a second time.
        if finder is not None:
            vars(finder)["invalidate_caches"] = object
    script = vars(sys.modules["__main__"])
    for name in [name for name in script if not name.startswith("__")]:
        del script[name]
    sys.argv[:] = [""]
    gc.enable()
    gc.collect()
    gc.freeze()  # no collection writes to, and so copies, the pages that all guests share


def _fork_guests(clone: Callable[[], int], table: mmap.mmap) -> bool:
    """Return true in each guest, and false in the zygote when the fork server has ended."""
    while not _has_ended(table):
        if _fork_one(clone):
            return True
    return False


# Separate functions, so that each frees its objects before the next call creates them again. Otherwise two objects would
# alternate between two addresses, and every second guest would differ.


def _has_ended(table: mmap.mmap) -> bool:
    word = os.read(WAKE_FD, 1)
    while word == PREFAULT:
        os.readv(WAKE_FD, [table])
        word = os.read(WAKE_FD, 1)
    return not word


def _fork_one(clone: Callable[[], int]) -> bool:
    pid = clone()
    if pid == 0:
        return True
    os.write(WAKE_FD, pid.to_bytes(4, "little", signed=True))
    return False


def _enter(confinement: Confinement) -> bytes:
    """Confine this guest and return its role, GUEST or TRIAL. On a failure, report it to the fork server and exit."""
    layer = "start"
    with socket.socket(fileno=REQUESTS_FD) as requests:
        role, fds = channel.receive_bytes(requests)
    if not fds:  # a warm-up fork
        os._exit(0)
    stdio, stderr, sync, *network = fds  # without namespaces there is no network
    try:
        for target, source in ((0, stdio), (1, stdio), (2, stderr)):
            os.dup2(source, target)
        for layer, step in confinement.steps(*network or (-1,), sync=sync):  # noqa: B007  `layer` is used after the loop
            step()
        layer = "descriptors"
        os.dup2(sync, FIRST_FREE_FD)
        privileges.close_descriptors_from(FIRST_FREE_FD + 1)
        sync = FIRST_FREE_FD
        layer = "seccomp"
        if layer in confinement.holds:
            confinement.restrict_calls()
        os.write(sync, b"ready")
        # PDEATHSIG is set by now. The parent's answer proves that it did not die before that.
        if not os.read(sync, 1):
            os._exit(1)
        os.close(sync)
        return role
    except BaseException as error:  # noqa: BLE001  the outer edge of the child: report any failure to the parent
        os.write(sync, f"{layer}: {error}".encode()[:1000])
        os._exit(127)


def _run_trial(package: ModuleType) -> None:
    reply = os.dup(0)  # rehearse() takes over descriptor 0
    if hasattr(package, "rehearse"):
        package.rehearse()
    os.write(reply, READY)
    os.read(reply, 1)
    os._exit(0)


def _run(program: Callable[[], None]) -> None:
    code = 1
    try:
        program()
        code = 0
    except BaseException as error:  # noqa: BLE001  the outer edge of the guest
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)
