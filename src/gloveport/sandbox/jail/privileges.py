"""Drop privileges before the guest starts: root, capabilities, inherited descriptors, and surviving its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
from errno import EINVAL, EPERM

from gloveport.sandbox.jail.namespaces import NOBODY
from gloveport.sandbox.jail.syscalls import call, prctl, prctl_while

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 1, 24, 28, 38
_SECUREBITS_LOCKED = 0xEF  # NOROOT, NO_SETUID_FIXUP, no KEEP_CAPS, NO_CAP_AMBIENT_RAISE; all locked
_CAPABILITY_HEADER = struct.pack("2I", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, pid 0: this process
_NO_CAPABILITIES = struct.pack("6I", *[0] * 6)
_CLOSE_RANGE_CLOEXEC = 4


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


def set_no_new_privileges() -> None:
    """Set no_new_privs: no exec can gain a privilege. Landlock and seccomp require it."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Clear every capability set and lock the securebits, so that no capability can come back."""
    refusal = prctl_while(_PR_CAPBSET_DROP, range(64))
    if refusal not in (0, EPERM, EINVAL):  # no CAP_SETPCAP, or past the last capability
        raise OSError(refusal, f"capability bounding set: {os.strerror(refusal)}")
    with contextlib.suppress(PermissionError):  # no CAP_SETPCAP; no_new_privs prevents regaining any
        prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. A later change of credentials would undo it."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def close_descriptors_on_exec() -> None:
    """Mark every descriptor above 2 close-on-exec."""
    call("close_range", 3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def close_descriptors_from(first: int) -> None:
    """Close this descriptor and all above it now: a forked guest makes no exec that would close them."""
    call("close_range", first, 0xFFFFFFFF, 0)
