"""The fork server's side of a zygote: starts it, has it fork guests, and starts another when it was lost."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass

from gloveport.sandbox.jail import namespaces, prefault, privileges, zygote
from gloveport.sandbox.jail.confinement import Confinement, SpawnError, failure_text
from gloveport.sandbox.jail.filesystem import GuestFilesystem
from gloveport.sandbox.jail.namespaces import NetworkPool, NoNetworkPool
from gloveport.sandbox.jail.syscalls import call

START_SECONDS = 25.0
_SPAWN_SECONDS = 10.0
# The first fork leaves traces in the zygote's memory that later ones don't: it is made for nobody.
_WARM_UP_FORKS = 2
_STACK_BYTES = 8 * 1024 * 1024
_ADDR_NO_RANDOMIZE = 0x0040000
_STDERR_FD = 2  # our stderr, a file in memory that the zygote writes to as well


def fix_addresses() -> None:
    """Have what this process execs find the same addresses each time; OSError where a container forbids it."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(_STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (most, most))  # mappings begin below the room that the stack may take
    call("personality", _ADDR_NO_RANDOMIZE)


@dataclass(frozen=True, slots=True)
class _Zygote:
    pid: int
    pidfd: int
    wake: socket.socket
    orders: socket.socket


class ZygoteClient:
    """A zygote that forks guests. Nothing of a run has reached it when it fails: it can be replaced at any time."""

    def __init__(self, jail: Confinement, place: GuestFilesystem, networks: NetworkPool | NoNetworkPool) -> None:
        self._jail = jail
        self._place = place
        self._networks = networks
        self._zygote: _Zygote | None = None

    def open(self) -> None:
        """Start a zygote and wait until it can fork; SpawnError with its own words when it can't be started."""
        wake, their_wake = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        orders, their_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with their_wake, their_orders:
            pid, pidfd = namespaces.clone(0)
            if pid == 0:
                self._exec(their_wake.fileno(), their_orders.fileno())
        self._zygote = _Zygote(pid, pidfd, wake, orders)
        wake.settimeout(START_SECONDS)
        filter_ = self._jail.calls.filter
        state = {
            "holds": sorted(self._jail.holds),
            "filter": filter_.code.hex(),
            "pid_offsets": filter_.pid_offsets,
            "threads": self._jail.threads,
        }
        try:
            wake.send(json.dumps(state).encode())
            answer = wake.recv(1)
        except OSError:
            answer = b""
        wake.settimeout(_SPAWN_SECONDS)
        if answer != zygote.READY or not all(self._fork_for_nobody() for _ in range(_WARM_UP_FORKS)):
            self.close()
            raise SpawnError(f"the zygote did not start: {_stderr_tail() or 'it ended without a word'}")
        try:
            table = self._record_pages(pid)
            wake.send(zygote.PREFAULT)
            wake.send(table)
        except OSError as error:
            self.close()
            raise SpawnError(f"the guest that was sent ahead did not come through: {_stderr_tail() or error}") from None

    def _record_pages(self, parent: int) -> bytes:
        """The pages that guests of this zygote touch, as one of them did that was sent ahead."""
        network = self._networks.take()
        try:
            return self._run_trial_guest(network, parent)
        finally:
            self._networks.give_back(network)

    def _run_trial_guest(self, network: int, parent: int) -> bytes:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                pid, pidfd = self._spawn(network, theirs.fileno(), _STDERR_FD, zygote.TRIAL)
            try:
                ours.settimeout(_SPAWN_SECONDS)
                if ours.recv(1) != zygote.READY:
                    raise ConnectionResetError("it ended")
                return prefault.record_touched_pages(self._jail.proc, pid, parent)
            finally:
                _end(pid, pidfd)

    def _fork_for_nobody(self) -> bool:
        with suppress(ConnectionError):
            pid = self._ask([])
            return pid > 0 and os.waitpid(pid, 0)[1] == 0
        return False

    def close(self) -> None:
        """End the zygote; its guests live on."""
        gone, self._zygote = self._zygote, None
        if gone is None:
            return
        _end(gone.pid, gone.pidfd)
        gone.wake.close()
        gone.orders.close()

    def spawn(self, network: int, *, stdio: int, stderr: int) -> tuple[int, int]:
        """A new guest that is jailed and about to run its package's main, as (pid, pidfd)."""
        try:
            return self._spawn(network, stdio, stderr, zygote.GUEST)
        except ConnectionError:
            # The zygote is gone. If it forked before it went, the child finds all its ends closed, and ends.
            self.close()
        try:
            return self._spawn(network, stdio, stderr, zygote.GUEST)
        except ConnectionError:
            self.close()
            raise SpawnError(f"the zygote could not fork: {_stderr_tail() or 'it ended'}") from None

    def _spawn(self, network: int, stdio: int, stderr: int, order: bytes) -> tuple[int, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with ours:
                with theirs:
                    pid = self._ask([stdio, stderr, theirs.fileno(), *([network] if network >= 0 else [])], order)
                if pid < 0:
                    raise SpawnError(f"the zygote could not fork: {os.strerror(-pid)}")
                pidfd = os.pidfd_open(pid)
                try:
                    _await_guest(ours)
                except BaseException:
                    _end(pid, pidfd)
                    raise
                return pid, pidfd
        except SpawnError:
            self.close()  # an order that its guest didn't live to take must not become the next one's
            raise

    def _ask(self, fds: list[int], order: bytes = zygote.GUEST) -> int:
        if self._zygote is None:
            self.open()
        assert self._zygote is not None
        socket.send_fds(self._zygote.orders, [order], fds)
        self._zygote.wake.send(zygote.FORK)
        try:
            answer = self._zygote.wake.recv(4)
        except TimeoutError:
            raise SpawnError("the zygote does not answer") from None
        if not answer:
            raise ConnectionResetError("the zygote has ended")
        return int.from_bytes(answer, "little", signed=True)

    def _exec(self, wake: int, orders: int) -> None:
        """The zygote's first steps, up to its exec."""
        try:
            privileges.die_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with suppress(OSError):  # the report says so
                fix_addresses()
            assert self._jail.ruleset is not None  # a jail that holds forks has Landlock
            wanted = (wake, orders, self._jail.proc, self._jail.ruleset)
            apart = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, zygote.RULESET_FD + 1) for fd in wanted]
            for target, source in enumerate(apart, zygote.WAKE_FD):
                os.dup2(source, target)
            os.execve(self._place.program, (self._place.program, *self._place.argv[1:]), dict(self._place.env))
        except BaseException as error:  # noqa: BLE001  the outer edge of the child
            os.write(_STDERR_FD, str(error).encode())
        finally:
            os._exit(127)


def _end(pid: int, pidfd: int) -> None:
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(pidfd)


def _await_guest(sync: socket.socket) -> None:
    sync.settimeout(_SPAWN_SECONDS)
    try:
        word = sync.recv(1024)
        if word != b"ready":
            raise SpawnError(failure_text(word) or "the guest died before it was jailed")
        sync.send(b"g")
    except TimeoutError:
        raise SpawnError("the guest did not start in time") from None
    except ConnectionError:
        raise SpawnError("the guest died before it was jailed") from None


def _stderr_tail() -> str:
    size = os.fstat(_STDERR_FD).st_size
    return os.pread(_STDERR_FD, 2000, max(0, size - 2000)).decode(errors="replace").strip()
