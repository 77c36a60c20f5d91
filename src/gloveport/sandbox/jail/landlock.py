"""Landlock: after `restrict`, a process opens only the files in its ruleset, no TCP port, and signals no other process."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable

from gloveport.sandbox.jail.syscalls import call, prepare

EXECUTE = 1 << 0
READ_FILE = 1 << 2
READ_DIR = 1 << 3

_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 1, 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14

READ = READ_FILE
LIST = READ_FILE | READ_DIR
RUN = READ_FILE | EXECUTE
# Files and folders, but no link, device, socket or pipe, and nothing to execute.
CHANGE = LIST | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE

# The number of file access rights in each ABI version (1: up to MAKE_SYM, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV).
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_TCP = 0b11  # bind and connect, since ABI 4
_SCOPES = 0b11  # abstract UNIX sockets and signals
SCOPE_ABI = 6

_VERSION_QUERY = 1
_RULE_PATH_BENEATH = 1


def abi_version() -> int:
    """Return the Landlock ABI version of this kernel; OSError when it has no Landlock."""
    return call("landlock_create_ruleset", None, 0, _VERSION_QUERY)


def supported_rights(abi: int) -> tuple[int, int, int]:
    """Return everything that an ABI version can refuse, as (file rights, network rights, scopes)."""
    files = (1 << _FILE_RIGHTS[min(abi, 5)]) - 1
    return files, _NET_TCP if abi >= 4 else 0, _SCOPES if abi >= SCOPE_ABI else 0


def make_ruleset(rules: Iterable[tuple[int, int]]) -> int:
    """Create a ruleset that refuses everything except the given (file descriptor, access rights); return its descriptor."""
    files, net, scopes = supported_rights(abi_version())
    attributes = struct.pack("=QQQ", files, net, scopes)
    result = call("landlock_create_ruleset", ctypes.c_char_p(attributes), len(attributes), 0)
    for path_fd, access in rules:
        rule = struct.pack("=Qi", access & files, path_fd)
        call("landlock_add_rule", result, _RULE_PATH_BENEATH, ctypes.c_char_p(rule), 0)
    return result


def prepare_to_restrict(ruleset_fd: int) -> Callable[[], int]:
    """Return a function that applies a ruleset to its process, irrevocably; it needs no_new_privs."""
    return prepare("landlock_restrict_self", ruleset_fd, 0)
