"""Messages between the host and the fork server: JSON objects over a UNIX socket, with descriptors attached."""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any

MAX_MESSAGE_BYTES = 64 * 1024
_MAX_DESCRIPTORS = 4


def send(channel: socket.socket, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
    """Send a message and copies of the descriptors."""
    socket.send_fds(channel, [json.dumps(message).encode()], list(fds))


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next message and its descriptors; None when the other end is closed."""
    data, fds = receive_bytes(channel)
    return (json.loads(data) if data else None), fds


def receive_bytes(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next packet and its descriptors, all close-on-exec (`socket.recv_fds` does not set that)."""
    fds = array.array("i")
    space = socket.CMSG_SPACE(_MAX_DESCRIPTORS * fds.itemsize)
    data, extras, _, _ = channel.recvmsg(MAX_MESSAGE_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)
