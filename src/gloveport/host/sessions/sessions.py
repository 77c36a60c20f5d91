"""The sessions of a port. One run or one change uses a session at a time; others wait for it, or are refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from gloveport.approvals.desk import ApprovalDesk
from gloveport.config.settings import Config
from gloveport.errors import OptionError, WorkspaceError
from gloveport.host.runs.held_runs import HeldRun
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_request import RunRequest
from gloveport.host.sessions.contents import SessionKey
from gloveport.host.sessions.run_session import RunSession
from gloveport.host.sessions.shelf import SessionShelf
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.store.sessions import TakenSession
from gloveport.types import MIB

MAX_QUEUE_SECONDS = 600.0
RESUME_SECONDS = 5.0
POLL_SECONDS = 0.2
TOLD_AFTER_SECONDS = 1.0

logger = logging.getLogger("gloveport")


class Sessions:
    """The sessions of all agents of a port. `forgotten` is called with the agent and the name of one that is deleted."""

    def __init__(
        self,
        store: PortStore | None,
        desk: ApprovalDesk | None,
        settings: Config,
        forgotten: Callable[[str, str], None],
    ) -> None:
        config = settings.governance.sessions
        self.quota = WorkspaceQuota(config.max_mb * MIB, config.max_files, settings.packages.workspace_mount)
        self.shelf = SessionShelf(store, desk, config)
        self._forgotten = forgotten
        self._users: dict[SessionKey, tuple[asyncio.Lock, int]] = {}

    def quota_of(self, session: str | None) -> WorkspaceQuota | None:
        """Return the quota of a session; None without one. Raise OptionError for a name that none can have."""
        return None if session is None else SessionKey.of("", session) and self.quota

    @asynccontextmanager
    async def use(self, request: RunRequest, held: HeldRun | None) -> AsyncIterator[RunRequest]:
        """Yield the request with its session, if it names one, which no other run uses meanwhile.

        A run that is released while it waits for a person keeps its session.
        """
        if request.session is None:
            yield request
            return
        key = SessionKey.of(request.agent, request.session)
        quota = request.options.workspace or self.quota
        async with self._alone(key, partial(self.shelf.take, key, request.run), patience=_patience(request)) as taken:
            used: RunSession | None = None
            try:
                start = _start_of(request, taken)
                save = None if taken.is_saved else partial(self.shelf.save, taken)
                used = RunSession(await self.shelf.load(start), start, quota, save)
                yield replace(request, used_session=used)
            finally:
                if used is not None:
                    used.close()
                if await self.shelf.release(taken, waits=held is not None and held.is_released):
                    self._forgotten(key.agent, key.name)

    @asynccontextmanager
    async def _alone(
        self, key: SessionKey, take: Callable[[], Awaitable[TakenSession | None]], *, patience: float
    ) -> AsyncIterator[TakenSession]:
        """Wait until nobody else uses a session, here or elsewhere; raise `session-busy` if it takes too many seconds."""
        busy = WorkspaceError(f"another run uses the session {key.name}, or waits for a person", code="session-busy")
        lock, users = self._users.get(key, (None, 0))
        if lock is not None and not patience:
            raise busy
        lock = lock or asyncio.Lock()
        self._users[key] = lock, users + 1
        began = asyncio.get_running_loop().time()
        until, is_told = began + patience, False
        try:
            while True:
                await _acquired(lock, until, busy)
                try:
                    if (taken := await take()) is not None:
                        yield taken
                        return
                finally:
                    lock.release()
                now = asyncio.get_running_loop().time()
                if now >= until:
                    raise busy
                if not is_told and now >= began + TOLD_AFTER_SECONDS:
                    is_told = True
                    logger.warning("%s: waiting for it, for up to %d s", busy.message, patience)
                await asyncio.sleep(POLL_SECONDS)  # without the lock: a run that waited for a person goes on first
        finally:
            lock, users = self._users[key]
            if users == 1:
                del self._users[key]
            else:
                self._users[key] = lock, users - 1

    async def change(self, key: SessionKey, change: Callable[[], Awaitable[bool | None]]) -> bool:
        """Make a change of a session, when no run uses it. Return whether there is one."""
        is_there = False

        async def take() -> TakenSession | None:
            nonlocal is_there
            done = await change()
            is_there = bool(done)
            return None if done is False else TakenSession(key.agent, key.name, "", 0, "")

        async with self._alone(key, take, patience=MAX_QUEUE_SECONDS):
            return is_there

    async def remove(self, key: SessionKey) -> None:
        """Delete a session, when no run uses it; raise WorkspaceError `not-found`."""
        is_there = await self.change(key, partial(self.shelf.remove, key))
        self._forgotten(key.agent, key.name)
        if not is_there:
            raise WorkspaceError(f"there is no session {key.name} of the agent {key.agent}", code="not-found")

    async def close(self) -> None:
        """Close what keeps the sessions."""
        await self.shelf.close()


def _patience(request: RunRequest) -> float:
    """Return how long a run waits for its session. One that is resumed has it, or another host goes on with it."""
    if request.resumed is not None:
        return RESUME_SECONDS
    return MAX_QUEUE_SECONDS if request.waits_for_session else 0.0


async def _acquired(lock: asyncio.Lock, until: float, busy: WorkspaceError) -> None:
    try:
        async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + POLL_SECONDS)):
            await lock.acquire()
    except TimeoutError:
        raise busy from None


def _start_of(request: RunRequest, taken: TakenSession) -> str:
    """Return the snapshot of a run's start; raise OptionError if the session of a resumed run was changed meanwhile."""
    if request.resumed is None:
        return taken.snapshot
    start = str(request.resumed.stored.request["snapshot"])
    if start != taken.snapshot and not taken.is_saved:
        message = f"the session {taken.name} was changed since the host of the run {request.run[:8]} ended"
        hint = f"cancel it, and run the program again: `gloveport runs cancel {request.run[:8]}`"
        raise OptionError(message, hint=hint, code="not-resumable")
    return start
