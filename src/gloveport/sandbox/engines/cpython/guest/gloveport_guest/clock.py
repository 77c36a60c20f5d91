"""The guest's clock. Each event sets it, it stands still between events, and each reading advances it by a microsecond.

`time`, `datetime` and everything built on them read this clock.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import datetime
import gc
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .patching import replace_everywhere

MICROS = 1_000_000


class Clock:
    """Microseconds since the epoch."""

    __slots__ = ("now", "origin")

    def __init__(self) -> None:
        self.now = self.origin = 0

    def start(self, now: int) -> None:
        """Set the clock for the first time."""
        self.now = self.origin = now

    def go_on(self, now: int) -> None:
        """Start again at a later time. `monotonic` does not notice."""
        self.origin += now - self.now
        self.now = now

    def advance(self, now: int) -> None:
        """Move to the time of an event. The clock never goes back."""
        if now > self.now:
            self.now = now

    def read(self) -> int:
        """Read the clock, which advances by a microsecond."""
        now = self.now
        self.now = now + 1
        return now

    def elapsed(self) -> float:
        """Return the seconds since the start, without a reading."""
        return (self.now - self.origin) / MICROS


def time_functions(clock: Clock) -> dict[str, Any]:
    """Return the functions for the module `time`, by name."""
    read, real_gmtime, real_strftime, real_asctime = clock.read, time.gmtime, time.strftime, time.asctime

    def time_() -> float:
        return read() / MICROS

    def time_ns() -> int:
        return read() * 1000

    def monotonic() -> float:
        return (read() - clock.origin) / MICROS

    def monotonic_ns() -> int:
        return (read() - clock.origin) * 1000

    def clock_gettime(which: int) -> float:
        return time_() if which == time.CLOCK_REALTIME else monotonic()

    def clock_gettime_ns(which: int) -> int:
        return time_ns() if which == time.CLOCK_REALTIME else monotonic_ns()

    def gmtime(seconds: float | None = None, /) -> time.struct_time:
        return real_gmtime(time_() if seconds is None else seconds)

    def strftime(format: str, t: Any = None, /) -> str:
        return real_strftime(format, gmtime() if t is None else t)

    def asctime(t: Any = None, /) -> str:
        return real_asctime(gmtime() if t is None else t)

    def ctime(seconds: float | None = None, /) -> str:
        return real_asctime(gmtime(seconds))

    ours: dict[str, Any] = {
        "time": time_,
        "time_ns": time_ns,
        "clock_gettime": clock_gettime,
        "clock_gettime_ns": clock_gettime_ns,
        "gmtime": gmtime,
        "localtime": gmtime,  # the time zone is UTC
        "strftime": strftime,
        "asctime": asctime,
        "ctime": ctime,
    }
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        ours[name], ours[f"{name}_ns"] = monotonic, monotonic_ns
    for name, function in ours.items():
        if function.__name__ == f"{name}_":
            function.__name__ = function.__qualname__ = name
    return ours


def os_times(clock: Clock) -> Any:
    """Return a function for `os.times`."""
    return lambda: os.times_result(((clock.read() - clock.origin) / MICROS, 0.0, 0.0, 0.0, clock.elapsed()))


def usage(clock: Clock) -> Any:
    """Return a function for `resource.getrusage`. CPU time is the time since the start; the rest is zero."""
    return lambda who: resource.struct_rusage(((clock.read() - clock.origin) / MICROS, 0.0, *[0] * 14))


def patch_datetime(clock: Clock) -> None:
    """Make `datetime.now`, `utcnow`, `today` and `date.today` read the clock.

    The methods are put into the types themselves: a subclass would differ from the type that the interpreter's own code
    creates (`type(x) is datetime`, `repr`, pickles).
    """
    read, utc = clock.read, datetime.timezone.utc  # noqa: UP017 - UTC is the same object

    def now(cls: Any, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return cls.fromtimestamp(read() / MICROS, tz)

    def utcnow(cls: Any) -> datetime.datetime:
        return cls.fromtimestamp(read() / MICROS, utc).replace(tzinfo=None)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(read() / MICROS)

    own = gc.get_referents(datetime.datetime.__dict__)[0]
    own["now"], own["utcnow"], own["today"] = classmethod(now), classmethod(utcnow), classmethod(today)
    gc.get_referents(datetime.date.__dict__)[0]["today"] = classmethod(today)
    forget = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    forget()  # the method cache, which has the methods from before the change


def restart_logging(clock: Clock) -> None:
    """Make the times in log records count from the start of the run."""
    logging._startTime = clock.origin * 1000 if isinstance(logging._startTime, int) else clock.origin / MICROS


HAS_WORKSPACE = "GLOVEPORT_WORKSPACE" in os.environ

# A run must not depend on when it runs: all files of a workspace have one time, and their file system one number.

KEPT_SECONDS = 1_000_000_000  # as the host gives it to files of earlier runs
_TIMES = {"st_atime": float(KEPT_SECONDS), "st_mtime": float(KEPT_SECONDS), "st_ctime": float(KEPT_SECONDS)}
_NANOSECONDS = {f"{name}_ns": KEPT_SECONDS * 10**9 for name in _TIMES}


def patch_files() -> None:
    """Replace what tells the times of files."""
    kept = [(getattr(os, name), _timeless(getattr(os, name))) for name in ("stat", "lstat", "fstat")]
    scandir = os.scandir
    kept.append((scandir, lambda path=".": Entries(scandir(path))))
    kept.append((os.listxattr, lambda path=".", *, follow_symlinks=True: []))  # `shutil.copy2` asks; the jail refuses it
    replace_everywhere(kept)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        known.update(new for old, new in kept if old in known)


class Entries:
    """What `os.scandir` returns."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return Entry(next(self._entries))

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        self._entries.close()


class Entry:
    """An `os.DirEntry` whose `stat` tells no times."""

    def __init__(self, entry: Any) -> None:
        self.name, self.path = entry.name, entry.path
        self.inode, self.is_dir, self.is_file, self.is_symlink = entry.inode, entry.is_dir, entry.is_file, entry.is_symlink
        self.stat = _timeless(entry.stat)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


def _timeless(stat: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    def timeless(*args: Any, **options: Any) -> os.stat_result:
        found = stat(*args, **options)
        about = (found.st_mode, found.st_ino, 1, found.st_nlink, found.st_uid, found.st_gid, found.st_size)
        sizes = {"st_blksize": found.st_blksize, "st_blocks": found.st_blocks, "st_rdev": 0}
        return os.stat_result((*about, *[KEPT_SECONDS] * 3), {**_TIMES, **_NANOSECONDS, **sizes})

    return timeless
