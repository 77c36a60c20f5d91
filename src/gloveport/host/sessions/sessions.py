"""The sessions of a port. One run or one change uses a session at a time; others wait for it, or are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from gloveport.errors import WorkspaceError
from gloveport.host.runs.run_request import RunRequest
from gloveport.host.sessions.contents import DEFAULT_QUOTA, MemoryShelf, SessionContents, SessionKey, SessionShelf
from gloveport.host.sessions.run_session import RunSession
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.workspace import checked_path

T = TypeVar("T")
OnLoop = Callable[[Callable[[], Coroutine[Any, Any, T]]], Awaitable[T]]


class Sessions:
    """The sessions of all agents of a port."""

    def __init__(self, quota: WorkspaceQuota = DEFAULT_QUOTA) -> None:
        self.quota = quota
        self._shelf: SessionShelf = MemoryShelf()
        self._users: dict[SessionKey, tuple[asyncio.Lock, int]] = {}

    def quota_of(self, session: str | None) -> WorkspaceQuota | None:
        """Return the quota of a session; None without one. Raise OptionError for a name that none can have."""
        return None if session is None else SessionKey.of("", session) and self.quota

    @asynccontextmanager
    async def use(self, request: RunRequest) -> AsyncIterator[RunRequest]:
        """Yield the request with its session, if it names one, which no other run uses meanwhile."""
        if request.session is None:
            yield request
            return
        key = SessionKey.of(request.agent, request.session)
        async with self.alone(key, wait=request.waits_for_session):
            used = RunSession(await self._shelf.load(key), self.quota, partial(self._shelf.save, key))
            try:
                yield replace(request, used_session=used)
            finally:
                used.close()

    @asynccontextmanager
    async def alone(self, key: SessionKey, *, wait: bool = True) -> AsyncIterator[None]:
        """Wait until nobody else uses a session; raise WorkspaceError `session-busy` if that is not wanted."""
        lock, users = self._users.get(key, (None, 0))
        if lock is not None and not wait:
            raise WorkspaceError(f"another run uses the session {key.name}", code="session-busy")
        lock = lock or asyncio.Lock()
        self._users[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._users[key]
            if users == 1:
                del self._users[key]
            else:
                self._users[key] = lock, users - 1

    async def contents(self, key: SessionKey) -> SessionContents:
        """Return what a session holds now: what a run does to it counts when the run has succeeded."""
        return await self._shelf.load(key)

    async def change(self, key: SessionKey, change: Callable[[SessionContents], SessionContents]) -> None:
        """Change what a session holds, when no run uses it."""
        async with self.alone(key):
            old = await self._shelf.load(key)
            new = replace(change(old), generation=old.generation + 1)
            new.files.check(self.quota)
            await self._shelf.save(key, new)

    async def names(self, agent: str) -> tuple[str, ...]:
        """Return the names of an agent's sessions."""
        return await self._shelf.names(agent)

    async def remove(self, key: SessionKey) -> None:
        """Delete a session, when no run uses it."""
        async with self.alone(key):
            await self._shelf.remove(key)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of a session: its path below `/workspace`, and its size in bytes."""

    path: str
    size: int


class SessionFiles:
    """The files of a session. They belong to the agent whose session it is."""

    def __init__(self, sessions: Sessions, key: SessionKey, on_loop: OnLoop[Any]) -> None:
        self._sessions = sessions
        self._key = key
        self._on_loop = on_loop

    async def put(self, path: str, content: bytes) -> None:
        """Put a file into the workspace, in place of one of the same path."""
        checked_path(path)
        data = bytes(content)
        change = partial(_with_file, path=path, content=data)
        await self._on_loop(lambda: self._sessions.change(self._key, change))

    async def get(self, path: str) -> bytes:
        """Return the content of a file; raise WorkspaceError `not-found`."""
        files = (await self._on_loop(lambda: self._sessions.contents(self._key))).files.files
        if path not in files:
            raise WorkspaceError(f"there is no file {path[:200]!r} in the session {self._key.name}", code="not-found")
        return files[path]

    async def list(self) -> tuple[SessionFile, ...]:
        """Return the files, by path."""
        files = (await self._on_loop(lambda: self._sessions.contents(self._key))).files.files
        return tuple(SessionFile(path, len(files[path])) for path in sorted(files))

    async def remove(self, path: str) -> None:
        """Delete a file, or a folder with everything in it; raise WorkspaceError `not-found`."""
        await self._on_loop(lambda: self._sessions.change(self._key, partial(_without_file, path=path)))


class AgentSession:
    """One session of an agent, from outside of its runs."""

    def __init__(self, sessions: Sessions, key: SessionKey, on_loop: OnLoop[Any]) -> None:
        self.name = key.name
        self.files = SessionFiles(sessions, key, on_loop)
        self._remove = lambda: on_loop(lambda: sessions.remove(key))

    async def remove(self) -> None:
        """Delete the session: its files and its state."""
        await self._remove()


def _with_file(old: SessionContents, path: str, content: bytes) -> SessionContents:
    return replace(old, files=old.files.with_file(path, content))


def _without_file(old: SessionContents, path: str) -> SessionContents:
    return replace(old, files=old.files.without_file(path))
