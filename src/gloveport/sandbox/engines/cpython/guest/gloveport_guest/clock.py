"""The guest's clock: set by each event, standing still between events, one microsecond further with each reading.

Every way to read the time that a program meets is led here: `time`, `datetime`, and what is built on them.
"""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

from __future__ import annotations

import datetime
import gc
import logging
import os
import resource
import sys
import time
from typing import Any

MICROS = 1_000_000


class Clock:
    """Microseconds since the epoch."""

    __slots__ = ("now", "origin")

    def __init__(self) -> None:
        self.now = self.origin = 0

    def start(self, now: int) -> None:
        """Set the clock for the first time."""
        self.now = self.origin = now

    def advance(self, now: int) -> None:
        """Move to an event's time; the clock never goes back."""
        if now > self.now:
            self.now = now

    def read(self) -> int:
        """A reading, which takes a microsecond."""
        now = self.now
        self.now = now + 1
        return now

    def elapsed(self) -> float:
        """Seconds since the start, without a reading."""
        return (self.now - self.origin) / MICROS


def time_functions(clock: Clock) -> dict[str, Any]:
    """Functions for the module `time`, by name."""
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
    """A function for `os.times`."""
    return lambda: os.times_result(((clock.read() - clock.origin) / MICROS, 0.0, 0.0, 0.0, clock.elapsed()))


def usage(clock: Clock) -> Any:
    """A function for `resource.getrusage`: it has computed for as long as it runs, and what else it uses is not told."""
    return lambda who: resource.struct_rusage(((clock.read() - clock.origin) / MICROS, 0.0, *[0] * 14))


def turn_datetime(clock: Clock) -> None:
    """Lead `datetime.now`, `utcnow`, `today` and `date.today` to the clock.

    The methods are put into the types themselves. A subclass would be another type than the one that the interpreter's own
    code makes (`type(x) is datetime`, `repr`, pickles); here there is only one.
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
    forget()  # what was looked up before the change


def restart_logging(clock: Clock) -> None:
    """Let the times in log records count from the start of the run."""
    logging._startTime = clock.origin * 1000 if isinstance(logging._startTime, int) else clock.origin / MICROS
