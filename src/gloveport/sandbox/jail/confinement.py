"""The jail: what a guest is put through between fork and exec, layer by layer.

    Confinement.clone()   a child, in fresh namespaces where they hold
    Confinement.steps()   what the child then does to itself, in order; the child ends if one of them fails

An engine that is exec'd then gets the watch on exec and the filter, and execs `Confinement.engine`. An engine that is
forked ready to run gets a filter without exec, and goes on as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EPERM

from gloveport.sandbox.jail import landlock, namespaces, privileges, seccomp
from gloveport.sandbox.jail.syscalls import MACHINE

Step = tuple[str, Callable[[], None]]


class SpawnError(Exception):
    """A guest could not be put into its jail; nothing of it is left."""


def failure_text(word: bytes) -> str:
    """What a guest's last word says to who waits for it; nothing when it had none."""
    return f"the guest could not be jailed: {word.decode(errors='replace')}" if word else ""


# The layers that a kernel or a container may not give. All else works everywhere, or the guest doesn't start.
OPTIONAL = frozenset({"namespaces", "landlock", "single exec", "seccomp"})


@dataclass(frozen=True, slots=True)
class Confinement:
    """What every guest of a fork server is put into. `holds` names the layers that were tried and found to hold."""

    holds: frozenset[str]
    proc: int  # a descriptor of the host's /proc, which no guest inherits
    engine: int  # a descriptor of the program to exec
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[tuple[int, int], ...]  # for Landlock: descriptors of files, and the access to each, without a `ruleset`
    watch: seccomp.SeccompProgram
    calls: seccomp.SeccompProgram
    threads: int  # RLIMIT_NPROC
    ruleset: int | None = None  # the same for all guests, where they need nothing of the host's /proc

    def clone(self) -> tuple[int, int]:
        """A new child, as `namespaces.clone` gives it."""
        return namespaces.clone(namespaces.CLONE_FLAGS if "namespaces" in self.holds else 0)

    def steps(self, network: int) -> list[Step]:
        """What a fresh child does to itself, outermost layer first, all but the watch on exec and the filter."""
        limits = privileges.resource_limits(self.threads)
        steps: list[Step] = [
            ("session", os.setsid),
            ("namespaces", lambda: namespaces.enter_guest_namespaces(self.proc, network)),
            ("limits", lambda: privileges.set_limits(self.proc, limits)),
            ("identity", privileges.leave_root),
            ("privileges", privileges.set_no_new_privileges),
            ("landlock", self._restrict_files),
            ("privileges", privileges.drop_capabilities),
            ("privileges", privileges.die_with_parent),
        ]
        return [(layer, step) for layer, step in steps if layer not in OPTIONAL or layer in self.holds]

    def _restrict_files(self) -> None:
        if self.ruleset is not None:
            landlock.restrict(self.ruleset)
            return
        # On the host's own /proc: what the C library reads to tell how far the stack of the main thread reaches.
        own_map = os.open(f"{os.getpid()}/maps", os.O_PATH | os.O_CLOEXEC, dir_fd=self.proc)
        landlock.restrict(landlock.ruleset([*self.files, (own_map, landlock.READ)]))

    def restrict_calls(self) -> None:
        """Put the allow-list of system calls in force in this process."""
        self.calls.install()


def exec_watch() -> seccomp.SeccompProgram:
    """What has every exec of a guest answered by the fork server."""
    return seccomp.SeccompProgram(seccomp.compile_filter(seccomp.EXEC_WATCH, machine=MACHINE, default=seccomp.ALLOW))


def guest_calls(*, may_exec: bool) -> seccomp.SeccompProgram:
    """The allow-list of system calls for a guest on this machine."""
    rules = seccomp.guest_rules(may_exec=may_exec)
    return seccomp.SeccompProgram(seccomp.compile_filter(rules, machine=MACHINE, default=seccomp.errno_action(EPERM)))
