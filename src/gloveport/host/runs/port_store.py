"""What a port has in the store: the record of its runs, and its requests for approval. The first run opens the file."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

import gloveport
from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.shelf_link import ShelfLink
from gloveport.bridge.plans import ApprovedPlan, PlanDraft
from gloveport.config.store import StoreConfig
from gloveport.errors import OptionError, StoreError
from gloveport.host.approval_notices import ApprovalNotices
from gloveport.host.options import limits_from
from gloveport.host.runs.cancellations import Cancellations
from gloveport.host.runs.held_runs import HeldRun
from gloveport.host.runs.past_outcome import past_outcome
from gloveport.host.runs.run_request import NO_INPUT, ResumedRun, RunRequest
from gloveport.rules.budgets import Budget
from gloveport.rules.labels import LabelledRead
from gloveport.sandbox import wire
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import every_engine, process_options
from gloveport.sandbox.history import RunHistory
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sources.caller import CallerTools
from gloveport.store.agent_uses import BudgetUses, HourlyBudget, LabelledReads
from gloveport.store.contents import digest
from gloveport.store.event_log import EventLog
from gloveport.store.reading import there_is
from gloveport.store.run_audit import RunAudit
from gloveport.store.run_recorder import RunRecorder
from gloveport.store.snippets import Snippet, SnippetStore
from gloveport.store.stored_runs import IMPORTED, StoredRun, StoredRuns
from gloveport.types import Language, Limits, Outcome, Recording

T = TypeVar("T")
NEVER = -1.0
SNIPPETS_SECONDS = 1.0  # after which they are read again
SNIPPETS_DELAY_SECONDS = 0.1  # before that, where no program waits for it
SNIPPET_WORDS = ("snippets", "search")  # one of them is in every program that calls or finds a snippet by its name


logger = logging.getLogger("gloveport")


class PortStore:
    """The store of one port, at a path."""

    def __init__(self, path: Path, notify: str | tuple[str, ...] | None = None, config: StoreConfig | None = None) -> None:
        self.path = path
        self._config = config
        self._is_encrypted = False
        self._notify = notify
        self._notices: ApprovalNotices | None = None
        self._log: EventLog | None = None
        self._link: ShelfLink | None = None
        self._runs: StoredRuns | None = None
        self._snippets: SnippetStore | None = None
        self._found_snippets: tuple[Snippet, ...] | None = None
        self._snippets_read = NEVER
        self._reading_later: asyncio.TimerHandle | None = None
        self._reading: asyncio.Future[None] | None = None
        self._budgets: BudgetUses | None = None
        self._reads: LabelledReads | None = None
        self._cancellations = Cancellations(self._asked_to_cancel)
        self._thread = ThreadPoolExecutor(1, "gloveport-runs")
        self.on_answer: Callable[[str], None] = lambda run: None
        """Called with a run that was released, when a request of it is answered."""

    def open(self, desk: ApprovalDesk | None) -> EventLog:
        """Return the writer. From now on, what waits at the desk can be answered by other processes."""
        if self._log is None:
            self._log = EventLog(self.path, self._config)
            self._log.holds_runs = lambda: self._cancellations.watches
            if desk is not None:
                self._link = ShelfLink(desk, self.path, self._log.chain)
                self._link.on_answer = self.on_answer
                self._notices = ApprovalNotices(desk, self._notify) if self._notify else None
        return self._log

    def released(self, run: str) -> None:
        """Look for answers to the requests of a run that was released."""
        if self._link is not None:
            self._link.release(run)

    async def claim(self, desk: ApprovalDesk | None, request: RunRequest) -> None:
        """Give a new run the id that its caller has chosen; raise OptionError if another one has it."""
        await RunRecorder(self.open(desk), request.run).claim(request.agent, request.language, request.asked)

    async def record(
        self,
        desk: ApprovalDesk | None,
        request: RunRequest,
        held: HeldRun | None,
        run: Callable[[RunRequest], Awaitable[Outcome]],
    ) -> Outcome:
        """Return the outcome of a run, of which start, steps, calls and end are recorded."""
        log = self.open(desk)
        if self._config is not None and self._config.encrypt and not self._is_encrypted:
            await log.flush()  # the file has its key before anything else writes contents
            self._is_encrypted = True
        recorder = RunRecorder(log, request.run) if request.resumed is None else await self._taken(log, request.resumed)
        audit = RunAudit(log, request.run, request.agent, recorder, request.session)
        log.put_off(partial(self._record_start, request, audit, recorder))
        with self._cancellations.watching(request.run) as watched:
            try:
                outcome = await run(replace(request, audit=audit, recorder=recorder))
            except BaseException:
                if held is not None and held.is_released:
                    audit.released()
                    recorder.release()
                    raise
                audit.ended("cancelled", None)
                recorder.ended("cancelled", None, recorder.calls, lambda: b"{}")
                if watched.was_asked:
                    return watched.outcome()
                raise
        if (resumed := request.resumed) is not None and not resumed.history.is_repeated:
            stored = resumed.stored
            await self._do(lambda runs: runs.give_back(stored, log.chain))
            return outcome
        recorder.look_for_obstacle()
        log.put_off(partial(_record_end, outcome, audit, recorder))
        if recorder.obstacle is not None:
            warning = f"{recorder.obstacle}: this run is not in the store"
            return replace(outcome, warnings=(*outcome.warnings, warning))
        return outcome

    def _record_start(self, request: RunRequest, audit: RunAudit, recorder: RunRecorder) -> None:
        self._cancellations.look()
        if request.resumed is not None:
            audit.resumed()
            return
        engine = request.options.engine
        recorder.started(request.agent, request.language, engine, lambda: _request_fields(request))
        audit.started(request.code, request.language, engine)
        if isinstance(plan := request.plan, ApprovedPlan):
            audit.follows_plan(plan.plan.run, plan.digest, plan.approver)

    async def _asked_to_cancel(self) -> dict[str, str]:
        """Return who asked to cancel which runs of this host, by run."""
        if (log := self._log) is None:
            return {}
        return await self._do(lambda runs: runs.asked_to_cancel(log.chain), flush=False)

    async def _taken(self, log: EventLog, resumed: ResumedRun) -> RunRecorder:
        """Take over a run that this host goes on with; raise OptionError if another one does."""
        fence = await self._do(lambda runs: runs.take(resumed.stored, log.chain))
        if fence is None:
            raise OptionError(f"another process goes on with the run {resumed.stored.id}", code="run-taken-over")
        history = resumed.history
        calls = sum(not past.is_sync and past.reply is not None for past in history.calls)
        return RunRecorder(log, resumed.stored.id, fence, len(history.recording.steps), calls)

    # Runs of the past.

    async def find(self, run: str, agent: str | None = None) -> StoredRun:
        """Return a run (of an agent) by its id or the beginning of it; raise OptionError."""
        return await self._do(lambda runs: runs.find(run, agent))

    async def find_exactly(self, run: str) -> StoredRun | None:
        """Return the run of this id; None if there is none."""

        def find(runs: StoredRuns) -> StoredRun | None:
            try:
                found = runs.find(run)
            except OptionError:
                return None
            return found if found.id == run else None  # `find` also takes the beginning of an id

        return await self._do(find)

    async def snippets(self, text: str | None = None) -> tuple[Snippet, ...] | None:
        """Return the snippets in the store; None if they are those that were returned before.

        They are read when the last reading is a moment ago. A program with a text that does not speak of them does not
        wait for that: it may reach those that were known before.
        """
        now = time.monotonic()
        if now >= self._snippets_read + SNIPPETS_SECONDS:
            waits = self._snippets_read == NEVER or text is None or any(word in text for word in SNIPPET_WORDS)
            self._snippets_read = now
            if waits:
                await self._read_snippets()
            else:
                self._reading_later = asyncio.get_running_loop().call_later(
                    SNIPPETS_DELAY_SECONDS, self._read_snippets_soon
                )
        found, self._found_snippets = self._found_snippets, None
        return found

    def _read_snippets_soon(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_snippets())

    async def _read_snippets(self) -> None:
        def read() -> tuple[Snippet, ...]:
            if self._snippets is None:
                if not there_is(self.path):
                    return ()
                self._snippets = SnippetStore(self.path)
            return tuple(one.snippet for one in self._snippets.all())

        try:
            self._found_snippets = await asyncio.get_running_loop().run_in_executor(self._thread, read)
        except StoreError as error:  # programs that call none must go on
            logger.warning("snippets can't be read: %s", error.message)

    async def take_hourly(self, budgets: Sequence[Budget], agent: str) -> Budget | None:
        """Count a call of an agent in budgets of calls in an hour. Return one that has nothing left; then count nothing."""
        wanted = {HourlyBudget(str(one), agent, one.calls_per_hour or 0): one for one in budgets}

        def take() -> HourlyBudget | None:
            if self._budgets is None:
                self._budgets = BudgetUses(self.path)
            return self._budgets.take(tuple(wanted))

        used_up = await asyncio.get_running_loop().run_in_executor(self._thread, take)
        return None if used_up is None else wanted[used_up]

    async def reads_of(self, agent: str, since: float) -> list[LabelledRead]:
        """Return the private and untrusted reads of an agent since a time, on all hosts."""
        return await self._read(lambda reads: reads.of(agent, since))

    async def reads_of_session(self, agent: str, session: str) -> list[LabelledRead]:
        """Return the private and untrusted reads of the runs of a session, on all hosts."""
        return await self._read(lambda reads: reads.of_session(agent, session))

    async def _read(self, work: Callable[[LabelledReads], list[LabelledRead]]) -> list[LabelledRead]:
        def read() -> list[LabelledRead]:
            if self._reads is None:
                if not there_is(self.path):
                    return []
                self._reads = LabelledReads(self.path)
            return work(self._reads)

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)

    async def recording(self, run: str) -> Recording:
        """Return the steps of a run; raise OptionError if there are none."""
        stored = await self.find(run)
        found = await self._do(lambda runs: runs.recording(stored))
        if not found.steps:
            raise OptionError(f"there is no recording of the run {run[:40]!r}", code="not-resumable")
        return found

    async def history(self, run: StoredRun) -> RunHistory:
        """Return what a run has done; raise OptionError if that is not kept."""
        if "session" in run.request and "snapshot" not in run.request:  # of an earlier version
            raise OptionError(f"the files that the run {run.id} has found are not kept", code="not-resumable")
        if run.obstacle == IMPORTED:
            raise OptionError(f"the run {run.id} was imported: it can be shown and replayed", code="not-resumable")
        if run.obstacle is not None:
            raise OptionError(f"not all of the run {run.id} was recorded", code=run.obstacle)
        return await self._do(lambda runs: RunHistory.of(runs.recording(run)))

    async def request(self, run: StoredRun) -> RunRequest:
        """Return what it takes to go on with a run; raise OptionError if it can't be resumed."""
        resumed = ResumedRun(run, await self.history(run))
        if not resumed.history.recording.steps:
            await self._do(lambda runs: runs.cancel(run))
            hint = "it has made no call: run the program again"
            raise OptionError(f"the run {run.id} had not begun when its host ended", hint=hint, code="not-resumable")
        return replace(await self._request(run), resumed=resumed)

    async def first_request(self, id: str) -> RunRequest:
        """Return what it takes to run the program of a run anew, with the same input and seed; raise OptionError."""
        steps = (await self.recording(id)).steps
        start = wire.decode(steps[0][1])[2]
        seed, given = base64.b64decode(start["seed"]), start["input"] if start["has_input"] else NO_INPUT
        return replace(await self._request(await self.find(id)), input=given, env=start["env"], seed=seed)

    async def _request(self, run: StoredRun) -> RunRequest:
        given = run.request
        limits = limits_from(Limits(), given["limits"])
        language = cast("Language", run.language)
        workspace = WorkspaceQuota(*given["workspace"]) if "workspace" in given else None
        wanted = ProcessOptions(run.engine, given["allow_eval"], given["allow_wasm"], limits.memory_mb, workspace)
        return RunRequest(
            run=run.id,
            code=await self._do(lambda runs: runs.code(run)),
            language=language,
            options=process_options(language, run.engine, wanted, every_engine()),
            any_engine=False,
            input=NO_INPUT,
            limits=limits,
            env={},
            on_event=None,
            agent=run.agent,
            tools=CallerTools.stored(given["caller_tools"]) if "caller_tools" in given else None,
            session=given.get("session"),
            packages=frozenset(given["packages"]) if "packages" in given else None,
        )

    async def outcome(self, run: StoredRun) -> Outcome:
        """Return the outcome of a run that has ended, or waits."""
        return await self._do(lambda runs: past_outcome(runs, run))

    async def flush(self) -> None:
        """Write what is queued: other processes may look for it. Read the snippets anew when they are asked for next."""
        self._snippets_read = NEVER
        if self._log is not None:
            await self._log.flush()

    async def _do(self, work: Callable[[StoredRuns], T], *, flush: bool = True) -> T:
        def there() -> T:
            if self._runs is None:
                self._runs = StoredRuns(self.path)
            return work(self._runs)

        if flush:
            await self.flush()
        return await asyncio.get_running_loop().run_in_executor(self._thread, there)

    async def close(self) -> None:
        """Write what is left, and close the file."""
        self._cancellations.close()
        if self._reading_later is not None:
            self._reading_later.cancel()
        if self._reading is not None:
            await self._reading
        log, link, self._log, self._link = self._log, self._link, None, None
        if self._notices is not None:
            await self._notices.close()
        if link is not None:
            await link.close()
        if log is not None:
            await log.close()
        opened = self._runs, self._snippets, self._budgets, self._reads
        self._runs = self._snippets = self._budgets = self._reads = None
        for file in opened:
            if file is not None:
                file.close()
        self._thread.shutdown(wait=False)


def _record_end(outcome: Outcome, audit: RunAudit, recorder: RunRecorder) -> None:
    error = outcome.error.code if outcome.error is not None else None
    audit.ended(outcome.status, error)
    told = {"error": outcome.error, "usage": outcome.usage, "warnings": outcome.warnings}  # the rest may be large
    recorder.ended(_final(outcome), error, len(outcome.calls), lambda: msgspec.json.encode(told, enc_hook=str))


def _request_fields(request: RunRequest) -> dict[str, Any]:
    options = request.options
    return {
        "code": digest(request.code.encode("utf-8", "surrogatepass")).hex(),
        "limits": asdict(request.limits),
        "allow_eval": options.allow_eval,
        "allow_wasm": options.allow_wasm,
        "memory_mb": request.limits.memory_mb,
        "version": gloveport.__version__,
        **({} if request.asked is None else {"asked": request.asked}),
        **_session_fields(request),
        **({} if request.packages is None else {"packages": sorted(request.packages)}),
        **({} if request.tools is None else {"caller_tools": request.tools.source.stored}),
        **_plan_fields(request.plan),
    }


def _session_fields(request: RunRequest) -> dict[str, Any]:
    """Return the session of a run, what it held at the start of the run, and its quota."""
    used, quota = request.used_session, request.options.workspace
    if used is None or quota is None:
        return {}
    return {
        "session": request.session,
        "snapshot": used.snapshot,
        "workspace": astuple(quota),
    }


def _plan_fields(plan: PlanDraft | ApprovedPlan | None) -> dict[str, str]:
    """Return whether a run makes a plan (`draft`), or the run whose plan it follows."""
    if plan is None:
        return {}
    return {"plan": "draft" if isinstance(plan, PlanDraft) else plan.plan.run}


def _final(outcome: Outcome) -> Any:
    return outcome.status if outcome.status != "waiting" else "failed"
