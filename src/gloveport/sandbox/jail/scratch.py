"""Directories of fork servers on the host, for guests without namespaces: in memory, and gone when their server is.

Only a fork server that needs them loads this: what it imports would double the mappings that each guest gets a copy of.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile

_PREFIX = "gloveport-"


def make() -> str:
    """A new directory that bears its name only once this process holds its lock; `sweep` leaves it alone until then."""
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=_in_memory())
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chmod(made, 0o755)
    directory = os.path.join(os.path.dirname(made), os.path.basename(made)[1:])
    os.rename(made, directory)
    return directory


def remove(directory: str) -> None:
    """Remove a directory and all in it."""
    shutil.rmtree(directory, ignore_errors=True)


def sweep() -> None:
    """Remove the directories of fork servers that were killed: nobody holds their lock any more."""
    for path in glob.glob(f"{_in_memory()}/{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked, or gone
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_uid == os.geteuid():
                    remove(path)
            finally:
                os.close(fd)


def _in_memory() -> str:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()
