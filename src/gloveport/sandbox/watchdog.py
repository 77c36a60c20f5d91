"""The watchdog: a thread that ends processes over their limits, even while the event loop stands still.

It checks wall clock, CPU time, memory and threads. The kernel's own limits hold without any thread of ours, but miss much:
RLIMIT_DATA does not count shared and read-only pages or page tables, RLIMIT_CPU counts whole seconds, and RLIMIT_NPROC
bounds threads tightly only where a guest has its own user namespace.

The thread sleeps on a kernel timer. Watching a process arms that timer and wakes nobody, so a run that ends before its
first check costs a few microseconds. While nothing is watched, the timer is off. Only code in C
that keeps the interpreter lock delays a check.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import signal
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gloveport.sandbox.guest import has_ended
from gloveport.sandbox.process_status import held_bytes_and_threads, is_running

logger = logging.getLogger(__name__)

CHECK_SECONDS = 0.05
MIN_CHECK_SECONDS = 0.005  # between two checks of a process that is close to a limit
ASK_SECONDS = 2 * CHECK_SECONDS  # before a limit of time: one check at least falls into it
MAX_GROWTH_BYTES_PER_SECOND = 4 * 1024**3  # how fast a process can fill memory: the closer its limit, the sooner a check

ExceededLimit = Literal["time-limit", "cpu-limit", "memory-limit", "thread-limit"]

_TFD_CLOEXEC, _TFD_TIMER_ABSTIME = 0o2000000, 1
_libc = ctypes.PyDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Watched:
    """A process and its limits. The watchdog copies `pidfd`: the original may be closed."""

    pid: int
    pidfd: int
    deadline: float = math.inf  # on the clock of `time.monotonic`
    max_cpu_seconds: float = math.inf  # on the process's own CPU clock, which starts with the process
    max_held_bytes: float = math.inf  # resident pages, page tables and swap
    max_threads: float = math.inf
    on_exceeded: Callable[[ExceededLimit], None] | None = None  # called in the watchdog's thread, after the kill
    place_signal: int | None = None  # makes the process write to its stderr where it is; sent once, before a limit of time


class Watch:
    """One process under watch. `exceeded` is the limit for which the watchdog has killed it."""

    def __init__(self, watchdog: Watchdog, watched: Watched) -> None:
        self.watched = watched
        self.exceeded: ExceededLimit | None = None
        self.asked_at: ExceededLimit | None = None  # the limit at which the process was asked where it is
        self.was_running = False  # whether it had something to compute when its time was over
        self.deadline = watched.deadline
        self.pidfd = os.dup(watched.pidfd)
        self._watchdog = watchdog
        self._paused_with: float | None = None  # seconds that were left of the wall clock when it was paused
        self._cpu_clock = (~watched.pid << 3) | 2  # the kernel's clock id for the CPU time of a process
        self._cpu_seconds = -1.0
        self._asked = watched.place_signal is None
        self._held_bytes = 0

    def stop(self) -> None:
        """Stop watching."""
        self._watchdog.stop(self)

    def set_deadline(self, deadline: float) -> None:
        """Replace the deadline of the wall clock."""
        self._watchdog.set_deadline(self, deadline)

    def pause(self) -> None:
        """Stop the wall clock until `resume`. CPU time, memory and threads are watched on."""
        if self._paused_with is None:
            self._paused_with = self.deadline - time.monotonic()
            self.set_deadline(math.inf)

    def resume(self) -> None:
        """Let the wall clock go on with the time that was left when it was paused."""
        if self._paused_with is not None:
            left, self._paused_with = self._paused_with, None
            self.set_deadline(time.monotonic() + left)

    def check(self, now: float) -> ExceededLimit | None:
        """Return the limit that the process has exceeded."""
        watched = self.watched
        if now >= self.deadline:
            return "time-limit"
        try:
            cpu_seconds = time.clock_gettime(self._cpu_clock)
            if cpu_seconds >= watched.max_cpu_seconds:
                return "cpu-limit"
            if cpu_seconds == self._cpu_seconds:  # it has not run since the last check, so nothing else has changed
                return None
            self._held_bytes, threads = held_bytes_and_threads(watched.pid)
            self._cpu_seconds = cpu_seconds
        except OSError:  # it has ended
            return None
        if self._held_bytes > watched.max_held_bytes:
            return "memory-limit"
        return "thread-limit" if threads > watched.max_threads else None

    def ask_place(self, now: float) -> None:
        """Ask the process where it is if it is about to exceed a limit of time: after that, it is too late."""
        cpu_left = self.watched.max_cpu_seconds - self._cpu_seconds
        if not self._asked and min(self.deadline - now, cpu_left) <= ASK_SECONDS:
            self._asked = True
            self.asked_at = "time-limit" if self.deadline - now <= cpu_left else "cpu-limit"
            signal.pidfd_send_signal(self.pidfd, self.watched.place_signal or 0)

    def due(self, now: float) -> float:
        """Return when to check next: at the deadline, or as soon as the process can be over another limit."""
        cpu_left = self.watched.max_cpu_seconds - max(self._cpu_seconds, 0)
        memory_left = (self.watched.max_held_bytes - self._held_bytes) / MAX_GROWTH_BYTES_PER_SECOND
        return min(self.deadline, now + min(CHECK_SECONDS, max(MIN_CHECK_SECONDS, min(cpu_left, memory_left))))


class Watchdog:
    """Watches any number of processes from one thread, which starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._timer = -1
        self._armed_for = math.inf

    def watch(self, watched: Watched) -> Watch:
        """Watch a process until it exceeds a limit and is killed, or until `stop` of the returned watch."""
        watch = Watch(self, watched)
        with self._lock:
            if self._timer < 0:
                self._start()
            self._watches.add(watch)
            self._arm(watch.due(time.monotonic()))
        return watch

    def stop(self, watch: Watch) -> None:
        """Stop watching a process."""
        with self._lock:
            self._drop(watch)

    def set_deadline(self, watch: Watch, deadline: float) -> None:
        """Replace the deadline of a watched process."""
        with self._lock:
            watch.deadline = deadline
            if watch in self._watches:
                self._arm(deadline)

    def forget(self) -> None:
        """Start anew in a forked process, which has neither the thread nor the watched processes."""
        for descriptor in [watch.pidfd for watch in self._watches] + [self._timer] * (self._timer >= 0):
            os.close(descriptor)
        Watchdog.__init__(self)

    def _start(self) -> None:
        timer = _libc.timerfd_create(time.CLOCK_MONOTONIC, _TFD_CLOEXEC)
        if timer < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_create: {os.strerror(code)}")
        try:
            threading.Thread(target=self._run, args=(timer,), name="gloveport-watchdog", daemon=True).start()
        except BaseException:
            os.close(timer)
            raise
        self._timer = timer

    def _arm(self, at: float) -> None:
        """Set the timer to an earlier time. The lock is held."""
        if at < self._armed_for:
            self._armed_for = at
            seconds, nanoseconds = divmod(max(1, int(at * 1e9)), 10**9)
            _libc.timerfd_settime(self._timer, _TFD_TIMER_ABSTIME, struct.pack("@4l", 0, 0, seconds, nanoseconds), None)

    def _run(self, timer: int) -> None:
        while True:
            os.read(timer, 8)
            with self._lock:
                self._armed_for = math.inf
                watches = list(self._watches)
            for watch in watches:
                try:
                    self._check(watch)
                except Exception:
                    logger.exception("internal error in the watchdog")  # the others are watched on

    def _check(self, watch: Watch) -> None:
        with self._lock:
            if watch not in self._watches:
                return
            now = time.monotonic()
            exceeded = watch.check(now)
            if has_ended(watch.pidfd):  # by itself; its number may belong to another process by now
                self._drop(watch)
                return
            if exceeded is None:
                watch.ask_place(now)
                self._arm(watch.due(now))
                return
            watch.was_running = exceeded == "time-limit" and is_running(watch.watched.pid)
            watch.exceeded = exceeded  # before the kill: whoever sees the death finds its reason
            signal.pidfd_send_signal(watch.pidfd, signal.SIGKILL)
            self._drop(watch)
        if watch.watched.on_exceeded is not None:
            watch.watched.on_exceeded(exceeded)

    def _drop(self, watch: Watch) -> None:
        """Forget a process and close its pidfd. The lock is held."""
        if watch in self._watches:
            self._watches.discard(watch)
            os.close(watch.pidfd)


WATCHDOG = Watchdog()  # of this process
os.register_at_fork(after_in_child=WATCHDOG.forget)
