"""Undoes the writes of a run in reverse order, with the inverses that their tools declare. The current rules decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any

from gloveport.approvals.desk import ApprovalDesk
from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.errors import OptionError, ToolError
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_request import OnEvent
from gloveport.host.runs.snippet_calls import snippet_run
from gloveport.host.source_set import SourceSet
from gloveport.sandbox.history import PastCall
from gloveport.sources.inverses import inverse_arguments
from gloveport.store.event_log import EventLog
from gloveport.store.run_audit import RunAudit
from gloveport.store.snippets import SOURCE
from gloveport.store.stored_runs import StoredRun
from gloveport.store.undo_record import Attempt, SentWrite, UndoGuard, UndoRecords
from gloveport.types import Event, Limits, ToolCall
from gloveport.undo import Rollback, UndoneWrite

UNKNOWN = "nobody knows whether it was made"


class RunUndo:
    """Undoes runs that have ended. `bridge_of` returns the bridge of an agent."""

    def __init__(
        self,
        store: PortStore,
        desk: ApprovalDesk | None,
        sources: SourceSet,
        bridge_of: Callable[[str], Awaitable[Bridge]],
    ) -> None:
        self._store = store
        self._desk = desk
        self._sources = sources
        self._bridge_of = bridge_of

    async def undo(self, id: str, limits: Limits, on_event: OnEvent | None) -> Rollback:
        """Undo the writes of a run, the last one first; each at most once, also after a crash in the middle of it.

        Those of the snippets that it has called are among them.
        """
        run = await self._store.find(id)
        if not run.is_final:
            hint = "cancel it first: `gloveport runs cancel`"
            raise OptionError(f"the run {run.id} has not ended", code="run-unfinished", hint=hint)
        await self._sources.open()
        log = self._store.open(self._desk)
        async with self._alone(run, log):
            return await self._undo_all(run, log, limits, on_event)

    @asynccontextmanager
    async def _alone(self, run: StoredRun, log: EventLog) -> AsyncIterator[None]:
        """Keep other rollbacks of a run away: what another one has begun must not look like what a dead one has left."""
        with closing(UndoRecords(self._store.path)) as records:
            if not await asyncio.to_thread(records.begin, run.id, log.chain):
                raise OptionError(f"the run {run.id} is being rolled back", hint="wait for that rollback to end")
            try:
                yield
            finally:
                await asyncio.to_thread(records.end, run.id, log.chain)

    async def _undo_all(self, run: StoredRun, log: EventLog, limits: Limits, on_event: OnEvent | None) -> Rollback:
        history = await self._store.history(run)
        sent, attempts = await asyncio.to_thread(self._read, run)
        guard = UndoGuard(log, run.id, attempts)
        name = f"{run.id}-undo"

        def told(kind: Any, record: Any) -> None:
            if on_event is not None:
                on_event(Event(kind, name, call=record))

        audit = RunAudit(log, name, run.agent, guard)
        audit.rolls_back(run.id)
        calls = (await self._bridge_of(run.agent)).for_run(limits, RunContext(name, on_call=told, audit=audit))
        writes: list[UndoneWrite] = []
        try:
            for past in reversed(history.calls):
                below = snippet_run(run.id, past.call.id) if past.call.name.startswith(f"{SOURCE}.") else None
                if below is not None and await self._store.find_exactly(below) is not None:
                    writes += (await self.undo(below, limits, on_event)).writes
                elif past.left:
                    writes.append(await self._undo(calls, past, sent.get(past.call.id), attempts, guard))
        finally:
            calls.close()
            await log.flush()
        return Rollback(run.id, tuple(writes))

    async def _undo(
        self,
        calls: RunBridge,
        past: PastCall,
        sent: SentWrite | None,
        attempts: Mapping[int, Attempt],
        guard: UndoGuard,
    ) -> UndoneWrite:
        id = past.call.id
        address, args = (past.call.name, past.call.args) if sent is None else (sent.tool, sent.args)
        attempt = attempts.get(id, Attempt())
        if attempt.state == "done":
            return UndoneWrite(id, address, args, "undone-before")
        if past.reply is None or past.reply[0] is not True:
            failed = "" if past.reply is None else "it failed, and "
            return UndoneWrite(id, address, args, "unknown", problem=f"{failed}{UNKNOWN}")
        undo = self._sources.inverse_of(address)
        if undo is None:
            return UndoneWrite(id, address, args, "no-inverse", problem="its tool declares no inverse")
        if sent is None or not sent.has_args:
            return UndoneWrite(id, address, args, "no-inverse", undo.tool, problem="its arguments are not in the store")
        try:
            wanted = inverse_arguments(undo, args, past.reply[1])
        except LookupError as error:
            problem = f"{error.args[0]} is not there, which its inverse needs"
            return UndoneWrite(id, address, args, "no-inverse", undo.tool, problem=problem)
        call = ToolCall(id, undo.tool, [wanted])
        try:
            # One that has left an earlier host is made again only if a person says so.
            await calls.call_again(PastCall(call, 0, left=attempt.state == "started"))
        except ToolError as error:
            status = "failed"
            if error.code in ("denied", "outcome-unknown") and error.origin == "gloveport":
                status = "denied" if error.code == "denied" else "unknown"
            elif error.status is not None and 400 <= error.status < 500:  # after any other error it may have been made
                guard.ended(id, "failed")
            return UndoneWrite(id, address, args, status, undo.tool, wanted, error.message)
        guard.ended(id, "done")
        return UndoneWrite(id, address, args, "undone", undo.tool, wanted)

    def _read(self, run: StoredRun) -> tuple[dict[int, SentWrite], dict[int, Attempt]]:
        with closing(UndoRecords(self._store.path)) as records:
            return records.sent(run), records.attempts(run.id)
