"""Goes on with runs in the store: those that were released, and those whose host has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from gloveport.bridge.plans import PlanDraft
from gloveport.errors import GloveportError
from gloveport.host.runs.held_runs import HeldRun, HeldRuns
from gloveport.host.runs.plans import Plans
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_request import OnEvent, RunRequest
from gloveport.store.stored_runs import StoredRun
from gloveport.types import Outcome

logger = logging.getLogger("gloveport")


class DurableRuns:
    """The runs of a port with a store. `run` makes an attempt at one. Without `held`, whoever resumes one waits for it."""

    def __init__(
        self,
        store: PortStore,
        held: HeldRuns | None,
        run: Callable[[RunRequest, HeldRun | None], Coroutine[Any, Any, Outcome]],
        plans: Plans,
    ) -> None:
        self._store = store
        self._held = held
        self._run = run
        self._plans = plans
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_answer = self._answered

    async def resume(self, run: str, agent: str, on_event: OnEvent | None = None) -> Outcome:
        """Return the outcome of an agent's run. If no process runs it, resume it first.

        For a run whose plan was approved, return the outcome of the run that follows it.
        """
        if self._held is not None and (held := self._held.find(run, agent)) is not None:
            if isinstance(held.request.plan, PlanDraft) and (applied := await self._plans.applied(run)) is not None:
                return await self.resume(applied, agent, on_event)
            return await self._held.resume(held)
        stored = await self._store.find(run, agent)
        if stored.request.get("plan") == "draft" and (applied := await self._plans.applied(stored.id)) is not None:
            return await self.resume(applied, agent, on_event)
        if stored.is_final or stored.owned:
            return await self._store.outcome(stored)
        request = replace(await self._request(stored), on_event=on_event)
        if self._held is None:
            return await self._run(request, None)
        # Whoever asks may go away: the run goes on.
        return await self._held.resume(self._begin(self._held, request))

    async def followed(self, run: str, agent: str) -> Outcome | None:
        """Return the end of a run that waits here; None once it is released to the store."""
        if self._held is not None and (ended := await self._held.followed(run, agent)) is not None:
            return ended
        stored = await self._store.find_exactly(run)  # it may have ended in the meantime, with a large outcome
        is_ended = stored is not None and stored.agent == agent and stored.is_final
        return await self._store.outcome(stored) if stored is not None and is_ended else None

    async def attach(self, request: RunRequest) -> Outcome | None:
        """Return the outcome of the same program that waits already; None if none does."""
        run = self._held.same(request) if self._held is not None else None
        if run is None or (await self._store.find(run)).is_final:
            return None
        return await self.resume(run, request.agent)

    async def close(self) -> None:
        """Start no more runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _answered(self, run: str) -> None:
        task = asyncio.ensure_future(self._go_on(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _go_on(self, run: str) -> None:
        """Go on with a run that was released here, because a person has answered."""
        try:
            stored = await self._store.find(run)
            if self._held is not None and not stored.is_final and not stored.owned:
                self._begin(self._held, await self._request(stored))
        except GloveportError as error:
            logger.error("the run %s can't go on: %s", run, error.message)

    async def _request(self, stored: StoredRun) -> RunRequest:
        return await self._plans.of_stored(await self._store.request(stored), stored)

    def _begin(self, held: HeldRuns, request: RunRequest) -> HeldRun:
        return held.begin(request, lambda run: self._run(request, run))
