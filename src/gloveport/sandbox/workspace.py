"""The host's side of a workspace: fill it before the program starts, and read it after the guest is dead.

What a guest leaves there is hostile. No name in it ever becomes a path on the host: files are opened one name at a time,
below the descriptor of the workspace, and their contents are kept by name in memory or in the store.
"""

from __future__ import annotations

import ctypes
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from gloveport.errors import WorkspaceError
from gloveport.sandbox.jail.namespaces import outside_id
from gloveport.sandbox.jail.workspace import BLOCK_BYTES, WorkspaceQuota

MAX_PATH_CHARS = 1024
MAX_DEPTH = 32
_KEPT_TIME = 1_000_000_000  # of files from earlier runs, in seconds: a run must not depend on when they were written
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """The contents of a workspace: files by path, and all folders. Paths are relative, with `/` between names."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    def check(self, quota: WorkspaceQuota) -> None:
        """Raise WorkspaceError unless the contents fit."""
        if len(self.files) + len(self.folders) > quota.max_files:
            raise too_many_files(quota)
        if sum(blocks(len(content)) for content in self.files.values()) > quota.max_bytes:
            raise too_large(quota)


def blocks(size: int) -> int:
    """Return the space that a file of this size takes."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def too_large(quota: WorkspaceQuota) -> WorkspaceError:
    """Return the error for contents that are too large."""
    return WorkspaceError(f"the files of the workspace take more than {quota.max_bytes:,} bytes")


def too_many_files(quota: WorkspaceQuota) -> WorkspaceError:
    """Return the error for too many files."""
    return WorkspaceError(f"the workspace has more than {quota.max_files:,} files and folders")


def checked_path(path: str) -> str:
    """Return a path of plain names, relative to the workspace; raise WorkspaceError for any other."""
    if len(path) > MAX_PATH_CHARS or path.count("/") >= MAX_DEPTH:
        raise WorkspaceError(f"the path {path[:80]!r}… is longer than {MAX_PATH_CHARS} characters or {MAX_DEPTH} names")
    for name in path.split("/"):
        check_name(name)
    return path


def check_name(name: str) -> None:
    """Raise WorkspaceError unless this can be the name of a file or a folder."""
    plain = name.isprintable() and name == name.strip() and name not in ("", ".", "..")
    if not plain or "\\" in name or not unicodedata.is_normalized("NFC", name) or len(os.fsencode(name)) > 255:
        hint = "use printable characters, no `\\` and no space at the ends, at most 255 bytes"
        raise WorkspaceError(f"a file can't be called {name[:80]!r}", code="workspace-refused", hint=hint)


class Workspace:
    """The workspace of one guest, by the descriptor of its mount. Call its methods in a thread."""

    def __init__(self, fd: int, quota: WorkspaceQuota) -> None:
        self._fd = fd
        self._quota = quota
        self._kept: dict[int, bytes] = {}  # contents from earlier runs, by inode

    def close(self) -> None:
        """Give up the workspace. Its memory is free once the guest has ended, too."""
        os.close(self._fd)

    def is_full(self) -> bool:
        """Return whether no block or no file is free."""
        left = os.fstatvfs(self._fd)
        return not left.f_bavail or not left.f_favail

    def fill(self, contents: WorkspaceFiles) -> None:
        """Write files into the workspace, which is empty: in one order, so that programs find them in the same order."""
        folders = {"": self._fd}
        try:
            with _guest_user():
                for path in sorted(contents.folders):
                    above, _, name = path.rpartition("/")
                    os.mkdir(name, 0o755, dir_fd=folders[above])
                    folders[path] = os.open(name, _OPEN_FOLDER, dir_fd=folders[above])
                for path in sorted(contents.files):
                    above, _, name = path.rpartition("/")
                    self._kept[_write(folders[above], name, contents.files[path])] = contents.files[path]
                for fd in folders.values():
                    os.utime(fd, (_KEPT_TIME, _KEPT_TIME))
        finally:
            for fd in list(folders.values())[1:]:
                os.close(fd)

    def read(self) -> WorkspaceFiles:
        """Return what a dead guest has left; raise WorkspaceError if that is too much, or not only plain files."""
        found = _Found(self._quota, self._kept)
        found.read_folder(self._fd, "", 0)
        return WorkspaceFiles(found.files, frozenset(found.folders))


def _write(folder: int, name: str, content: bytes) -> int:
    """Write a file and return its inode."""
    fd = os.open(name, _CREATE, 0o644, dir_fd=folder)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.utime(fd, (_KEPT_TIME, _KEPT_TIME))
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


class _Found:
    """What was found in a workspace so far, and what may still come."""

    def __init__(self, quota: WorkspaceQuota, kept: Mapping[int, bytes]) -> None:
        self._quota = quota
        self._kept = kept
        self._bytes_left = quota.max_bytes
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()

    def read_folder(self, fd: int, place: str, depth: int) -> None:
        """Read everything in a folder."""
        for name in sorted(os.listdir(fd)):
            check_name(name)
            path = place + name
            if depth >= MAX_DEPTH or len(path) > MAX_PATH_CHARS:
                raise WorkspaceError(f"the folders of the workspace lie more than {MAX_DEPTH} deep, or have long names")
            if len(self.files) + len(self.folders) >= self._quota.max_files:
                raise too_many_files(self._quota)
            kind = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(kind.st_mode):
                self.folders.add(path)
                inner = _open(name, _OPEN_FOLDER, fd)
                try:
                    self.read_folder(inner, f"{path}/", depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(kind.st_mode) and kind.st_nlink == 1:
                self.files[path] = self._read_file(fd, name, kind)
            else:
                raise WorkspaceError(f"{path!r} is neither a plain file nor a folder", code="workspace-refused")

    def _read_file(self, folder: int, name: str, found: os.stat_result) -> bytes:
        size = found.st_size  # of a sparse file, too
        self._bytes_left -= blocks(size)
        if self._bytes_left < 0:
            raise too_large(self._quota)
        kept = self._kept.get(found.st_ino)
        # Each write changes the time, and no guest can set it: the file is as it was, whatever its name is now.
        if kept is not None and found.st_mtime_ns == _KEPT_TIME * 10**9 and size == len(kept):
            return kept
        with open(_open(name, _OPEN_FILE, folder), "rb", buffering=0) as file:
            content = bytearray(size)
            view, end = memoryview(content), 0
            while end < size and (count := file.readinto(view[end:])):
                end += count
            return bytes(view[:end])


def _open(name: str, flags: int, folder: int) -> int:
    """Open something that its owner may have made unreadable. The guest is dead: it can't put something else there."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


@contextmanager
def _guest_user() -> Iterator[None]:
    """Make this thread write files as the user of guests: the file system knows no other, root included."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsgid(outside_id(0))
    libc.setfsuid(outside_id(0))  # of this thread alone
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)
