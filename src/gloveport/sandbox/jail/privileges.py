"""Drop privileges before the guest starts: root, capabilities, inherited descriptors, and surviving its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable
from errno import EINVAL, EPERM

from gloveport.sandbox.jail.namespaces import NOBODY
from gloveport.sandbox.jail.syscalls import call, prctl, prepare

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 1, 24, 28, 38
_SECUREBITS_LOCKED = 0xEF  # NOROOT, NO_SETUID_FIXUP, no KEEP_CAPS, NO_CAP_AMBIENT_RAISE; all locked
_CAPABILITY_HEADER = struct.pack("2I", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, pid 0: this process
_NO_CAPABILITIES = struct.pack("6I", *[0] * 6)
_CLOSE_RANGE_CLOEXEC = 4
_MAX_CAPABILITIES = 64


def leave_root() -> None:
    """Become nobody if this process is root on the host and may change its uid; otherwise do nothing."""
    if os.geteuid() != 0:
        return
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except PermissionError:
        return  # root without CAP_SETUID; the probe of the layer `identity` reports it


def prepare_no_new_privileges() -> Callable[[], int]:
    """Return a function that sets no_new_privs: no exec can gain a privilege. Landlock and seccomp require it."""
    return prepare("prctl", _PR_SET_NO_NEW_PRIVS, 1)


def prepare_to_drop_capabilities() -> Callable[[], None]:
    """Return a function that clears every capability set and locks the securebits: no capability can come back."""
    call_plainly, get_errno = ctypes.PyDLL(None, use_errno=True)["prctl"], ctypes.get_errno  # plain integers fit a C int
    every = list(range(_MAX_CAPABILITIES))
    clear = prepare("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)

    def drop() -> None:
        refusal = 0
        for capability in every:
            if call_plainly(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
                refusal = get_errno()
                break
        if refusal not in (0, EPERM, EINVAL):  # no CAP_SETPCAP, or past the last capability
            raise OSError(refusal, f"capability bounding set: {os.strerror(refusal)}")
        if call_plainly(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED, 0, 0, 0) < 0:
            refusal = get_errno()
            if refusal != EPERM:  # no CAP_SETPCAP; no_new_privs prevents regaining any
                raise OSError(refusal, f"securebits: {os.strerror(refusal)}")
        clear()

    return drop


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. A later change of credentials would undo it."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def prepare_to_die_with_parent() -> Callable[[], int]:
    """Return a function that does the same."""
    return prepare("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL))


def close_descriptors_on_exec() -> None:
    """Mark every descriptor above 2 close-on-exec."""
    call("close_range", 3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def prepare_to_close_from(first: int) -> Callable[[], int]:
    """Return a function that closes this descriptor and all above it: a forked guest makes no exec that would do so."""
    return prepare("close_range", first, 0xFFFFFFFF, 0)
