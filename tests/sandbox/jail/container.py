"""The environment of a container: its own namespaces, and Docker's default capabilities and seccomp refusals."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from errno import ENOSYS, EPERM

from gloveport.sandbox.jail import seccomp
from gloveport.sandbox.jail.syscalls import MACHINE, call, prctl

UNSHARE = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--ipc", "--uts")
"""The command that puts another into namespaces of its own; without root, into a user namespace in which it has that."""

NAMESPACE_FLAGS = 0x7E020000
PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # not ADDR_NO_RANDOMIZE
REFUSED: dict[str, seccomp.Rule] = {
    **dict.fromkeys(
        ("unshare", "mount", "umount2", "pivot_root", "mount_setattr", "sethostname"), seccomp.errno_action(EPERM)
    ),
    "clone": seccomp.allow_if(seccomp.ArgumentTest(0, 0, mask=NAMESPACE_FLAGS)),
    "clone3": seccomp.errno_action(ENOSYS),
    "personality": seccomp.one_of(0, *PERSONALITIES),
}
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod,
# audit_write, setfcap
KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
_CAPBSET_DROP = 24
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41


def command() -> tuple[str, ...]:
    """Return the prefix of the command of a host that runs in a container."""
    return UNSHARE if os.geteuid() == 0 else (*UNSHARE, "--user", "--map-root-user")


def enter() -> None:
    """Drop what processes in a container don't have. no_new_privs stays unset, as in a container."""
    _raise_loopback()
    seccomp.SeccompProgram(seccomp.compile_filter(REFUSED, machine=MACHINE, default=seccomp.ALLOW)).prepare()()
    kept = sum(1 << capability for capability in KEPT)
    for capability in range(41):
        if capability not in KEPT:
            prctl(_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP_RUNNING))
