"""How lists and views call runs and their tools: a run by its program, a tool by its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gloveport.errors import OptionError, StoreError
from gloveport.host.port import Gloveport
from gloveport.store.stored_runs import ListedRun, StoredRun
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.record_documents import run_document, title_of
from gloveport.types import Outcome

MAX_KNOWN_TITLES = 2_000


def titled(run: StoredRun, code: str) -> dict[str, Any]:
    """Return a run as JSON data, with its title."""
    return run_document(run) | {"title": title_of(code)}


class RunTitles:
    """The titles of runs. They never change, so that a list that is loaded again reads no program again."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    async def documents(self, runs: Sequence[ListedRun]) -> list[dict[str, Any]]:
        """Return runs as JSON data, each with its title; a run without a program has none yet."""
        titles = await self._titles([run.id for run in runs])
        return [run_document(run) | {"title": titles.get(run.id, "")} for run in runs]

    async def _titles(self, ids: list[str]) -> Mapping[str, str]:
        if missing := [id for id in ids if id not in self._known]:
            try:
                found = await self._store.runs(lambda runs: {id: title_of(code) for id, code in runs.programs(missing)})
            except StoreError:  # without the key of the store, there are lists, and no programs
                return self._known
            self._known = dict([*self._known.items(), *found.items()][-MAX_KNOWN_TITLES:])
        return self._known


async def with_paths(port: Gloveport, outcome: Outcome, agent: str) -> Outcome:
    """Name the tools of a recorded run as they are called now: the record has what its program wrote."""
    try:
        catalog = await port.catalog_of(agent)
    except OptionError:  # the settings don't have the agent any more
        catalog = port.catalog
    named = ((call, catalog.entry(call.tool)) for call in outcome.calls)
    calls = (call if found is None else replace(call, tool=catalog.path_of(found.tool)) for call, found in named)
    return replace(outcome, calls=tuple(calls))
