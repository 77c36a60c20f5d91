"""A pool of workers that are already started and jailed, each for one run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from gloveport.errors import GloveportError, SandboxError
from gloveport.sandbox.guest import Exit
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.worker import END_DELAY_SECONDS
from gloveport.types import Strength

logger = logging.getLogger(__name__)

# Starting an engine is CPU-bound: starting more at once only delays the first.
MAX_STARTING_WORKERS = 2 * (os.cpu_count() or 1)
EARLY_DEATH_SECONDS = 5.0  # a worker that dies within this time is started a second time

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


class Pool(Generic[W]):
    """Keeps `size` workers of one kind ready. A worker that was taken never comes back.

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
        self._opening: asyncio.Task[JailReport] | None = None
        self._closed = False

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
        """Begin to start the fork server, and the workers if they are wanted, if that has not begun."""
        if self._opening is None and not self._closed:
            self._opening = asyncio.create_task(self._launcher.start())
            self._opening.add_done_callback(
                lambda opening: opening.cancelled() or opening.exception() or (workers and self.refill())
            )

    async def take(self) -> W:
        """Return the worker that has been ready longest, or the next that becomes ready."""
        self._takers += 1
        try:
            worker = await self._take()
        finally:
            self._takers -= 1
        self._taken.add(worker)
        return worker

    async def _take(self) -> W:
        if self._closed or self._opening is None or not self._launcher.alive:
            await self._open()
        while self._ready:
            worker = self._ready.popleft()
            if worker.alive():
                return worker
            self.retire(worker)
        if self._closed:  # closed while the fork server was starting
            raise SandboxError("the sandboxes were closed", code="closed")
        promised = asyncio.get_running_loop().create_future()
        self._waiting.append(promised)
        self.refill()
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
        wanted = self._size + len(self._waiting) - len(self._ready)
        for _ in range(min(wanted, MAX_STARTING_WORKERS) - len(self._starting)):
            task = asyncio.create_task(self._start_one())
            self._starting.add(task)
            task.add_done_callback(self._started)

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

    def _offer(self, worker: W) -> None:
        while self._waiting and not self._closed:
            promised = self._waiting.popleft()
            if not promised.done():
                promised.set_result(worker)
                return
        if self._closed:
            self.retire(worker)
        else:
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
        while self._waiting:
            self._fail(SandboxError("the sandboxes were closed", code="closed"))
        for task in list(self._starting):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
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
