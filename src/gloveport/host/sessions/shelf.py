"""Where the sessions of a port are kept: in its store, or in memory for as long as it is open."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from gloveport.approvals.desk import ApprovalDesk
from gloveport.config.sessions import SessionsConfig
from gloveport.host.runs.port_store import PortStore
from gloveport.host.sessions.contents import EMPTY_STATE, SessionContents, SessionKey
from gloveport.sandbox.workspace import WorkspaceFiles
from gloveport.store.database import MEMORY
from gloveport.store.sessions import SessionStore, Snapshot, StoredSession, TakenSession
from gloveport.types import MIB

MAX_CACHED_BYTES = 32 * MIB
MEMORY_CHAIN = "memory"
T = TypeVar("T")


class SessionShelf:
    """The sessions of a port. What was used last is also in memory: most runs find what the run before has left."""

    def __init__(self, store: PortStore | None, desk: ApprovalDesk | None, config: SessionsConfig) -> None:
        self._config = config
        self._store = store
        self._desk = desk
        self._chain = "" if store is not None else MEMORY_CHAIN
        self._opened: SessionStore | None = None
        self._thread = ThreadPoolExecutor(1, "gloveport-sessions")
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0

    async def take(self, key: SessionKey, run: str) -> TakenSession | None:
        """Let a run use a session; return None while a run of another host does, or one that waits for a person."""
        chain = await self._host()
        return await self._do(lambda store: store.take(key.agent, key.name, run, chain))

    async def release(self, taken: TakenSession, *, waits: bool) -> bool:
        """End the use of a session, unless its run `waits` for a person without a process. Return whether it is gone."""
        return await self._do(lambda store: store.release(taken, waits=waits))

    async def load(self, snapshot: str) -> SessionContents:
        """Return what a snapshot has."""
        return await self._do(partial(self._load, snapshot))

    async def save(self, taken: TakenSession, contents: SessionContents) -> None:
        """Replace what a session holds, as a whole or not at all, and end its use; raise WorkspaceError."""
        if self._store is not None:
            await self._store.flush()  # the run refers to what the session has held

        def save(store: SessionStore) -> None:
            snapshot, new = contents.listed()
            store.save(taken, snapshot, new)
            for name, content in new.items():
                self._remember(name, content)

        await self._do(save)

    async def change(self, key: SessionKey, change: Callable[[Snapshot], Snapshot], contents: dict[str, bytes]) -> bool:
        """Change what a session holds; return False while a run uses it."""
        chain = await self._host()
        return await self._do(lambda store: store.change(key.agent, key.name, chain, change, contents))

    async def remove(self, key: SessionKey) -> bool | None:
        """Delete a session; return False while a run uses it, and None if there is none."""
        chain = await self._host()
        return await self._do(lambda store: store.remove(key.agent, key.name, chain))

    async def held(self, key: SessionKey) -> Snapshot | None:
        """Return what a session holds; None if there is none."""
        return await self._do(lambda store: store.held(key.agent, key.name))

    async def content(self, name: str) -> bytes:
        """Return a content by its digest."""
        return (await self._do(lambda store: store.contents([name])))[name]

    async def all(self, agent: str | None) -> list[StoredSession]:
        """Return the sessions (of an agent)."""
        return await self._do(lambda store: store.all(agent))

    async def close(self) -> None:
        """Close the file, after everything that was begun. What was in memory is gone."""

        def end() -> None:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

        if self._opened is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, end)
        self._thread.shutdown(wait=False)

    async def _host(self) -> str:
        """Return the chain of this host. The store has it by then, so that others see it live, and the key for contents."""
        if not self._chain and self._store is not None:
            log = self._store.open(self._desk)
            await log.flush()
            self._chain = log.chain
        return self._chain

    async def _do(self, work: Callable[[SessionStore], T]) -> T:
        def there() -> T:
            if self._opened is None:
                self._opened = SessionStore(MEMORY if self._store is None else self._store.path, self._config)
            return work(self._opened)

        return await asyncio.get_running_loop().run_in_executor(self._thread, there)

    # In the thread.

    def _load(self, name: str, store: SessionStore) -> SessionContents:
        snapshot = store.snapshot(name)
        found = {one: self._cache[one] for one in snapshot.contents if one in self._cache}
        for one in found:
            self._cache.move_to_end(one)
        for one, content in store.contents(snapshot.contents - found.keys()).items():
            found[one] = content
            self._remember(one, content)
        files = {path: found[one.digest] for path, one in snapshot.files.items()}
        state = found[snapshot.state] if snapshot.state else EMPTY_STATE
        known = {id(content): one for one, content in found.items()}
        return SessionContents(WorkspaceFiles(files, frozenset(snapshot.folders)), state, known)

    def _remember(self, name: str, content: bytes) -> None:
        if name in self._cache or len(content) > MAX_CACHED_BYTES:
            return
        self._cache[name] = content
        self._cached_bytes += len(content)
        while self._cached_bytes > MAX_CACHED_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])
