"""A pool of workers that are already started and jailed, each for one run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from gloveport.errors import GloveportError, SandboxError
from gloveport.sandbox.guest import Exit
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.start_event import Preparation, RunModules
from gloveport.sandbox.worker import END_DELAY_SECONDS
from gloveport.types import Strength

logger = logging.getLogger(__name__)

# Starting an engine is CPU-bound: starting more at once only delays the first.
MAX_STARTING_WORKERS = 2 * (os.cpu_count() or 1)
EARLY_DEATH_SECONDS = 5.0  # a worker that dies within this time is started a second time

IDLE_SECONDS = 300.0  # after which processes that only wait for work end; the next work starts them again

MAX_SETS = 4  # of modules, for which prepared workers wait; the least recently used one makes room
MAX_PREPARED_WORKERS = 2  # for one set
PREPARED_IDLE_SECONDS = 120.0  # after which no worker waits for a set that no run has used

W = TypeVar("W", bound=RunWorker)


class WorkerLauncher(Protocol):
    """Where the workers of a pool come from: a fork server of this machine, or a sandbox host."""

    @property
    def alive(self) -> bool:
        """Whether it can start workers."""
        ...

    async def start(self) -> JailReport:
        """Get ready, and return the report on the jail; SandboxError if the strength is below the minimum."""
        ...

    async def close(self) -> None:
        """End it, and with it what it has started."""
        ...

    def abandon(self) -> None:
        """Do the same after the event loop has closed."""
        ...


class WorkerLaunch(Protocol):
    """How workers of one kind are started. A pool sends `idle_input` to a worker that no run waits for yet."""

    @property
    def idle_input(self) -> bytes:
        """What it sends."""
        ...

    def launcher(self, minimum: Strength) -> WorkerLauncher:
        """Return a launcher that was not started yet."""
        ...


class IdleTimer:
    """Calls `on_idle` once when `used` was not called for some seconds; after the next `used`, again.

    While it is used, it wakes the loop once in that time, and never while it is idle.
    """

    def __init__(self, on_idle: Callable[[], None], seconds: float | None = None) -> None:
        self._on_idle = on_idle
        self._seconds = IDLE_SECONDS if seconds is None else seconds
        self._last_use = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def used(self) -> None:
        """Note a use, which is now."""
        loop = asyncio.get_running_loop()
        self._last_use = loop.time()
        if self._handle is None:
            self._handle = loop.call_later(self._seconds, self._look)

    def stop(self) -> None:
        """Never call `on_idle` unless it is used again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        idle_at = self._last_use + self._seconds
        if loop.time() < idle_at:
            self._handle = loop.call_at(idle_at, self._look)
        else:
            self._handle = None
            self._on_idle()


@dataclass(slots=True)
class _Set(Generic[W]):
    """The workers for one set of modules. `unfit` once importing them has done more than that, or failed."""

    ready: deque[W] = field(default_factory=deque)
    starting: int = 0
    unfit: bool = False
    forget: asyncio.TimerHandle | None = None


class PreparedWorkers(Generic[W]):
    """Workers of one pool that have imported what recent programs imported: importing takes longer than most programs.

    Each is a fresh, fully jailed process for one run, like every other. It has run code of approved packages and of the
    project, and no code of any program. `start` starts a worker, `retire` ends one.
    """

    def __init__(self, start: Callable[[], Awaitable[W]], retire: Callable[[W], None], size: int) -> None:
        self._start = start
        self._retire = retire
        self._size = min(size, MAX_PREPARED_WORKERS)
        self._sets: dict[RunModules, _Set[W]] = {}  # the latest used last
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, modules: RunModules) -> W | None:
        """Return a worker that has imported these modules; None if none is ready. `refill` then starts some."""
        found = self._sets.pop(modules, None) or _Set()
        self._sets[modules] = found
        if found.forget is not None:
            found.forget.cancel()
        found.forget = asyncio.get_running_loop().call_later(PREPARED_IDLE_SECONDS, self._forget, modules)
        if len(self._sets) > MAX_SETS:
            self._forget(next(iter(self._sets)))
        while found.ready:
            worker = found.ready.popleft()
            if worker.alive():
                return worker
            self._retire(worker)
        return None

    def refill(self) -> None:
        """Start the missing workers in the background."""
        for modules, found in self._sets.items():
            if not found.unfit:
                for _ in range(self._size - len(found.ready) - found.starting):
                    found.starting += 1
                    task = asyncio.create_task(self._start_one(modules, found))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _start_one(self, modules: RunModules, found: _Set[W]) -> None:
        worker: W | None = None
        try:
            worker = await self._start()
            if not await worker.prepare(Preparation.new(modules)):
                found.unfit = True
                logger.info("what a program imports can't be imported in advance, so its runs import it themselves")
            elif self._sets.get(modules) is found:
                found.ready.append(worker)
                worker = None
        except (GloveportError, OSError) as error:
            found.unfit = True
            logger.warning("a sandbox could not be prepared: %s", error)
        finally:
            found.starting -= 1
            if worker is not None:
                self._retire(worker)

    def _forget(self, modules: RunModules) -> None:
        found = self._sets.pop(modules)
        if found.forget is not None:
            found.forget.cancel()
        while found.ready:
            self._retire(found.ready.popleft())

    async def close(self) -> None:
        """End all of them."""
        for modules in list(self._sets):
            self._forget(modules)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Pool(Generic[W]):
    """Keeps `size` workers of one kind ready. A worker that was taken never comes back.

    A pool that nobody takes from for a while shrinks: its ready workers end, and its launcher stays. The next taker gets a
    cold worker, which starts alone, from `warm` on.

    Invariant: while a caller waits for a worker, none is ready, and one is being started for it or has just failed.
    """

    def __init__(self, launch: WorkerLaunch, *, size: int, minimum: Strength, start: Callable[[Any], Awaitable[W]]) -> None:
        self._launch = launch
        self._start = start
        self._minimum: Strength = minimum
        self._launcher = launch.launcher(minimum)
        self._size = size
        self._ready: deque[W] = deque()
        self._waiting: deque[asyncio.Future[W]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._retiring: set[asyncio.Task[tuple[Exit, str]]] = set()
        self._takers = 0  # callers that wait for a worker
        self._taken: set[W] = set()
        self._prepared: PreparedWorkers[W] = PreparedWorkers(self._start_idle, self.retire, size)
        self._opening: asyncio.Task[JailReport] | None = None
        self._closed = False
        self._spare = size  # how many are to be ready: none in a pool that has shrunk
        self._idle_timer = IdleTimer(self._shrink)

    async def open(self) -> JailReport:
        """Start the fork server (once), begin to fill the pool, and return the report on the jail."""
        report = await self._open()
        self.refill()
        return report

    async def _open(self) -> JailReport:
        if self._closed:
            raise SandboxError("the sandboxes were closed", code="closed")
        if self._opening is not None and self._opening.done() and not self._launcher.alive:
            # It failed to start, or died since (the kernel may kill it when memory runs out): replace it.
            self._launcher = self._launch.launcher(self._minimum)
            self._opening = None
        if self._opening is None:
            self._opening = asyncio.create_task(self._launcher.start())
        return await asyncio.shield(self._opening)

    def warm(self, *, workers: bool = True) -> None:
        """Begin to start the fork server, and the workers if they are wanted, if that has not begun.

        A pool that has shrunk starts one worker: its taker is about to come.
        """
        if self._opening is None and not self._closed:
            self._opening = asyncio.create_task(self._launcher.start())
            self._opening.add_done_callback(
                lambda opening: opening.cancelled() or opening.exception() or (workers and self.refill())
            )
        elif workers and self._spare < min(1, self._size):
            self._spare = 1
            self.refill()

    async def take(self, modules: RunModules | None = None) -> W:
        """Return the worker that has been ready longest, or the next that becomes ready.

        With `modules`, return one that has imported them already, if there is one.
        """
        if modules is not None and (prepared := self._prepared.take(modules)) is not None:
            self._taken.add(prepared)
            return prepared
        self._takers += 1
        try:
            worker = await self._take()
        finally:
            self._takers -= 1
        self._taken.add(worker)
        return worker

    async def _take(self) -> W:
        self._idle_timer.used()
        if self._closed or self._opening is None or not self._launcher.alive:
            await self._open()
        while self._ready:
            worker = self._ready.popleft()
            if worker.alive():
                self._spare = self._size
                return worker
            self.retire(worker)
        if self._closed:  # closed while the fork server was starting
            raise SandboxError("the sandboxes were closed", code="closed")
        promised = asyncio.get_running_loop().create_future()
        self._waiting.append(promised)
        if self._spare < self._size:
            self._spare = 0
        self.refill()
        self._spare = self._size
        try:
            return await promised
        except asyncio.CancelledError:
            if promised.done() and not promised.cancelled() and promised.exception() is None:
                self._offer(promised.result())
            raise

    def retire(self, worker: W) -> None:
        """Kill a worker now and reap it in the background."""
        self._taken.discard(worker)
        task = worker.end()
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def replace(self, worker: W) -> None:
        """Kill a worker and refill the pool: at once if a caller waits for a worker, else after a short delay."""
        self.retire(worker)
        if self._waiting:
            self.refill()
        else:
            asyncio.get_running_loop().call_later(END_DELAY_SECONDS, self.refill)

    def refill(self) -> None:
        """Start the missing workers in the background."""
        if self._closed:
            return
        self._prepared.refill()
        wanted = self._spare + len(self._waiting) - len(self._ready)
        for _ in range(min(wanted, MAX_STARTING_WORKERS) - len(self._starting)):
            task = asyncio.create_task(self._start_one())
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _shrink(self) -> None:
        """End the workers that wait for a run."""
        self._spare = 0
        while self._ready:
            self.retire(self._ready.popleft())

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if self._waiting:
            self.refill()

    async def _start_one(self) -> None:
        try:
            worker = await self._start_worker()
        except GloveportError as error:
            self._fail(error)
        except OSError as error:  # out of descriptors, processes or memory
            self._fail(SandboxError(f"a sandbox could not be started: {error}"))
        else:
            self._offer(worker)

    async def _start_worker(self) -> W:
        """Start a worker. If it dies early, start it once more: it has received no data of a run."""
        await self._open()
        began = time.monotonic()
        try:
            return await self._start(self._launcher)
        except SandboxError as error:
            if error.code != "sandbox-crashed" or time.monotonic() - began > EARLY_DEATH_SECONDS:
                raise
            logger.warning("a sandbox died during its start and is started again: %s", error)
        await self._open()
        return await self._start(self._launcher)

    async def _start_idle(self) -> W:
        """Start a worker that no run waits for."""
        worker = await self._start_worker()
        if self._launch.idle_input:
            worker.send(self._launch.idle_input)
        return worker

    def _offer(self, worker: W) -> None:
        while self._waiting and not self._closed:
            promised = self._waiting.popleft()
            if not promised.done():
                promised.set_result(worker)
                return
        if self._closed or self._spare == 0 < self._size:
            self.retire(worker)
        else:
            self._idle_timer.used()
            if self._launch.idle_input:
                worker.send(self._launch.idle_input)
            self._ready.append(worker)

    def _fail(self, error: GloveportError) -> None:
        while self._waiting:
            promised = self._waiting.popleft()
            if not promised.done():
                promised.set_exception(error)
                return
        if not self._closed:  # no caller waits: the next take() tries again and raises its own error
            logger.warning("a sandbox could not be started in advance: %s", error)

    @property
    def states(self) -> dict[str, int]:
        """The number of workers that are ready and that are being started, and of callers that wait for one."""
        return {"ready": len(self._ready), "starting": len(self._starting), "wanted": len(self._waiting)}

    @property
    def idle(self) -> bool:
        """True when nobody uses a worker of this pool, waits for one, or waits for the fork server."""
        return not self._takers and not self._taken and (self._opening is None or self._opening.done())

    async def close(self) -> None:
        """End every process of this pool, and the fork server."""
        self._closed = True
        self._idle_timer.stop()
        while self._waiting:
            self._fail(SandboxError("the sandboxes were closed", code="closed"))
        for task in list(self._starting):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._prepared.close()
        while self._ready:
            self.retire(self._ready.popleft())
        if self._retiring:
            await asyncio.wait(self._retiring)
        if self._opening is not None:
            with contextlib.suppress(GloveportError):
                await self._opening
        await self._launcher.close()

    def abandon(self) -> None:
        """End the fork server, and with it every guest, after the event loop of this pool has closed."""
        self._closed = True
        self._launcher.abandon()
