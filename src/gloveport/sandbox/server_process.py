"""The process of a fork server. It starts without knowing what its guests will be, so it can be started in advance."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import NamedTuple

from gloveport.errors import SandboxError

_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
_BOOT = f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); from gloveport.sandbox.jail.fork_server import main; main()"


class ServerProcess(NamedTuple):
    """A started fork server that waits for its first message: its process, our end of its socket, and its stderr."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    stderr: int  # a file in memory


_waiting: list[ServerProcess] = []


def start_early(count: int) -> None:
    """Start servers for the launchers to come. A command does so first, and loads its modules meanwhile."""
    _waiting.extend(_start() for _ in range(count))


def take_server() -> ServerProcess:
    """Return a fork server that was started in advance, or start one."""
    return _waiting.pop() if _waiting else _start()


def _start() -> ServerProcess:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stderr = os.memfd_create("gloveport", os.MFD_CLOEXEC)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        os.close(stderr)
        raise SandboxError(f"the fork server could not be started: {error}") from None
    finally:
        theirs.close()
    ours.setblocking(False)
    return ServerProcess(process, ours, stderr)
