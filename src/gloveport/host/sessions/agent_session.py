"""One session from outside of its runs: its owner puts files in and takes files out."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from gloveport.errors import WorkspaceError
from gloveport.host.sessions.contents import SessionKey
from gloveport.host.sessions.sessions import Sessions
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.workspace import blocks, checked_path, too_large, too_many_files
from gloveport.store.sessions import Snapshot, SnapshotFile
from gloveport.types import KIB

PIECE_BYTES = 256 * KIB
T = TypeVar("T")
OnLoop = Callable[[Callable[[], Coroutine[Any, Any, T]]], Awaitable[T]]
FileContent = bytes | bytearray | memoryview | AsyncIterable[bytes]


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

    async def put(self, path: str, content: FileContent) -> None:
        """Put a file into the workspace, in place of one of the same path. Its content is bytes, or a stream of bytes."""
        checked_path(path)
        quota = self._sessions.quota
        data = await _received(content, quota.max_bytes) if isinstance(content, AsyncIterable) else bytes(content)
        name = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
        change = partial(_with_file, path=path, file=SnapshotFile(name, len(data)), quota=quota)
        await self._change(change, {name: data})

    async def get(self, path: str) -> bytes:
        """Return the content of a file; raise WorkspaceError `not-found`."""
        found = (await self._held()).files.get(path)
        if found is None:
            raise WorkspaceError(f"there is no file {path[:200]!r} in the session {self._key.name}", code="not-found")
        return await self._on_loop(lambda: self._sessions.shelf.content(found.digest))

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """Yield the content of a file in pieces; raise WorkspaceError `not-found`."""
        content = memoryview(await self.get(path))
        for start in range(0, len(content), PIECE_BYTES):
            yield bytes(content[start : start + PIECE_BYTES])

    async def list(self) -> tuple[SessionFile, ...]:
        """Return the files, by path."""
        files = (await self._held()).files
        return tuple(SessionFile(path, files[path].size) for path in sorted(files))

    async def remove(self, path: str) -> None:
        """Delete a file, or a folder with everything in it; raise WorkspaceError `not-found`."""
        await self._change(partial(_without_file, path=path), {})

    async def _held(self) -> Snapshot:
        return await self._on_loop(lambda: self._sessions.shelf.held(self._key)) or Snapshot()

    async def _change(self, change: Callable[[Snapshot], Snapshot], contents: dict[str, bytes]) -> None:
        make = partial(self._sessions.shelf.change, self._key, change, contents)
        await self._on_loop(lambda: self._sessions.change(self._key, make))


class AgentSession:
    """One session of an agent, from outside of its runs."""

    def __init__(self, sessions: Sessions, key: SessionKey, on_loop: OnLoop[Any]) -> None:
        self.name = key.name
        self.files = SessionFiles(sessions, key, on_loop)
        self._held = lambda: on_loop(lambda: sessions.shelf.held(key))
        self._remove = lambda: on_loop(lambda: sessions.remove(key))

    async def exists(self) -> bool:
        """Return whether something was kept in it."""
        return await self._held() is not None

    async def remove(self) -> None:
        """Delete the session, its files and its state; raise WorkspaceError `not-found`."""
        await self._remove()


async def _received(content: AsyncIterable[bytes], most: int) -> bytes:
    data = bytearray()
    async for piece in content:
        data += piece
        if len(data) > most:
            raise WorkspaceError(f"the file has more than {most:,} bytes")
    return bytes(data)


def _with_file(old: Snapshot, path: str, file: SnapshotFile, quota: WorkspaceQuota) -> Snapshot:
    parts = path.split("/")
    above = {"/".join(parts[:end]) for end in range(1, len(parts))}
    if path in old.folders or above & old.files.keys():
        raise WorkspaceError(f"{path!r} is a folder, or lies below a file", code="path-taken")
    new = replace(old, files={**old.files, path: file}, folders=tuple(sorted({*old.folders, *above})))
    if len(new.files) + len(new.folders) > quota.max_files:
        raise too_many_files(quota)
    if sum(blocks(one.size) for one in new.files.values()) > quota.max_bytes:
        raise too_large(quota)
    return new


def _without_file(old: Snapshot, path: str) -> Snapshot:
    if path not in old.files and path not in old.folders:
        raise WorkspaceError(f"there is no file {path[:200]!r} in the session", code="not-found")
    below = f"{path}/"
    files = {name: file for name, file in old.files.items() if name != path and not name.startswith(below)}
    return replace(old, files=files, folders=tuple(one for one in old.folders if one != path and not one.startswith(below)))
