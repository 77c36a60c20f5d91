"""The plans of a port: kept with its runs, in the store or in memory, until a person approves one."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gloveport.approvals.desk import DEFAULT_EXPIRY_SECONDS, ApprovalDesk
from gloveport.approvals.plan_shelf import PlanShelf, ShelvedPlan, plan_digest, refused
from gloveport.bridge.plans import ApprovedPlan, PlanDraft
from gloveport.errors import OptionError, StoreError
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_request import OnEvent, RunRequest
from gloveport.store.stored_runs import StoredRun
from gloveport.types import Outcome, Plan, RunMode

MAX_PLANS_IN_MEMORY = 100
T = TypeVar("T")


class Plans:
    """The plans of one port. `approve` is for people only: nothing that an agent reaches may call it."""

    def __init__(self, store: PortStore | None, path: Path | None, desk: ApprovalDesk | None) -> None:
        self._store = store
        self._path = path
        self._expiry_seconds = DEFAULT_EXPIRY_SECONDS if desk is None else desk.expiry_seconds
        self._kept: dict[str, tuple[Plan, RunRequest]] = {}

    def begun(self, request: RunRequest, mode: RunMode) -> RunRequest:
        """Return the request for a run in this mode."""
        if mode not in ("run", "plan"):
            raise OptionError(f"mode must be 'run' or 'plan', not {mode!r}")
        if mode == "run":
            return request
        draft = PlanDraft(request.run, request.agent, self._expiry_seconds)
        return replace(request, plan=draft, seed=secrets.token_bytes(32))  # the run that follows the plan gets the same

    async def keep(self, request: RunRequest, outcome: Outcome) -> Outcome:
        """Keep the plan of a run that has ended, for a person to approve."""
        plan = outcome.plan
        if plan is None:
            return outcome
        if self._store is not None:
            try:
                await self._do(lambda shelf: shelf.put(plan))
            except StoreError as error:
                return replace(outcome, warnings=(*outcome.warnings, f"this plan can't be approved: {error.message}"))
            return outcome
        while len(self._kept) >= MAX_PLANS_IN_MEMORY:
            del self._kept[next(iter(self._kept))]
        self._kept[plan.run] = (plan, request)
        return outcome

    async def approve(self, plan: Plan, approver: str, on_event: OnEvent | None) -> RunRequest:
        """Return the request for the run that follows a plan, as its approver has seen it; raise ApprovalError."""
        run = secrets.token_hex(16)
        if self._store is None:
            kept, request = self._kept.get(plan.run, (None, None))
            if kept is None or request is None or plan_digest(kept) != plan_digest(plan) or kept.expires <= time.time():
                raise refused(plan)
            del self._kept[plan.run]
        else:
            request = await self._store.first_request(plan.run)
            await self._do(lambda shelf: shelf.approve(plan, approver, run))
        return replace(request, run=run, on_event=on_event, plan=ApprovedPlan(plan, approver))

    async def of_stored(self, request: RunRequest, stored: StoredRun) -> RunRequest:
        """Return the request for the rest of a stored run, with the plan that it makes or follows."""
        told = stored.request.get("plan")
        if told is None:
            return request
        if told == "draft":
            return replace(request, plan=PlanDraft(stored.id, stored.agent, self._expiry_seconds))
        found = await self.find(told)
        if found is None or found.applied != stored.id:
            raise OptionError(f"the plan that the run {stored.id} follows is gone", code="not-resumable")
        return replace(request, plan=ApprovedPlan(found.plan, found.approver or ""))

    async def find(self, run: str) -> ShelvedPlan | None:
        """Return the plan that a run has made, from the store."""
        return await self._do(lambda shelf: shelf.find(run))

    async def applied(self, run: str) -> str | None:
        """Return the run that follows the plan of a run."""
        found = await self.find(run)
        return None if found is None else found.applied

    async def _do(self, work: Callable[[PlanShelf], T]) -> T:
        def there() -> Any:
            assert self._path is not None
            with closing(PlanShelf(self._path)) as shelf:
                return work(shelf)

        if self._store is not None:
            await self._store.flush()  # whoever finds the plan finds its run
        return await asyncio.to_thread(there)
