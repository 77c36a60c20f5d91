"""The guest's root directory: a read-only tree in memory with the engine, its libraries and files, and nothing else."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from gloveport.sandbox.jail.namespaces import NEWNS
from gloveport.sandbox.jail.syscalls import call

_BYTES = 16 * 1024 * 1024

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class Tree:
    """What the root holds: `binds` and `devices` map guest paths to host paths, `files` guest paths to content.

    `folders` maps guest paths of directories to what is bound in each, in the same manner.
    """

    engine: str
    interpreter: str | None
    binds: Mapping[str, str]
    devices: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Mapping[str, str]]
    loader_cache: bool = False  # on the host, the loader finds some of `binds` only through its cache


def own_mounts() -> None:
    """Give this process a mount namespace whose changes stay in it."""
    call("unshare", NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def open_sources(tree: Tree) -> dict[str, int]:
    """Descriptors of what the tree binds, by guest path: taken while this process may still walk to it."""
    sources = {**tree.binds, **tree.devices}
    for bound in tree.folders.values():
        sources.update(bound)
    return {guest: os.open(host, os.O_PATH | os.O_CLOEXEC) for guest, host in sources.items()}


def change_root(tree: Tree, sources: Mapping[str, int]) -> None:
    """Make the tree this process's root, and let go of the old one."""
    new_root = next(place for place in ("/tmp", "/mnt", "/run", "/dev") if os.path.isdir(place))
    _mount("guest", new_root, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=0755,size={_BYTES}")
    os.chdir(new_root)
    for path, content in tree.files.items():
        _lay(path, content)
    for path, fd in sources.items():
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(f".{path}", mode=0o755, exist_ok=True)
        else:
            _lay(path, b"")
        _mount(f"/proc/self/fd/{fd}", f".{path}", None, _MS_BIND)
        os.close(fd)
        _set_attributes(f".{path}", _ATTR_RDONLY | _ATTR_NOSUID | (_ATTR_NOEXEC if path in tree.devices else _ATTR_NODEV))
    _set_attributes(".", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV | _ATTR_NOEXEC)
    os.chdir(new_root)
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    call("umount2", ctypes.c_char_p(b"."), _MNT_DETACH)
    os.chdir("/")


def _lay(path: str, content: bytes) -> None:
    os.makedirs(f".{os.path.dirname(path)}", mode=0o755, exist_ok=True)
    fd = os.open(f".{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


def _set_attributes(path: str, attributes: int) -> None:
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    path_bytes = ctypes.c_char_p(path.encode())
    call("mount_setattr", _AT_FDCWD, path_bytes, 0, ctypes.c_char_p(request), len(request))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else ctypes.c_char_p(text.encode()) for text in (source, target, kind, options)]
    try:
        call("mount", texts[0], texts[1], texts[2], flags, texts[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None
