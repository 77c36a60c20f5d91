"""Reads and changes the store for the API, in one thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.errors import OptionError
from gloveport.store.database import StoreFile
from gloveport.store.sessions import SessionStore
from gloveport.store.snippets import SnippetStore
from gloveport.store.stored_runs import StoredRun, StoredRuns
from gloveport.store.tokens import TokenStore

T = TypeVar("T")
F = TypeVar("F", bound=StoreFile)


class StoreReader:
    """The store at a path. Each part of it is opened when it is first used."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "gloveport-api")
        self._open: dict[type[StoreFile], StoreFile] = {}

    @property
    def path(self) -> Path:
        """The file; raises OptionError where nothing is recorded."""
        if self._path is None:
            raise OptionError("this server records nothing", hint="serve with a store, as `gloveport serve` does")
        return self._path

    async def runs(self, work: Callable[[StoredRuns], T]) -> T:
        """Return the result of work on the runs."""
        return await self._with(StoredRuns, work)

    async def approvals(self, work: Callable[[ApprovalShelf], T]) -> T:
        """Return the result of work on the requests for approval."""
        return await self._with(ApprovalShelf, work)

    async def plans(self, work: Callable[[PlanShelf], T]) -> T:
        """Return the result of work on the plans."""
        return await self._with(PlanShelf, work)

    async def tokens(self, work: Callable[[TokenStore], T]) -> T:
        """Return the result of work on the tokens."""
        return await self._with(TokenStore, work)

    async def snippets(self, work: Callable[[SnippetStore], T]) -> T:
        """Return the result of work on the snippets."""
        return await self._with(SnippetStore, work)

    async def sessions(self, work: Callable[[SessionStore], T]) -> T:
        """Return the result of work on the sessions."""
        return await self._with(SessionStore, work)

    async def do(self, work: Callable[[Path], T]) -> T:
        """Return the result of other work on the file."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, self.path))

    async def _with(self, kind: type[F], work: Callable[[F], T]) -> T:
        def there(path: Path) -> T:
            found = self._open.get(kind)
            if not isinstance(found, kind):
                found = self._open[kind] = kind(path)
            return work(found)

        return await self.do(there)

    async def close(self) -> None:
        """Close the file."""

        def there() -> None:
            for one in self._open.values():
                one.close()

        await asyncio.get_running_loop().run_in_executor(self._thread, there)
        self._thread.shutdown(wait=False)


def find_run(runs: StoredRuns, run: str) -> StoredRun | None:
    """Return the run of exactly this id, or None."""
    try:
        found = runs.find(run)
    except OptionError:
        return None
    return found if found.id == run else None
