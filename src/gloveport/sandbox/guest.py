"""A guest as its host holds it: a jailed process with two channels, that can be limited, killed and waited for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gloveport.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Exit:
    """How a guest ended: its exit code or the signal that ended it, and what it used from its fork on."""

    code: int | None
    signal: int | None
    cpu_seconds: float
    max_rss_kb: int

    @classmethod
    def from_status(cls, status: int, cpu_seconds: float, max_rss_kb: int) -> Exit:
        """The exit that a wait status tells of."""
        code = os.waitstatus_to_exitcode(status)
        return cls(code if code >= 0 else None, -code if code < 0 else None, cpu_seconds, max_rss_kb)


class Guest:
    """A jailed process that is an engine, exec'd or forked: `socket` is its stdin and stdout, `stderr` reads its fd 2."""

    def __init__(
        self,
        *,
        pid: int,
        pidfd: int,
        channel: socket.socket,
        stderr: int,
        exit: asyncio.Future[Exit],
        limit_by_server: Callable[[Sequence[tuple[int, int]]], None],
    ) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.socket = channel
        self.stderr = stderr
        self._exit = exit
        self._limit_by_server = limit_by_server
        self._closed = False

    def kill(self) -> None:
        """End the guest now, if it still runs."""
        if not self._closed:
            _kill(self.pidfd)

    def has_ended(self) -> bool:
        """True once the process is dead."""
        return self._closed or _has_ended(self.pidfd)

    async def wait(self) -> Exit:
        """How the guest ended, once it has."""
        return await asyncio.shield(self._exit)

    def set_limits(self, *, data_bytes: int | None, cpu_seconds: int | None) -> None:
        """Bound the guest's memory (RLIMIT_DATA) and processor time (RLIMIT_CPU) from now on; None changes nothing."""
        wanted = ((resource.RLIMIT_DATA, data_bytes), (resource.RLIMIT_CPU, cpu_seconds))
        limits = [(name, value) for name, value in wanted if value is not None]
        if self._closed or _has_ended(self.pidfd):
            raise SandboxError("the guest has ended", code="sandbox-crashed")
        try:
            for name, value in limits:
                resource.prlimit(self.pid, name, (value, value))
        except ProcessLookupError:
            raise SandboxError("the guest has ended", code="sandbox-crashed") from None
        except PermissionError:
            self._limit_by_server(limits)

    def close(self) -> None:
        """Kill the guest and close its descriptors."""
        if self._closed:
            return
        self.kill()
        self._closed = True
        self.socket.close()
        os.close(self.stderr)
        os.close(self.pidfd)

    def on_exit(self, exit: Exit) -> None:
        """Told by the launcher: the guest has ended, and was reaped."""
        if not self._exit.done():
            self._exit.set_result(exit)

    def on_server_exit(self) -> None:
        """Told by the launcher: the fork server is gone. The guest ends with it, and nobody can say what it used."""
        unknown = Exit(None, signal.SIGKILL, 0.0, 0)
        if self._closed or self._exit.done():
            self.on_exit(unknown)
            return
        self.kill()
        loop = self._exit.get_loop()
        pidfd = os.dup(self.pidfd)

        def reap() -> None:
            loop.remove_reader(pidfd)
            with contextlib.suppress(ChildProcessError):  # it is ours only where this process adopts orphans (pid 1)
                os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
            os.close(pidfd)
            self.on_exit(unknown)

        loop.add_reader(pidfd, reap)


def _kill(pidfd: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _has_ended(pidfd: int) -> bool:
    waiter = select.poll()
    waiter.register(pidfd, select.POLLIN)
    return bool(waiter.poll(0))
