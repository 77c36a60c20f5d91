"""The process that guests of a forked engine are copies of. It lives in their root and runs under their interpreter.

    fork server ── pages ───► zygote                       (once, see `pages`)
    fork server ── "fork" ──► zygote ── clone ──► guest    (a child of the fork server, not of the zygote)
    fork server ◄── pid ────────┘                   │
    fork server ── (stdin, stderr, sync, network) ─►│
    fork server ◄── "ready", when it is jailed ─────┘

Between two clones the zygote reads one byte and writes one number, and its memory is then what it was before: the first
guest and the thousandth find the same objects at the same addresses. It never gets anything that belongs to a run.

It has one thread, which goes on in the guest as it is: so Python is not told of the fork, and resets nothing.
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
from gloveport.sandbox.jail.confinement import Confinement, exec_watch

# The descriptors that a zygote is exec'd with.
WAKE_FD, ORDERS_FD, PROC_FD, RULESET_FD = 3, 4, 5, 6
FIRST_FREE_FD = 3

READY, FORK, PREFAULT = b"r", b"f", b"p"
GUEST, TRIAL = b"guest", b"scout"  # a scout walks the way of a run for nobody, and waits to be looked at
_STATE_BYTES = 64 * 1024
_PACKAGE = "gloveport_guest"


def main(folder: str) -> None:
    """Load the guest's package from `folder`, then fork guests until the fork server goes away."""
    privileges.die_with_parent()
    state = json.loads(os.read(WAKE_FD, _STATE_BYTES))
    jail = Confinement(
        holds=frozenset(state["holds"]),
        proc=PROC_FD,
        engine=-1,
        argv=(),
        env={},
        files=(),
        watch=exec_watch(),
        calls=seccomp.SeccompProgram(seccomp.BpfFilter(bytes.fromhex(state["filter"]), tuple(state["pid_offsets"]))),
        threads=state["threads"],
        ruleset=RULESET_FD,
    )
    clone = namespaces.make_sibling_cloner(namespaces.CLONE_FLAGS if "namespaces" in jail.holds else 0)
    table = mmap.mmap(-1, prefault.TABLE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    prefault_pages = prefault.make_prefaulter(table)
    package = _load(folder)
    _tidy()
    os.write(WAKE_FD, READY)
    if not _fork_guests(clone, table):
        os._exit(0)
    prefault_pages()
    if _enter(jail) == TRIAL:
        _run_trial(package)
    _run(package.main)


def _load(folder: str) -> ModuleType:
    sys.path.insert(0, folder)
    package = importlib.import_module(_PACKAGE)
    package.preload()
    return package


def _tidy() -> None:
    """Leave guests nothing of ours to find, and memory that they share for as long as they can."""
    own = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == own]:
        del sys.modules[name]
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    sys.path.remove(ours)
    for place in [place for place in sys.path_importer_cache if place == ours or place.startswith(f"{ours}/")]:
        del sys.path_importer_cache[place]
    for finder in sys.path_importer_cache.values():
        # Nothing changes here, and in a jail of `kernel` strength the library's folder can't be listed again.
        if finder is not None:
            vars(finder)["invalidate_caches"] = object
    script = vars(sys.modules["__main__"])
    for name in [name for name in script if not name.startswith("__")]:
        del script[name]
    sys.argv[:] = [""]
    gc.collect()
    gc.freeze()  # no collection touches, and so copies, what every guest shares


def _fork_guests(clone: Callable[[], int], table: mmap.mmap) -> bool:
    """True in each guest; false in the zygote, at its end."""
    while not _has_ended(table):
        if _fork_one(clone):
            return True
    return False


# Two functions, whose ends free what they made before it is made again: two that take turns in memory would make the even
# guests differ from the odd.


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


def _enter(jail: Confinement) -> bytes:
    """The guest's way into the jail, and what it is to be there; it tells the fork server what failed, and ends."""
    layer = "start"
    with socket.socket(fileno=ORDERS_FD) as orders:
        order, fds = channel.receive_bytes(orders)
    if not fds:  # a rehearsal
        os._exit(0)
    stdio, stderr, sync, *network = fds  # no network, where there are no namespaces
    try:
        for target, source in ((0, stdio), (1, stdio), (2, stderr)):
            os.dup2(source, target)
        for layer, step in jail.steps(*network or (-1,)):  # noqa: B007  the name outlives the loop when a step fails
            step()
        layer = "descriptors"
        os.dup2(sync, FIRST_FREE_FD)
        privileges.close_descriptors_from(FIRST_FREE_FD + 1)
        sync = FIRST_FREE_FD
        layer = "seccomp"
        if layer in jail.holds:
            jail.restrict_calls()
        os.write(sync, b"ready")
        # Death with the parent is armed by now: if the parent is still there to answer, it can't be missed.
        if not os.read(sync, 1):
            os._exit(1)
        os.close(sync)
        return order
    except BaseException as error:  # noqa: BLE001  the outer edge of the child: whatever it was, the parent hears of it
        os.write(sync, f"{layer}: {error}".encode()[:1000])
        os._exit(127)


def _run_trial(package: ModuleType) -> None:
    back = os.dup(0)
    if hasattr(package, "rehearse"):
        package.rehearse()
    os.write(back, READY)
    os.read(back, 1)
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
