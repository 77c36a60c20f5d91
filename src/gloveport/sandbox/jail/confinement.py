"""Put a new process into the jail, layer by layer, between its fork and the engine's first instruction.

    Confinement.clone()   fork a child, in new namespaces where they work
    Confinement.steps()   what the child then does to itself, in order; the child ends if one step fails

A child of the fork server then installs the exec watch and the seccomp filter, and execs `Confinement.engine`. A child
of the zygote installs a filter that forbids exec, and runs on as it is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EPERM
from typing import NamedTuple

from gloveport.sandbox.jail import channel, landlock, limits, namespaces, privileges, seccomp
from gloveport.sandbox.jail.syscalls import MACHINE
from gloveport.sandbox.jail.workspace import WorkspaceQuota, mount_workspace

Step = tuple[str, Callable[[], object]]
WORKSPACE_MADE = b"workspace"
TOO_LATE = "the guest did not start in time"


class StartedGuest(NamedTuple):
    """A guest in its jail, with descriptors of its process and, if it has one, of its workspace."""

    pid: int
    pidfd: int
    workspace: int | None = None


class SpawnError(Exception):
    """A guest could not be jailed. Nothing of it is left."""


def failure_text(message: bytes) -> str:
    """Return the error text for a guest's last message before it died; empty when it sent none."""
    return f"the guest could not be jailed: {message.decode(errors='replace')}" if message else ""


# The layers that a kernel or a container may lack. All other steps must succeed, or the guest does not start.
OPTIONAL_LAYERS = frozenset({"namespaces", "landlock", "single exec", "seccomp"})


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement of every guest of a fork server. `holds` names the layers that the probes found to work."""

    holds: frozenset[str]
    proc: int  # descriptor of the host's /proc; no guest inherits it
    engine: int  # descriptor of the program to exec
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[tuple[int, int], ...]  # Landlock rules (descriptor, access), used when `ruleset` is None
    watch: seccomp.SeccompProgram
    calls: seccomp.SeccompProgram
    threads: int  # RLIMIT_NPROC
    ruleset: int | None = None  # one Landlock ruleset for all guests, where none needs its own
    workspace: WorkspaceQuota | None = None

    def clone(self) -> tuple[int, int]:
        """Fork a child; return what `namespaces.clone` returns."""
        return namespaces.clone(namespaces.CLONE_FLAGS if "namespaces" in self.holds else 0)

    def steps(self, network: int, sync: int | None = None) -> list[Step]:
        """Return what a new child does to itself, outermost layer first; the exec watch and the filter come after these.

        A workspace is passed on over the socket `sync`.
        """
        wanted = limits.resource_limits(self.threads, 0 if self.workspace is None else self.workspace.max_bytes)
        own_rulesets: list[int] = []
        steps: list[Step] = [
            ("session", os.setsid),
            ("workspace", lambda: own_rulesets.extend(self._make_workspace(sync))),
            *(("namespaces", step) for step in namespaces.guest_namespace_steps(self.proc, network)),
            ("limits", limits.prepare_limits(self.proc, wanted)),
            ("identity", privileges.leave_root),
            ("privileges", privileges.prepare_no_new_privileges()),
            ("landlock", self._prepare_ruleset(own_rulesets)),
            ("privileges", privileges.prepare_to_drop_capabilities()),
            ("privileges", privileges.prepare_to_die_with_parent()),
        ]
        return [(layer, step) for layer, step in steps if layer not in OPTIONAL_LAYERS or layer in self.holds]

    def _make_workspace(self, sync: int | None) -> list[int]:
        """Mount the workspace; return the Landlock ruleset that includes it, if Landlock works here."""
        if self.workspace is None:
            return []
        if "namespaces" not in self.holds:  # it would be mounted on the host
            raise OSError(EPERM, "a workspace needs namespaces")
        made = mount_workspace(self.workspace)
        if sync is not None:
            with socket.socket(fileno=os.dup(sync)) as parent:
                socket.send_fds(parent, [WORKSPACE_MADE], [made])
        rulesets = [landlock.make_ruleset([*self.files, (made, landlock.CHANGE)])] if "landlock" in self.holds else []
        for fd in (made, *(fd for fd, _ in self.files)):  # more than a guest may have
            os.close(fd)
        return rulesets

    def take_workspace(self, sync: socket.socket) -> int | None:
        """Return the workspace that a new child has passed on; None if its guests have none."""
        if self.workspace is None:
            return None
        word, fds = channel.receive_bytes(sync)
        if word != WORKSPACE_MADE or len(fds) != 1:
            raise SpawnError(failure_text(word) or "the guest died before it had a workspace")
        return fds[0]

    def _prepare_ruleset(self, own: list[int]) -> Callable[[], object]:
        """Return a function that applies the ruleset: the guest's own if it will have one, or the one of all guests."""
        if self.ruleset is not None:
            return landlock.prepare_to_restrict(self.ruleset)

        def restrict() -> None:
            landlock.prepare_to_restrict(own[0] if own else self._own_ruleset())()

        return restrict

    def _own_ruleset(self) -> int:
        # From the host's /proc: the C library reads it to find the extent of the main thread's stack.
        own_map = os.open(f"{os.getpid()}/maps", os.O_PATH | os.O_CLOEXEC, dir_fd=self.proc)
        return landlock.make_ruleset([*self.files, (own_map, landlock.READ)])

    def restrict_calls(self) -> None:
        """Apply the allow-list of system calls to this process."""
        self.calls.prepare()()


def make_exec_watch() -> seccomp.SeccompProgram:
    """Return the seccomp program that has the fork server answer every exec of a guest."""
    return seccomp.SeccompProgram(seccomp.compile_filter(seccomp.EXEC_WATCH, machine=MACHINE, default=seccomp.ALLOW))


def make_guest_filter(
    *, may_exec: bool, may_join: bool = False, has_workspace: bool = False, is_go: bool = False
) -> seccomp.SeccompProgram:
    """Return the allow-list of system calls for a guest on this machine."""
    rules = seccomp.guest_rules(may_exec=may_exec, may_join=may_join, has_workspace=has_workspace, is_go=is_go)
    return seccomp.SeccompProgram(seccomp.compile_filter(rules, machine=MACHINE, default=seccomp.errno_action(EPERM)))
