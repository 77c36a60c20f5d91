"""A guest as the host sees it: a jailed process that the host can talk to, limit, kill and wait for."""

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
    """How a guest ended: its exit code or the signal that killed it, and what it used since its fork."""

    code: int | None
    signal: int | None
    cpu_seconds: float
    max_rss_kb: int

    @classmethod
    def from_status(cls, status: int, cpu_seconds: float, max_rss_kb: int) -> Exit:
        """Return the exit that a wait status describes."""
        code = os.waitstatus_to_exitcode(status)
        return cls(code if code >= 0 else None, -code if code < 0 else None, cpu_seconds, max_rss_kb)


class Guest:
    """A jailed engine process, exec'd or forked. `socket` is its stdin and stdout; `stderr` reads its fd 2."""

    def __init__(
        self,
        *,
        pid: int,
        pidfd: int,
        channel: socket.socket,
        stderr: int,
        exit: asyncio.Future[Exit],
        limit_by_server: Callable[[Sequence[tuple[int, int]]], None],
        workspace: int | None = None,
    ) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.socket = channel
        self.stderr = stderr
        self._workspace = workspace
        self._exit = exit
        self._limit_by_server = limit_by_server
        self._closed = False

    def kill(self) -> None:
        """Kill the guest if it is still running."""
        if not self._closed:
            _kill(self.pidfd)

    def has_ended(self) -> bool:
        """Return whether the process is dead."""
        return self._closed or has_ended(self.pidfd)

    async def wait(self) -> Exit:
        """Wait for the guest to end; return how it ended."""
        return await asyncio.shield(self._exit)

    def set_limits(self, *, data_bytes: int | None, cpu_seconds: int | None) -> None:
        """Set the guest's memory limit (RLIMIT_DATA) and CPU time limit (RLIMIT_CPU); None leaves a limit unchanged."""
        wanted = ((resource.RLIMIT_DATA, data_bytes), (resource.RLIMIT_CPU, cpu_seconds))
        limits = [(name, value) for name, value in wanted if value is not None]
        if self._closed or has_ended(self.pidfd):
            raise SandboxError("the guest has ended", code="sandbox-crashed")
        try:
            for name, value in limits:
                resource.prlimit(self.pid, name, (value, value))
        except ProcessLookupError:
            raise SandboxError("the guest has ended", code="sandbox-crashed") from None
        except PermissionError:
            self._limit_by_server(limits)

    def take_workspace(self) -> int | None:
        """Return the descriptor of the guest's workspace, which is then the caller's to close; None if it has none."""
        taken, self._workspace = self._workspace, None
        return taken

    def close(self) -> None:
        """Kill the guest and close its descriptors."""
        if self._closed:
            return
        self.kill()
        self._closed = True
        self.socket.close()
        os.close(self.stderr)
        os.close(self.pidfd)
        if (workspace := self.take_workspace()) is not None:
            os.close(workspace)

    def on_exit(self, exit: Exit) -> None:
        """Record the exit of the guest. The launcher calls this once the fork server has reaped it."""
        if not self._exit.done():
            self._exit.set_result(exit)

    def on_server_exit(self) -> None:
        """Kill the guest and record an exit of unknown usage. The launcher calls this when the fork server has died."""
        unknown = Exit(None, signal.SIGKILL, 0.0, 0)
        if self._closed or self._exit.done():
            self.on_exit(unknown)
            return
        self.kill()
        loop = self._exit.get_loop()
        pidfd = os.dup(self.pidfd)

        def reap() -> None:
            loop.remove_reader(pidfd)
            with contextlib.suppress(ChildProcessError):  # it is our child only if this process adopts orphans (pid 1)
                os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
            os.close(pidfd)
            self.on_exit(unknown)

        loop.add_reader(pidfd, reap)


def _kill(pidfd: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def has_ended(pidfd: int) -> bool:
    """Return whether a process is dead."""
    waiter = select.poll()
    waiter.register(pidfd, select.POLLIN)
    return bool(waiter.poll(0))
