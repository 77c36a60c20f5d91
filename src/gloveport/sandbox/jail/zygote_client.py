"""The fork server's side of the zygote: start it, have it fork guests, and replace it when it dies."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import time
from contextlib import suppress
from dataclasses import astuple, dataclass

from gloveport.sandbox.jail import channel, namespaces, prefault, privileges, zygote
from gloveport.sandbox.jail.confinement import TOO_LATE, WORKSPACE_MADE, Confinement, SpawnError, StartedGuest, failure_text
from gloveport.sandbox.jail.filesystem import GuestFilesystem
from gloveport.sandbox.jail.namespaces import NetworkPool, NoNetworkPool
from gloveport.sandbox.jail.syscalls import call

_START_SECONDS = 25.0
_SPAWN_SECONDS = 30.0
# The first forks change the zygote's memory in ways that later ones don't, so they exit at once.
_WARM_UP_FORKS = 2
_STACK_BYTES = 8 * 1024 * 1024
_ADDR_NO_RANDOMIZE = 0x0040000
_STDERR_FD = 2  # our stderr: a file in memory that the zygote shares


def fix_addresses() -> None:
    """Turn off address randomisation for the next exec of this process; OSError where a container forbids it."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack_bytes = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(_STACK_BYTES, hard)
    # Mappings begin below the space reserved for the stack, so its limit must be the same each time.
    resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, stack_bytes))
    call("personality", _ADDR_NO_RANDOMIZE)


@dataclass(frozen=True, slots=True)
class _Zygote:
    pid: int
    pidfd: int
    wake: socket.socket


@dataclass(slots=True)
class StartingGuest:
    """A guest that was forked and is confining itself. `go_on` reads what it reports on `sync`."""

    pid: int
    pidfd: int
    sync: socket.socket
    deadline: float
    has_workspace: bool
    workspace: int | None = None

    def go_on(self) -> StartedGuest | None:
        """Return the guest once it is jailed, None while it is not; SpawnError when it failed: it is gone then."""
        try:
            word, fds = channel.receive_bytes(self.sync)
        except ConnectionError:
            word, fds = b"", []
        except TimeoutError:
            self.give_up()
            raise SpawnError(TOO_LATE) from None
        if word == WORKSPACE_MADE and self.has_workspace and self.workspace is None and len(fds) == 1:
            self.workspace = fds[0]
            return None
        if word != zygote.JAILED or self.has_workspace != (self.workspace is not None):
            self.give_up()
            raise SpawnError(failure_text(word) or "the guest died before it was jailed")
        self.sync.close()
        return StartedGuest(self.pid, self.pidfd, self.workspace)

    def give_up(self) -> None:
        """Kill and reap the guest."""
        self.sync.close()
        if self.workspace is not None:
            os.close(self.workspace)
        _end(self.pid, self.pidfd)


class ZygoteClient:
    """Starts one zygote and forks guests from it. The zygote holds no data of a run, so it can be replaced at any time."""

    def __init__(
        self,
        confinement: Confinement,
        files: GuestFilesystem,
        networks: NetworkPool | NoNetworkPool,
        *,
        own_code: bool = False,
    ) -> None:
        self._confinement = confinement
        self._own_code = own_code
        self._files = files
        self._networks = networks
        self._zygote: _Zygote | None = None

    def open(self) -> None:
        """Start a zygote and wait until it can fork; SpawnError with its message when it can't start."""
        wake, their_wake = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with their_wake:
            pid, pidfd = namespaces.clone(0)
            if pid == 0:
                self._exec(their_wake.fileno())
        self._zygote = _Zygote(pid, pidfd, wake)
        wake.settimeout(_START_SECONDS)
        filter_, workspace = self._confinement.calls.filter, self._confinement.workspace
        state = {
            "holds": sorted(self._confinement.holds),
            "filter": filter_.code.hex(),
            "pid_offsets": filter_.pid_offsets,
            "threads": self._confinement.threads,
            "workspace": None if workspace is None else astuple(workspace),
            "rules": [access for _, access in self._confinement.files],
        }
        try:
            wake.send(json.dumps(state).encode())
            answer = wake.recv(1)
        except OSError:
            answer = b""
        wake.settimeout(_SPAWN_SECONDS)
        # A process that runs our own code serves many tasks, and need not be like the one before: it needs no preparation.
        warm_ups = 0 if self._own_code else _WARM_UP_FORKS
        if answer != zygote.READY or not all(self._warm_up_fork() for _ in range(warm_ups)):
            self.close()
            raise SpawnError(f"the zygote did not start: {_stderr_tail() or 'it ended without a message'}")
        if self._own_code:
            return
        try:
            table = self._record_pages(pid)
            wake.send(zygote.PREFAULT)
            wake.send(table)
        except OSError as error:
            self.close()
            raise SpawnError(f"the trial guest failed: {_stderr_tail() or error}") from None

    def _record_pages(self, parent: int) -> bytes:
        """Return the table of pages to prefault in new guests, recorded from a trial guest."""
        network = self._networks.take()
        try:
            return self._run_trial_guest(network, parent)
        finally:
            self._networks.give_back(network)

    def _run_trial_guest(self, network: int, parent: int) -> bytes:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                starting = self._fork(network, theirs.fileno(), _STDERR_FD, zygote.TRIAL)
            starting.sync.settimeout(_SPAWN_SECONDS)
            while (started := starting.go_on()) is None:
                pass
            if started.workspace is not None:
                os.close(started.workspace)
            try:
                ours.settimeout(_SPAWN_SECONDS)
                if ours.recv(1) != zygote.READY:
                    raise ConnectionResetError("it ended")
                return prefault.record_touched_pages(self._confinement.proc, started.pid, parent)
            finally:
                _end(started.pid, started.pidfd)

    def _warm_up_fork(self) -> bool:
        with suppress(ConnectionError):
            pid = self._ask(zygote.WARM_UP, [])
            return pid > 0 and os.waitpid(pid, 0)[1] == 0
        return False

    def close(self) -> None:
        """Kill the zygote. Its guests keep running."""
        gone, self._zygote = self._zygote, None
        if gone is None:
            return
        _end(gone.pid, gone.pidfd)
        gone.wake.close()

    def fork(self, network: int, *, stdio: int, stderr: int, hasty: bool = False) -> StartingGuest:
        """Fork a guest, which then confines itself and runs its package's main. A hasty one does without prefaulting."""
        role = zygote.HASTY if hasty else zygote.GUEST
        try:
            return self._fork(network, stdio, stderr, role)
        except ConnectionError:  # the zygote has died, and forked nothing
            self.close()
        try:
            return self._fork(network, stdio, stderr, role)
        except ConnectionError:
            self.close()
            raise SpawnError(f"the zygote could not fork: {_stderr_tail() or 'it ended'}") from None

    def _fork(self, network: int, stdio: int, stderr: int, role: bytes) -> StartingGuest:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                pid = self._ask(role, [stdio, stderr, theirs.fileno(), *([network] if network >= 0 else [])])
            if pid < 0:
                raise SpawnError(f"the zygote could not fork: {os.strerror(-pid)}")
            has_workspace = self._confinement.workspace is not None
            return StartingGuest(pid, os.pidfd_open(pid), ours, time.monotonic() + _SPAWN_SECONDS, has_workspace)
        except SpawnError:
            ours.close()
            self.close()
            raise
        except BaseException:
            ours.close()
            raise

    def _ask(self, role: bytes, fds: list[int]) -> int:
        if self._zygote is None:
            self.open()
        assert self._zygote is not None
        socket.send_fds(self._zygote.wake, [role], fds)
        try:
            answer = self._zygote.wake.recv(4)
        except TimeoutError:
            raise SpawnError("the zygote does not answer") from None
        if not answer:
            raise ConnectionResetError("the zygote has ended")
        return int.from_bytes(answer, "little", signed=True)

    def _exec(self, wake: int) -> None:
        """Run the child up to the zygote's exec. Never returns."""
        try:
            privileges.die_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with suppress(OSError):  # the probe of the layer `fixed addresses` reports it
                fix_addresses()
            ruleset = self._confinement.ruleset
            if ruleset is None:  # without Landlock, only our own code is run here, and nothing uses this descriptor
                ruleset = self._confinement.proc
            rules = [fd for fd, _ in self._confinement.files] if self._confinement.workspace is not None else [ruleset]
            wanted = (wake, self._confinement.proc, *rules)
            apart = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, zygote.RULESET_FD + len(rules)) for fd in wanted]
            for target, source in enumerate(apart, zygote.WAKE_FD):
                os.dup2(source, target)
            os.execve(self._files.program, (self._files.program, *self._files.argv[1:]), dict(self._files.env))
        except BaseException as error:  # noqa: BLE001  the outer edge of the child
            os.write(_STDERR_FD, str(error).encode())
        finally:
            os._exit(127)


def _end(pid: int, pidfd: int) -> None:
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(pidfd)


def _stderr_tail() -> str:
    size = os.fstat(_STDERR_FD).st_size
    return os.pread(_STDERR_FD, 2000, max(0, size - 2000)).decode(errors="replace").strip()
