"""The guest's event loop. It runs what is ready; when nothing is, the guest is quiet and takes one event of the host.

A blocking wait inside the program (`asyncio.run`, `time.sleep`) takes events in the same way, so the program always sees
them in the order in which the host sent them.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import asyncio
import heapq
import math
import sys
import threading
from asyncio import events, tasks
from collections import deque
from collections.abc import Callable
from typing import Any

from .clock import MICROS, Clock
from .errors import NeverSettles
from .wire import Channel

MAX_TIMER_SECONDS = 10 * 365 * 86400
POLLING_TURNS = 500  # after so many turns without an event the program is polling, so an event must be let in
MIN_CLEANUP_COUNT = 64


class Serials:
    """Serial numbers. They are the hashes of tasks and calls, so that sets of them have a reproducible order."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        """Return the next number."""
        self.last += 1
        return self.last


class Task(asyncio.Task):
    """A task whose place in a set does not depend on its memory address."""

    def __init__(self, coro: Any, *, loop: Loop, serial: int, name: str | None = None, **options: Any) -> None:
        self._serial = serial
        super().__init__(coro, loop=loop, name=name or f"Task-{serial}", **options)

    def __hash__(self) -> int:
        return self._serial


class Loop(asyncio.BaseEventLoop):
    """An asyncio event loop without files, sockets, signals, threads or its own clock."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        super().__init__()
        self._channel = channel
        self._clock = clock
        self._ready: deque[events.Handle] = deque()
        self._timers: list[tuple[int, int, events.TimerHandle]] = []
        self._timer_count = 0
        self._cancelled_timers = 0
        self._asked: int | None = None
        self._turns = 0
        self._made: list[Task] = []
        self._keep = MIN_CLEANUP_COUNT
        self._forever: asyncio.Future[None] | None = None
        self.serials = Serials()
        self.calls: Any = None
        """The pending calls: `waiting` is true when there are any, `settle` takes a reply."""
        self.unhandled: list[BaseException] = []

    # Running.

    def start(self) -> None:
        """Become the running loop of this thread permanently."""
        self._thread_id = threading.get_ident()
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)

    def is_busy(self) -> bool:
        """Return whether anything was scheduled and has not happened yet."""
        return bool(self._ready or self._timers or self._made)

    def drive(self, future: asyncio.Future[Any]) -> None:
        """Run until a future is done. Inside a task, that task waits meanwhile."""
        task = tasks.current_task(self)
        if task is not None:
            tasks._leave_task(self, task)
        try:
            while not future.done():
                self._turn()
        finally:
            if task is not None:
                tasks._enter_task(self, task)

    def _turn(self) -> None:
        ready = self._ready
        if not ready:
            self._quiet()
        elif self._turns > POLLING_TURNS:
            self._let_events_in()
        self._turns += 1
        for _ in range(len(ready)):
            if not ready:  # a nested drive has run them
                return
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _quiet(self) -> None:
        """Nothing is ready: request the earliest timer, flush the frames, and take one event."""
        due = self._earliest() if self._timers else None
        if due != self._asked:
            self._ask(due)
        if due is None and not self.calls.waiting:
            raise NeverSettles
        self._take_event()

    def _let_events_in(self) -> None:
        """Take events although the program is never quiet (`while not done: await sleep(0)`), by a timer for now."""
        self._turns = 0
        if self.calls.waiting or self._earliest() is not None:
            self._ask(self._clock.now)
            self._take_event()

    def _take_event(self) -> None:
        self._channel.flush()
        event = self._channel.next_event()
        self._turns = 0
        self._clock.advance(event[1])
        if event[0] == "reply":
            self.calls.settle(event)
        elif event[0] == "timer":
            self._asked = None
            self._fire()

    def _ask(self, at: int | None) -> None:
        self._asked = at
        self._channel.send('["timer",null]' if at is None else f'["timer",{at}]')

    def block(self, seconds: float, /) -> None:
        """Sleep like time.sleep: nothing else in the program runs meanwhile, and other events wait."""
        if math.isnan(seconds):
            raise ValueError("Invalid value NaN (not a number)")
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        at = self._clock.now + round(min(seconds, MAX_TIMER_SECONDS) * MICROS)
        if at == self._clock.now:
            return
        self._ask(at)
        self._channel.flush()
        self._clock.advance(self._channel.wait_for("timer", at=at)[1])
        self._asked = None

    # Timers. Timers for the same time fire in the order in which they were set.

    def _earliest(self) -> int | None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled_timers -= 1
        return timers[0][0] if timers else None

    def _fire(self) -> None:
        timers, now = self._timers, self._clock.now
        while timers and timers[0][0] <= now:
            handle = heapq.heappop(timers)[2]
            handle._scheduled = False
            if handle._cancelled:
                self._cancelled_timers -= 1
            else:
                self._ready.append(handle)

    def _schedule(self, at: int, when: float, callback: Callable[..., Any], args: Any, context: Any) -> events.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True
        self._timer_count += 1
        heapq.heappush(self._timers, (at, self._timer_count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        self._cancelled_timers += 1
        if self._cancelled_timers > MIN_CLEANUP_COUNT and self._cancelled_timers * 2 > len(self._timers):
            self._timers = [item for item in self._timers if not item[2]._cancelled]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> events.TimerHandle:
        """Schedule a callback after a delay in seconds."""
        if delay is None:
            raise TypeError("delay must not be None")
        delay = min(delay, MAX_TIMER_SECONDS) if delay > 0 else 0
        at = self._clock.now + round(delay * MICROS)
        return self._schedule(at, self._clock.elapsed() + delay, callback, args, context)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> events.TimerHandle:
        """Schedule a callback for the time `when`."""
        if when is None:
            raise TypeError("when cannot be None")
        soonest = max(self._clock.elapsed(), 0.0)
        at = (
            self._clock.origin + round(min(when, soonest + MAX_TIMER_SECONDS) * MICROS)
            if when > soonest
            else self._clock.now
        )
        return self._schedule(at, when, callback, args, context)

    def time(self) -> float:
        """Return the seconds since the start of the run. It is a reading, so that a program that polls it advances."""
        return (self._clock.read() - self._clock.origin) / MICROS

    # Callbacks, tasks.

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> events.Handle:
        """Schedule a callback for the next turn."""
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def create_task(self, coro: Any, **options: Any) -> Any:
        """Return a task. A tool call that is not awaited yet counts as a coroutine."""
        if self._task_factory is not None:
            return super().create_task(coro, **options)
        if asyncio.isfuture(coro):
            coro = _wait_for(coro)
        task = Task(coro, loop=self, serial=self.serials.next(), **options)
        self._made.append(task)
        if len(self._made) > self._keep:
            self._made = [item for item in self._made if not item.done()]
            self._keep = max(MIN_CLEANUP_COUNT, 2 * len(self._made))
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note an uncaught error for the end of the run."""
        if self._exception_handler is not None:
            super().call_exception_handler(context)
        elif isinstance(context.get("exception"), BaseException):
            self.note_unhandled(context["exception"])

    def note_unhandled(self, error: BaseException) -> None:
        """Keep an error for the notes in the done frame."""
        if len(self.unhandled) < 20:
            self.unhandled.append(error)

    def note_failed_tasks(self) -> None:
        """Note the failed tasks whose error was never retrieved."""
        for task in self._made:
            if task.done() and not task.cancelled() and task._log_traceback:
                error = task.exception()
                if error is not None:
                    self.note_unhandled(error)

    # What programs do with a loop of their own. There is only one loop; these run on it.

    def run_until_complete(self, future: Any) -> Any:
        """Return the result of a coroutine or future. The caller blocks until then."""
        future = asyncio.ensure_future(future, loop=self)
        self.drive(future)
        return future.result()

    def run(self, main: Any) -> Any:
        """Return the result of a coroutine and cancel the tasks that it leaves, like asyncio.run."""
        earlier = set(self._made)
        try:
            return self.run_until_complete(main)
        finally:
            left = [task for task in self._made if task not in earlier and not task.done()]
            for task in left:
                task.cancel()
            if left:
                self.drive(asyncio.gather(*left, return_exceptions=True))

    def run_forever(self) -> None:
        """Run until `stop` is called."""
        self._forever = self.create_future()
        self.drive(self._forever)

    def stop(self) -> None:
        """End `run_forever`."""
        if self._forever is not None and not self._forever.done():
            self._forever.set_result(None)

    def close(self) -> None:
        """Do nothing: the loop lives as long as the run."""

    def __del__(self) -> None:
        """Do nothing: the loop is never closed."""

    async def shutdown_default_executor(self, *args: Any, **options: Any) -> None:
        """Do nothing: there are no threads."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run the function now and return a finished future: threads would make runs differ."""
        future = self.create_future()
        try:
            result = func(*args)
        except StopIteration as error:
            future.set_exception(RuntimeError(f"the function raised StopIteration({error.value!r})"))
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future


async def _wait_for(future: asyncio.Future[Any]) -> Any:
    return await future


_NOT_OFFERED = """
add_reader remove_reader add_writer remove_writer sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall
sock_sendto sock_connect sock_accept sock_sendfile sendfile start_tls create_connection create_server
create_unix_connection create_unix_server create_datagram_endpoint connect_accepted_socket connect_read_pipe
connect_write_pipe subprocess_shell subprocess_exec getaddrinfo getnameinfo add_signal_handler remove_signal_handler
"""


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: Loop, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(
            f"{name} is not offered here: a sandbox has no network, no files to wait for, no processes"
        )

    refuse.__name__ = name
    return refuse


for _name in _NOT_OFFERED.split():
    setattr(Loop, _name, _refuse(_name))


# The names of asyncio that would create a loop, or whose result has the order of a set of objects.


def patch_asyncio(loop: Loop) -> None:
    """Make asyncio's functions for running loops use this loop."""
    first_completed, is_coroutine = asyncio.as_completed, asyncio.iscoroutine

    def run(main: Any, *, debug: bool | None = None, loop_factory: Any = None) -> Any:
        if not (asyncio.isfuture(main) or hasattr(main, "__await__")):
            raise ValueError(f"a coroutine was expected, got {main!r}")
        return loop.run(main)

    def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
        listed = [asyncio.ensure_future(item, loop=loop) for item in dict.fromkeys(fs)]
        return first_completed(listed, timeout=timeout)

    class Runner:
        """asyncio.Runner on the existing loop."""

        def __init__(self, **options: Any) -> None:
            pass

        def __enter__(self) -> Runner:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def close(self) -> None:
            pass

        def get_loop(self) -> Loop:
            return loop

        def run(self, coro: Any, **options: Any) -> Any:
            return run(coro)

    def new_event_loop() -> Loop:
        return loop

    def iscoroutine(obj: object) -> bool:
        return is_coroutine(obj) or hasattr(type(obj), "_tool_call")

    asyncio.iscoroutine = iscoroutine
    asyncio.run = asyncio.runners.run = run
    asyncio.Runner = asyncio.runners.Runner = Runner
    asyncio.new_event_loop = events.new_event_loop = new_event_loop
    asyncio.as_completed = tasks.as_completed = as_completed
    for name in ("BaseDefaultEventLoopPolicy", "_BaseDefaultEventLoopPolicy"):  # the second from Python 3.14 on
        if hasattr(events, name):
            getattr(events, name).new_event_loop = lambda self: loop
