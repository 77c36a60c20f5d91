"""The endpoints of what can be done with a run that was recorded: replay it, undo it, apply its plan, take it out."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from gloveport.approvals.plan_shelf import ShelvedPlan
from gloveport.errors import CODES, ApprovalError, GloveportError, OptionError
from gloveport.host.port import Gloveport
from gloveport.host.runs.run_file import exported
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ADMINS, AGENTS, EVERYBODY, PEOPLE, ApiCall, ApiEndpoint, ApiReply
from gloveport.surfaces.http.api.runs import RunsApi, shown_outcome
from gloveport.surfaces.http.api.store_reader import StoreReader, find_run
from gloveport.surfaces.record_documents import rollback_document
from gloveport.types import Outcome, Plan

POLL_SECONDS = 0.02
_UNDONE = schemas.record({"ok": schemas.FLAG, "run": schemas.TEXT, "writes": schemas.rows({"type": "object"})})
_APPLY = schemas.record({}, wait={"type": "boolean", "default": True, "description": "false: answer when the run begins"})


class PastRunsApi:
    """Recorded runs. Whoever may not see one finds none here either."""

    def __init__(self, port: Gloveport, admission: Admission, store: StoreReader, runs: RunsApi) -> None:
        self._port = port
        self._admission = admission
        self._store = store
        self._runs = runs

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of recorded runs."""
        path, empty = "/v1/runs/{run}", schemas.record({})
        replayed = {200: schemas.found(run=schemas.TEXT, difference=schemas.OPTIONAL_TEXT)}
        undone, applied = {200: _UNDONE}, {200: schemas.ref("Outcome"), 202: schemas.ref("Outcome")}
        file = {200: {"type": "object"}}
        return [
            ApiEndpoint("POST", f"{path}/replay", AGENTS, "Run it again as recorded.", self._replay, replayed, body=empty),
            ApiEndpoint("POST", f"{path}/rollback", ADMINS, "Undo its writes.", self._rollback, undone, body=empty),
            ApiEndpoint("POST", f"{path}/apply", PEOPLE, "Approve its plan and run it.", self._apply, applied, body=_APPLY),
            ApiEndpoint("GET", f"{path}/export", EVERYBODY, "Export it as a file.", self._export, file),
        ]

    async def _replay(self, call: ApiCall) -> ApiReply:
        stored = await self._runs.found(call)
        async with self._admission.run_slot(call.caller.name):
            found = await self._port.replay(stored.id)
        if found is not None and found.fatal:
            message = f"the run does something else than recorded: {found}"
            raise GloveportError(message, code="replay-diverged", hint=CODES["replay-diverged"].fix)
        return ApiReply({"ok": True, "run": stored.id, "difference": None if found is None else str(found)})

    async def _rollback(self, call: ApiCall) -> ApiReply:
        stored = await self._runs.found(call)
        return ApiReply(rollback_document(await self._port.rollback(stored.id)))

    async def _apply(self, call: ApiCall) -> ApiReply:
        stored = await self._runs.found(call)
        shelved = await self._store.plans(lambda shelf: shelf.find(stored.id))
        plan = _usable(stored.id, shelved)
        task = asyncio.ensure_future(self._follow(plan, call.caller.name))
        run = await self._begun(plan, task)
        if call.body.get("wait", True) or run is None:
            outcome = await asyncio.shield(task)
            return ApiReply(await shown_outcome(outcome, call.caller), 202 if outcome.status == "waiting" else 200)
        return ApiReply({"ok": True, "run": run, "status": "running"}, 202)

    async def _follow(self, plan: Plan, approver: str) -> Outcome:
        async with self._admission.run_slot(approver):
            return await self._port.apply(plan, approver=approver)

    async def _begun(self, plan: Plan, task: asyncio.Task[Outcome]) -> str | None:
        """Wait until the run that follows a plan is there, and return its id; None if it ended before."""
        while not task.done():
            await asyncio.wait([task], timeout=POLL_SECONDS)
            shelved = await self._store.plans(lambda shelf: shelf.find(plan.run))
            if shelved is None or (id := shelved.applied) is None:
                continue
            await self._port.flush()
            found = await self._store.runs(lambda runs, id=id: find_run(runs, id))
            if found is not None:
                self._runs.keep(found, task)
                return id
        return None

    async def _export(self, call: ApiCall) -> Response:
        stored = await self._runs.found(call)
        await self._port.flush()
        content = await self._store.runs(lambda runs: exported(runs, stored))
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        headers["Content-Disposition"] = f'attachment; filename="{stored.id}.json"'
        return Response(content, 200, headers, "application/json")


def _usable(run: str, found: ShelvedPlan | None) -> Plan:
    if found is None:
        raise OptionError(f"the run {run[:12]} has made no plan", code="not-found", hint='start one with `"mode": "plan"`')
    if found.applied is not None:
        raise ApprovalError(f"the plan of {run[:12]} was used already", hint=f"the run that followed it is {found.applied}")
    return found.plan
