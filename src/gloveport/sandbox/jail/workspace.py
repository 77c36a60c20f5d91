"""The writable folder of a guest: a file system in memory of its own, mounted where no other guest sees it.

The guest makes it before it enters its own user namespace, so it has no power over it: it can't unmount or remount it.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from gloveport.sandbox.jail.namespaces import NEWNS
from gloveport.sandbox.jail.syscalls import call

WORKSPACE = "/workspace"
BLOCK_BYTES = 4096
"""The space that a file takes is a multiple of this."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_NOSYMFOLLOW = 2, 4, 8, 256


@dataclass(frozen=True, slots=True)
class WorkspaceQuota:
    """How much a workspace holds: bytes, in blocks, and files and folders. `path` is its place in the guest."""

    max_bytes: int
    max_files: int
    path: str = WORKSPACE


def mount_workspace(quota: WorkspaceQuota) -> int:
    """Mount an empty workspace, make it the working directory, and return a descriptor of it."""
    call("unshare", NEWNS)
    options = f"mode=0755,size={quota.max_bytes},nr_inodes={quota.max_files + 1}"
    texts = [ctypes.c_char_p(text.encode()) for text in ("workspace", quota.path, "tmpfs", options)]
    call("mount", *texts[:3], _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOSYMFOLLOW, texts[3])
    os.chdir(quota.path)
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
