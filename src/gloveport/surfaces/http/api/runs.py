"""The endpoints of runs: start one, look at it, list them, cancel one, go on with one."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

from gloveport.errors import CODES, GloveportError, OptionError, StoreError
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.host.port import NO_INPUT, Gloveport
from gloveport.host.runs.held_runs import is_large_outcome
from gloveport.host.runs.past_outcome import past_input, past_outcome
from gloveport.host.runs.run_request import OnEvent
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.packages.package import MAX_PACKAGE_CHARS
from gloveport.sandbox.engines.registry import AUTO, ENGINES, REMOTE_ENGINES
from gloveport.sources.caller import MAX_CALLER_TOOLS, CallerSources, CallerTools
from gloveport.store.stored_runs import StoredRun
from gloveport.surfaces.activity_log import OnActivity, RunActivity
from gloveport.surfaces.agents.tools import with_sign_in
from gloveport.surfaces.documents import outcome_document
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.callback import CALLBACK, Callbacks
from gloveport.surfaces.http.api.endpoint import AGENTS, EVERYBODY, ApiCall, ApiEndpoint, ApiReply, forbidden, no_such
from gloveport.surfaces.http.api.run_events import RunEvents
from gloveport.surfaces.http.api.run_names import RunTitles, titled, with_paths
from gloveport.surfaces.http.api.store_reader import StoreReader, find_run
from gloveport.surfaces.http.token import HOST_ROLES, Caller
from gloveport.surfaces.record_documents import (
    CANCEL_POLL_SECONDS,
    CANCEL_SECONDS,
    begin_cancel,
    not_cancelled,
    since_time,
)
from gloveport.types import DEFAULT_AGENT, MIN_LIMITS, Event, Limits, Outcome, RunStatus
from gloveport.values import to_json

MAX_ENDED_RUNS = 200  # whose outcomes are kept in memory, where they are small
BEGIN_SECONDS = 10.0  # how long a request about a run waits for a run that waits for its turn
BEGIN_POLL_SECONDS = 0.02
LIMIT_TYPES = {one.name: one.type for one in fields(Limits)}
STATUSES: tuple[RunStatus, ...] = ("waiting", "running", "completed", "failed", "cancelled")


def _limit_schema(name: str, kind: Any) -> schemas.Schema:
    whole = {"type": "integer", "minimum": MIN_LIMITS.get(name, 1)}
    return whole if kind == "int" else {"type": "number", "minimum": 0.001}


RUN_OPTIONS: schemas.Schema = {
    "language": {"enum": ["typescript", "javascript", "python"], "default": "typescript"},
    "input": schemas.ANYTHING,
    "limits": {
        "type": "object",
        "properties": {name: _limit_schema(name, kind) for name, kind in LIMIT_TYPES.items()},
        "additionalProperties": False,
    },
    "timeoutMs": {"type": "number", "minimum": 1, "description": "the wall-clock limit, in milliseconds"},
    "engine": {"enum": [*ENGINES, AUTO]},
    "env": {"type": "object", "additionalProperties": schemas.TEXT},
    "allowEval": {**schemas.FLAG, "description": "as the settings have it; never more"},
    "allowWasm": {**schemas.FLAG, "description": "as the settings have it; never more"},
    "logCode": {**schemas.FLAG, "description": "write the program into the server's log"},
    "session": {**schemas.SESSION_NAME, "description": "files and state that runs of the agent share"},
    "onBusy": {"enum": ["wait", "refuse"], "default": "wait", "description": "while another run uses the session"},
    "packages": {
        "type": "array",
        "items": {**schemas.TEXT, "maxLength": MAX_PACKAGE_CHARS, "format": "package"},
        "description": "the only approved packages that the program may import, such as npm:zod",
    },
    "agent": {**schemas.TEXT, "description": "the agent whose run it is; only an admin may name one"},
}
ENGINE_LANGUAGES: list[schemas.Schema] = [
    {
        "if": {"properties": {"engine": {"const": name}}, "required": ["engine"]},
        "then": {"properties": {"language": {"enum": list(engine.languages)}}}
        | ({} if "typescript" in engine.languages else {"required": ["language"]}),
    }
    for name, engine in ENGINES.items()
]
CALLER_TOOLS: schemas.Schema = {
    "type": "array",
    "maxItems": MAX_CALLER_TOOLS,
    "description": "the tools that the caller brings: programs call each as tools.<name>",
    "items": schemas.record(
        {"name": {**schemas.TEXT, "maxLength": 300, "minLength": 1}},
        description=schemas.TEXT,
        inputSchema={"type": "object"},
        outputSchema={"type": "object"},
        readOnly={**schemas.FLAG, "description": "a call may be made again when nobody knows whether it was made"},
        positional={**schemas.FLAG, "description": "it gets the array of the values that the program passed"},
    ),
}
CREATE: schemas.Schema = {
    **schemas.record(
        {"code": schemas.TEXT},
        id=schemas.RUN_NAME,
        mode={"enum": ["run", "plan"], "default": "run"},
        wait={"type": "boolean", "default": True, "description": "false: answer as soon as the run is accepted"},
        tools=CALLER_TOOLS,
        callback=CALLBACK,
        **RUN_OPTIONS,
    ),
    "dependentRequired": {"tools": ["callback"]},
    "allOf": ENGINE_LANGUAGES,
}
_OUTCOME = schemas.ref("Outcome")
_DETAILS = schemas.record(
    {"ok": {"const": True}, "run": schemas.ref("Run"), "code": schemas.TEXT, "outcome": _OUTCOME},
    input={**schemas.ANYTHING, "description": "what the program got as `input`, if it got one"},
)


_Owner = tuple[str, str | None]
# What makes no other run of a request: how it is answered, and how its caller is called.
_SAME_RUN = frozenset({"id", "agent", "wait", "onBusy", "logCode", "callback"})
_DEFAULTS = {"language": "typescript", "mode": "run"}


@dataclass(frozen=True, slots=True)
class _StartedRun:
    """A run that was started here: its agent and the digest of its request, and the task that waits for its outcome.

    `begun` is set when a run with tools of its caller begins: all of its configuration is valid then.
    """

    owner: _Owner
    task: asyncio.Task[Outcome]
    begun: asyncio.Event | None = None

    @property
    def outcome(self) -> Outcome | None:
        """How it has ended, if it has."""
        ended = self.task.done() and not self.task.cancelled() and self.task.exception() is None
        return self.task.result() if ended else None


class RunsApi:
    """The runs of a port, for callers over HTTP. A run goes on when its caller goes away."""

    def __init__(
        self,
        port: Gloveport,
        admission: Admission,
        store: StoreReader,
        callbacks: Callbacks,
        on_activity: OnActivity | None = None,
    ) -> None:
        self._port = port
        self._admission = admission
        self._store = store
        self._started: dict[str, _StartedRun] = {}
        self._titles = RunTitles(store)
        self._flushing: set[asyncio.Task[None]] = set()
        self.events = RunEvents(store)
        self._compilers = DefinitionTasks(port.sandboxes.minimum)
        self.caller_sources = CallerSources(self._compilers)
        self._callbacks = callbacks
        self._on_activity = on_activity

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of runs."""
        filters = {
            "status": {"type": "string", "enum": list(STATUSES)},
            "tool": {**schemas.TEXT, "maxLength": 200},
            "agent": {**schemas.TEXT, "maxLength": 64},
            "search": {**schemas.TEXT, "maxLength": 100},
            "since": schemas.SINCE,
            "limit": schemas.LIMIT,
            "cursor": schemas.CURSOR,
        }
        started = {200: _OUTCOME, 202: _OUTCOME}
        answers = {200: schemas.page("runs", schemas.ref("Run"))}
        return [
            ApiEndpoint("POST", "/v1/runs", AGENTS, "Run a program.", self._create, started, body=CREATE),
            ApiEndpoint("GET", "/v1/runs", EVERYBODY, "List runs, the latest first.", self._list, answers, query=filters),
            ApiEndpoint("GET", "/v1/runs/{run}", EVERYBODY, "Show a run with its outcome.", self._get, {200: _DETAILS}),
            ApiEndpoint("POST", "/v1/runs/{run}/cancel", AGENTS, "End a run.", self._cancel, {200: _OUTCOME}),
            ApiEndpoint("POST", "/v1/runs/{run}/resume", AGENTS, "Go on with a run.", self._resume, started),
            ApiEndpoint(
                "GET",
                "/v1/runs/{run}/events",
                EVERYBODY,
                "Follow a run: server-sent events, which go on after Last-Event-ID.",
                self._follow,
                {200: schemas.TEXT},
                media="text/event-stream",
            ),
        ]

    async def close(self) -> None:
        """End the runs for which callers wait."""
        tasks = [one.task for one in self._started.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._flushing, return_exceptions=True)
        await self._compilers.close()

    # Starting a run.

    async def _create(self, call: ApiCall) -> ApiReply:
        body, agent = call.body, self.agent(call.caller, call.body.get("agent"))
        run = body.get("id") or secrets.token_hex(16)
        options = self.options(agent, body)
        asked = await off_loop_if(call.body_bytes > LARGE_BYTES, _digest_of, body) if "id" in body else None
        owner = agent, asked
        tools, begun = await self._caller_tools(run, call)
        known = await self._stored_owner(run, body["code"], owner) if "id" in body else None
        if run in self._started:  # a request with the same id may have come meanwhile
            known = self._started[run].owner
        if known not in (None, owner):
            raise OptionError(f"there is another run {run!r}", code="run-id-taken", hint="choose another id")
        if known is None:
            running = asyncio.ensure_future(self._run(run, call, {**options, "asked": asked}, tools))
            self._start(run, _StartedRun(owner, running, begun))
        return await self._answer(run, call.caller, wait=body.get("wait", True))

    def agent(self, caller: Caller, given: str | None) -> str:
        """Return the agent of a caller's run; raise GloveportError if the caller may not name the given one."""
        if caller.runs_programs:
            if given not in (None, caller.name):
                raise forbidden(f"an {caller.role} starts runs of its own")
            return caller.name
        try:
            return self._port.agent(given or DEFAULT_AGENT).name
        except OptionError:
            raise no_such("agent", given or DEFAULT_AGENT) from None

    def _limits(self, agent: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the limits of a run; raise OptionError for one above those that the settings have for the agent."""
        given = dict(body.get("limits", {}))
        if "timeoutMs" in body:
            given["wall_seconds"] = body["timeoutMs"] / 1000
        if not given:
            return {}
        allowed = {**{name: getattr(self._port.limits, name) for name in LIMIT_TYPES}, **self._port.agent(agent).limits}
        for name, value in given.items():
            if value > allowed[name]:
                raise forbidden(f"{name} is {value:g}, and the settings allow the agent {agent} {allowed[name]:g}")
        whole = {name: int(value) for name, value in given.items() if value == int(value)}
        return given | whole

    def options(self, agent: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a run as the port takes them; raise GloveportError for what the agent may not have."""
        if (engine := body.get("engine")) in REMOTE_ENGINES and "remote" not in self._port.settings.sandbox:
            raise OptionError(f"the engine {engine} is not here", code="not-found", hint="GET /v1/engines lists them")
        return {
            "language": body.get("language", "typescript"),
            "input": body.get("input", NO_INPUT),
            "limits": self._limits(agent, body),
            "env": body.get("env"),
            "engine": engine,
            "agent": agent,
            "allow_eval": body.get("allowEval"),
            "allow_wasm": body.get("allowWasm"),
            "log_code": body.get("logCode", False),
            "session": body.get("session"),
            "on_busy": body.get("onBusy", "wait"),
            "packages": body.get("packages"),
        }

    async def _caller_tools(self, run: str, call: ApiCall) -> tuple[CallerTools | None, asyncio.Event | None]:
        """Return the tools of a caller with a callback, and the event that their run has begun; None without one."""
        if "callback" not in call.body:
            return None, None
        if call.caller.role not in HOST_ROLES:
            raise forbidden(f"the role {call.caller.role!r} may not bring tools")
        caller = self._callbacks.caller(run, call.body["callback"])
        source = await self.caller_sources.source(call.caller.name, call.body.get("tools", ()))
        begun = asyncio.Event()
        return CallerTools(source, caller.call, lambda _: begun.set(), caller.forget), begun

    async def _run(self, run: str, call: ApiCall, options: Mapping[str, Any], tools: CallerTools | None) -> Outcome:
        body = call.body
        with self._admission.memory() as hold:  # the run may go on without its request
            hold(call.body_bytes)
            return await self._run_logged(
                call.caller, body["code"], mode=body.get("mode", "run"), id=run, tools=tools, **options
            )

    async def _run_logged(self, caller: Caller, code: str, *, on_event: OnEvent | None = None, **options: Any) -> Outcome:
        """Run a program when its caller's turn comes, with a line in the log for each of its calls and for its end."""
        async with self._admission.run_slot(caller.name):
            if self._on_activity is None:
                return await self._port.run(code, on_event=on_event, **options)
            activity = RunActivity(
                caller.name if caller.runs_programs else f"{caller.role} {caller.name}", self._on_activity
            )
            with activity.failing():
                outcome = await self._port.run(code, on_event=_both(activity.on_event, on_event), **options)
            activity.run, error = outcome.run, outcome.error
            activity.ended(outcome.status, error and error.code, error and error.setting)
            return outcome

    async def _stored_owner(self, run: str, code: str, owner: _Owner) -> _Owner | None:
        """Return the agent and the digest of the request of a run in the store; None if there is none.

        Of one that was not started here, the program alone is compared: then the digest is that of `owner`, or None.
        """
        stored = await self._store.runs(lambda runs: find_run(runs, run))
        if stored is None or "asked" in stored.request:
            return None if stored is None else (stored.agent, stored.request["asked"])
        program = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        return stored.agent, owner[1] if stored.request.get("code") == program else None

    def _start(self, run: str, started: _StartedRun) -> None:
        ended = [known for known, one in self._started.items() if one.task.done()]
        for known in ended[:-MAX_ENDED_RUNS]:
            del self._started[known]
        self._started[run] = started
        started.task.add_done_callback(lambda _: self._ended(run, started))

    def _ended(self, run: str, started: _StartedRun) -> None:
        """Leave a large outcome to the store: many of them would not fit into memory."""
        if (outcome := started.outcome) is not None and is_large_outcome(outcome):
            task = asyncio.ensure_future(self._left_to_store(run))
            self._flushing.add(task)
            task.add_done_callback(self._flushing.discard)

    async def _left_to_store(self, run: str) -> None:
        with suppress(StoreError):  # then the store has nothing of it, and says so
            await self._port.flush()
        self._started.pop(run, None)

    async def _answer(self, run: str, caller: Caller, *, wait: bool) -> ApiReply:
        """Return the outcome of a run, or that it goes on."""
        if run not in self._started:
            return ApiReply(await shown_outcome(await self._stored_outcome(await self._find(run, caller)), caller))
        task, begun = self._started[run].task, self._started[run].begun
        if wait:
            await asyncio.wait([task])
        elif begun is not None:
            beginning = asyncio.ensure_future(begun.wait())
            await asyncio.wait([task, beginning], return_when=asyncio.FIRST_COMPLETED)
            beginning.cancel()
        else:
            await asyncio.sleep(0)  # a mistake in the options shows at once
        if not task.done():
            return ApiReply({"ok": True, "run": run, "status": "running"}, 202)
        if task.cancelled():
            raise GloveportError("the server stopped before the run ended", code="stopping", hint=CODES["stopping"].fix)
        outcome = task.result()
        return ApiReply(await shown_outcome(outcome, caller), 202 if outcome.status == "waiting" else 200)

    async def run_hosted(
        self,
        caller: Caller,
        run: str | None,
        code: str,
        tools: CallerTools,
        *,
        on_event: OnEvent | None,
        options: Mapping[str, Any],
    ) -> Outcome:
        """Run a program with the tools of its caller, who waits for it. Cancelling this cancels the run."""
        return await self._run_logged(caller, code, id=run, tools=tools, on_event=on_event, **options)

    async def followed(self, run: str, agent: str) -> Outcome | None:
        """Return the end of a run that waits for a person; None if it is not held here any more."""
        return await self._port.followed(run, agent)

    async def cancel(self, run: str, caller: Caller) -> None:
        """End a run that the caller may see."""
        stored = await self._find(run, caller)
        who, end = f"{caller.role} {caller.name}", time.monotonic() + CANCEL_SECONDS
        is_ended = await self._store.runs(lambda runs: begin_cancel(runs, stored, who))
        while not is_ended:  # here, and not in the thread of the store, which others wait for
            if time.monotonic() > end:
                raise not_cancelled(stored)
            await asyncio.sleep(CANCEL_POLL_SECONDS)
            is_ended = (await self._store.runs(lambda runs: runs.find(stored.id))).is_final

    # Runs that exist.

    async def _list(self, call: ApiCall) -> ApiReply:
        query, limit = call.query, call.query.get("limit", schemas.DEFAULT_PAGE_ROWS)
        agent = call.caller.name if call.caller.runs_programs else query.get("agent")
        before = schemas.from_cursor(query["cursor"], int, str) if "cursor" in query else None
        found = await self._store.runs(
            lambda runs: runs.latest(
                limit=limit + 1,
                statuses=(query["status"],) if "status" in query else (),
                tool=query.get("tool"),
                agent=agent,
                search=query.get("search", ""),
                since=since_time(query.get("since")) / 1e6,
                before=before,
            )
        )
        shown, last = found[:limit], found[limit - 1] if len(found) > limit else None
        rest = None if last is None else schemas.to_cursor(round(last.started * 1e6), last.id)
        return ApiReply({"ok": True, "runs": await self._titles.documents(shown), "next": rest})

    async def _get(self, call: ApiCall) -> ApiReply:
        stored = await self._find(call.path["run"], call.caller)
        code, given = await self._store.runs(lambda runs: (runs.code(stored), past_input(runs, stored)))
        outcome = await shown_outcome(await self._stored_outcome(stored), call.caller)
        if stored.status == "running" and outcome["status"] == "waiting":
            outcome["status"] = "running"  # it waits for nobody
        about = {"ok": True, "run": titled(stored, code), "code": code, "outcome": outcome}
        return ApiReply({**about, "input": to_json(given[0])} if given else about)

    async def _cancel(self, call: ApiCall) -> ApiReply:
        run = call.path["run"]
        await self.cancel(run, call.caller)
        return ApiReply(await shown_outcome(await self._stored_outcome(await self._find(run, call.caller)), call.caller))

    async def _resume(self, call: ApiCall) -> ApiReply:
        stored = await self._find(call.path["run"], call.caller)
        async with self._admission.run_slot(call.caller.name):
            outcome = await self._port.resume(stored.id, agent=stored.agent)
        return ApiReply(await shown_outcome(outcome, call.caller), 202 if outcome.status == "waiting" else 200)

    async def _follow(self, call: ApiCall) -> Any:
        stored = await self._find(call.path["run"], call.caller)
        return self.events.response(stored, call.headers.get("last-event-id", ""))

    async def _find(self, run: str, caller: Caller) -> StoredRun:
        """Return a run that the caller may see. One that belongs to another agent is not there (M11)."""
        stored = await self._stored(run, caller)
        if stored is None or (caller.runs_programs and stored.agent != caller.name):
            raise no_such("run", run)
        return stored

    async def _stored(self, run: str, caller: Caller) -> StoredRun | None:
        """Return a run of the store. One that was accepted here a moment ago may have to begin first."""
        end = time.monotonic() + BEGIN_SECONDS
        while (started := self._started.get(run)) is not None:
            is_foreign = caller.runs_programs and started.owner[0] != caller.name
            waits = not (is_foreign or started.task.done() or time.monotonic() > end)
            await self._port.flush()  # its first steps may not be in the store yet
            stored = await self._store.runs(lambda runs: find_run(runs, run))
            if not waits or (stored is not None and stored.has_begun):
                return stored
            await asyncio.sleep(BEGIN_POLL_SECONDS)
        return await self._store.runs(lambda runs: find_run(runs, run))

    async def found(self, call: ApiCall) -> StoredRun:
        """Return the run of a request's path; raise GloveportError for one that its caller may not see."""
        return await self._find(call.path["run"], call.caller)

    def keep(self, run: StoredRun, task: asyncio.Task[Outcome]) -> None:
        """Keep a run that was started elsewhere, so that it can be followed and ends with the server."""
        self._start(run.id, _StartedRun((run.agent, run.request.get("code", "")), task))

    async def _stored_outcome(self, stored: StoredRun) -> Outcome:
        started = self._started.get(stored.id)
        if started is not None and (outcome := started.outcome) is not None and outcome.status != "waiting":
            return outcome
        return await with_paths(self._port, await self._store.runs(lambda runs: past_outcome(runs, stored)), stored.agent)


def _digest_of(body: Mapping[str, Any]) -> str:
    """Return a digest of what a request asks for. Two requests with the same id and digest start one run."""
    asked = {name: value for name, value in {**_DEFAULTS, **body}.items() if name not in _SAME_RUN}
    if "callback" in body:
        asked["callback"] = body["callback"]["url"]  # its token may be another one
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


async def shown_outcome(outcome: Outcome, caller: Caller) -> dict[str, Any]:
    """Return an outcome as the caller may see it: of what a person could change, agents get how to sign in."""
    return await off_loop_if(is_large_outcome(outcome), _shown, outcome, caller)


def _shown(outcome: Outcome, caller: Caller) -> dict[str, Any]:
    if caller.runs_programs and outcome.error is not None:
        outcome = replace(outcome, error=with_sign_in(outcome.error))
    document: dict[str, Any] = outcome_document(outcome) | {"waiting": list(outcome.waiting)}
    if caller.runs_programs:
        for one in (document["error"], *document["calls"]):
            if one is not None:
                one.pop("setting", None)
    return document


def _both(first: OnEvent, second: OnEvent | None) -> OnEvent:
    if second is None:
        return first
    then = second

    def on_event(event: Event) -> None:
        first(event)
        then(event)

    return on_event
