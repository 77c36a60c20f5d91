"""`Gloveport`: wires prepare, sandbox and bridge together. It is the only module that knows all of them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gloveport.approvals.desk import ApprovalDesk, OnApproval
from gloveport.bridge import Bridge
from gloveport.bridge.hints import is_name_error, with_hint
from gloveport.catalog import Catalog
from gloveport.config import AgentConfig, Config, config_from
from gloveport.errors import CODES, GloveportError, OptionError, ProgramError, WorkspaceError
from gloveport.host.engine_pools import EnginePools
from gloveport.host.event_loop import PortLoop
from gloveport.host.failures import error_data, failure, program_failure, unprepared_failure
from gloveport.host.governance import Governance, RulesArgument, desk_from
from gloveport.host.options import check_busy, check_run, env_from, flags_from, limits_from, spare_from, strength_from
from gloveport.host.packages.python_packages import checked_names
from gloveport.host.plugins import PluginArgument, port_plugins
from gloveport.host.program_checks import ProgramChecks, ProgramProblem
from gloveport.host.program_imports import ProgramImports
from gloveport.host.program_reader import ProgramReader
from gloveport.host.runs.attempt import attempt, preparable
from gloveport.host.runs.durable_runs import DurableRuns
from gloveport.host.runs.engine_choice import ReadProgram, choose_engine
from gloveport.host.runs.held_runs import HeldRun, HeldRuns, run_to_end
from gloveport.host.runs.live_reads import replay_run
from gloveport.host.runs.new_requests import NewRequests
from gloveport.host.runs.observers import RunObservers
from gloveport.host.runs.plans import Plans
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.rollback import RunUndo
from gloveport.host.runs.run_request import NO_INPUT, OnEvent, RunRequest, closed_outcome
from gloveport.host.runs.single_calls import SingleCalls
from gloveport.host.runs.snippet_calls import SnippetRunner
from gloveport.host.sandbox_host import SandboxLender, connector
from gloveport.host.sessions.agent_session import AgentSession
from gloveport.host.sessions.contents import SessionKey
from gloveport.host.sessions.sessions import Sessions
from gloveport.host.source_set import SourceArgument, SourceSet
from gloveport.host.type_check import TypeChecks
from gloveport.large_values import off_loop, off_loop_if
from gloveport.rules.rules import Rules
from gloveport.sandbox.engines.registry import preferred_engines
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sources import OpenedSource
from gloveport.sources.caller import CallerTools
from gloveport.sources.functions import functions
from gloveport.types import (
    DEFAULT_AGENT,
    Divergence,
    Language,
    Limits,
    Outcome,
    Plan,
    Problem,
    Program,
    Recording,
    RunMode,
    Strength,
    Tool,
)
from gloveport.undo import Rollback

logger = logging.getLogger("gloveport")
program_logger = logging.getLogger("gloveport.programs")  # of its own, so that a server can show programs and no more
WARMING_DELAY_SECONDS = 0.25  # a port that is closed before need not start the other engines


class Gloveport:
    """Runs programs that agents wrote in sealed sandboxes, with these tools. Use it with `async with` or `with`."""

    def __init__(
        self,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        sources: Iterable[SourceArgument] = (),
        config: Config | str | os.PathLike[str] | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        allow_eval: bool = False,
        allow_wasm: bool = False,
        log_code: bool = False,
        check_types: bool = False,
        minimum: Strength | None = None,
        spare: int | None = None,
        engines: Sequence[str] | None = None,
        rules: RulesArgument | None = None,
        on_approval: OnApproval | None = None,
        store: str | os.PathLike[str] | None = None,
        plugins: Iterable[PluginArgument] = (),
    ) -> None:
        settings = config_from(config)
        self._plugins = port_plugins((*settings.plugins, *plugins))
        self._run = partial(self._plugins.around, self._run_once)
        extensions, check_call = self._plugins.extensions, self._plugins.check_call
        flags = flags_from(settings.sandbox, allow_eval=allow_eval, allow_wasm=allow_wasm)
        flags_from({}, log_code=log_code, check_types=check_types)
        self.limits = limits_from(limits_from(Limits(), settings.limits), limits)
        self._minimum: Strength = strength_from(settings.sandbox.get("minimum", "kernel") if minimum is None else minimum)
        self._sources = SourceSet(functions(tools), (*settings.sources, *sources), self._minimum, settings, extensions)
        self._sources.on_change = self._connect
        self.on_change: Callable[[], None] = lambda: None  # called when the catalog has changed
        self.observers = RunObservers()
        governance = settings.governance
        path = self.store_path = governance.store if store is None else Path(store)
        self._store = None if path is None else PortStore(path, governance.notify, governance.store_config)
        self._desk = desk_from(settings, on_approval, path)
        self._governance = Governance(settings, rules, self._desk, self._store, check_call=check_call)
        self._governance.connect(self._sources.catalog, self._sources.writes, self._sources.labels)
        self.flow = self._governance.flow  # the labels of the tools, and what the agents have read
        self._held: HeldRuns | None = None
        if self._desk is not None and self._store is not None and on_approval is None:
            self._held = HeldRuns(self._desk, governance.hold_seconds, self._store.released)
        self._plans = Plans(self._store, path, self._desk)
        self._durable = DurableRuns(self._store, self._held, self._run, self._plans) if self._store is not None else None
        self._log_code = log_code
        connect = connector(settings.sandbox)
        self._pools = EnginePools(self._minimum, spare_from(spare), **flags, connect=connect, engines=extensions.engines)
        self.sandboxes = SandboxLender(self._pools, self.limits)  # for other hosts
        runs = self._run, self._pools.options, self._opened_bridge
        self._snippets = None if self._store is None else SnippetRunner(self._store, *runs)
        self._single_calls = SingleCalls(self._governance, self._store, self._sources, self._bridge, self._snippets)
        wanted = settings.sandbox.get("engines", ()) if engines is None else engines
        self.engines = preferred_engines(wanted, extensions.engines)
        self._sessions = Sessions(self._store, self._desk, settings, self.flow.forget_session)
        self._requests = NewRequests(self._pools, self._governance, self._sessions, self.limits, self.engines)
        self.imports = ProgramImports(self._minimum, settings.packages, lambda agent: self.agent(agent).packages)
        self._programs = ProgramReader(self._minimum, self.imports.importable)
        self._types = TypeChecks(self._minimum, self._programs) if check_types else None
        self._loop, self._closed = PortLoop(self._loop_closed), False
        self._warming: asyncio.TimerHandle | None = None

    @property
    def catalog(self) -> Catalog:
        """What programs can call now. A source is in it once it is open."""
        return self._sources.catalog

    def agent(self, name: str) -> AgentConfig:
        """Return the settings of an agent; raise OptionError for one that they don't name."""
        return self._governance.agent(name)

    async def catalog_of(self, agent: str) -> Catalog:
        """Return what the programs of an agent can call now."""
        return (await self._loop.run(lambda: self._bridge(agent))).catalog

    @property
    def settings(self) -> Config:
        """The settings as their files state them now."""
        return self._governance.settings

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The sources that could not be opened, and warnings about the others."""
        return self._sources.problems

    @property
    def opening(self) -> tuple[str, ...]:
        """The names of the sources that are being opened now."""
        return self._sources.opening_now

    def opened_source(self, name: str) -> OpenedSource | None:
        """Return the open source of this name with the facts about it; None when there is none in the catalog."""
        return self._sources.opened(name)

    def _connect(self, catalog: Catalog) -> None:
        self._governance.connect(catalog, self._sources.writes, self._sources.labels)
        self.on_change()

    async def _bridge(self, agent: str, text: str | None = None) -> Bridge:
        """Return the bridge of an agent (for a program). A catalog of a part of the tools is built in a thread."""
        if self._store is not None and (snippets := await self._store.snippets(text)) is not None:
            self._governance.use_snippets(snippets)
        return await off_loop_if(self._governance.is_slow(agent), self._governance.bridge, agent)

    async def _bridge_of(self, request: RunRequest) -> Bridge:
        """Return the bridge of a run: that of its agent, with the tools that plugins add and its caller brings."""
        bridge = await self._bridge(request.agent, request.code)
        bridge = await bridge.with_added(request.added_sources) if request.added_sources else bridge
        return bridge if request.tools is None else await bridge.with_caller(request.tools.source)

    async def _catalog_of(self, request: RunRequest) -> Catalog | None:
        """Return what a run can call now; None once the port is closed."""
        return None if self._closed else (await self._bridge_of(request)).catalog

    async def _opened_bridge(self, agent: str, naming: str) -> Bridge:
        await self._sources.open(naming=naming)
        return await self._bridge(agent)

    @property
    def rules(self) -> Rules:
        """The rules that are in force now. Setting others puts those in force, from the next call on."""
        return self._governance.book.rules

    @rules.setter
    def rules(self, rules: Rules) -> None:
        self._governance.book.replace(rules)

    @property
    def approvals(self) -> ApprovalDesk:
        """The calls that wait for a person, and their answers. Nothing that an agent reaches may use it."""
        if self._desk is None:
            raise OptionError("nobody can be asked here", hint="pass on_approval= or store= to Gloveport")
        return self._desk

    async def run(
        self,
        code: str,
        *,
        language: Language = "typescript",
        input: Any = NO_INPUT,
        limits: Limits | Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        engine: str | None = None,
        on_event: OnEvent | None = None,
        agent: str = DEFAULT_AGENT,
        attach: bool = False,
        mode: RunMode = "run",
        id: str | None = None,
        asked: str | None = None,
        tools: CallerTools | None = None,
        session: str | None = None,
        on_busy: Literal["wait", "refuse"] = "wait",
        packages: Iterable[str] | None = None,
        allow_eval: bool | None = None,
        allow_wasm: bool | None = None,
        log_code: bool = False,
    ) -> Outcome:
        """Run a program and return its outcome. It never raises for what the program did. Cancelling it cancels the run.

        The outcome is `waiting` when the run waits for a person who answers elsewhere; `resume` returns the next one. With
        `attach`, the same program of the same agent is not started again while it waits. With the mode `plan`, writes are
        held back, and the outcome has a plan. `id` is that of the run: raises OptionError if the store has one with it.
        `session` names files and state that runs of this agent share; `on_busy` says what to do while another run uses it.
        `tools` are those of the caller, `asked` a digest of its request. `packages` and `allow_…` only lessen the port's.
        """
        check_run(code, language, id)
        given: dict[str, Any] = {"agent": agent, "engine": engine, "limits": limits, "session": session}
        given |= {"allow_eval": allow_eval, "allow_wasm": allow_wasm}
        given |= {"input": input, "env": env_from(env), "on_event": on_event, "tools": tools, "log_code": log_code}
        given |= {"waits_for_session": check_busy(on_busy), "packages": checked_names(packages, "packages"), "asked": asked}
        request = self._requests.request(id or secrets.token_hex(16), code, language, **given)
        request = self._plans.begun(request, mode)
        self._check_open()
        return await self._loop.run(lambda: self._begin(request, attach=attach, is_named=id is not None))

    def session(self, name: str, *, agent: str = DEFAULT_AGENT) -> AgentSession:
        """Return a session of an agent, to put files into it and take files out."""
        self._governance.agent(agent)
        return AgentSession(self._sessions, SessionKey.of(agent, name), self._loop.run)

    async def warm(self) -> None:
        """Run an empty program, and record nothing of it: the first type check takes seconds."""
        await self._loop.run(lambda: self._run_program(self._requests.unrecorded("", "typescript", DEFAULT_AGENT), None))

    async def check(self, code: str, language: Language, agent: str) -> tuple[ProgramProblem, ...]:
        """Return what is wrong with a program of an agent, as far as that shows before it runs."""
        check_run(code, language, None)
        self._check_open()
        checks = ProgramChecks(self._programs, self._types, self._sources, self._catalog_of)
        return await self._loop.run(lambda: checks.problems(self._requests.unrecorded(code, language, agent)))

    async def apply(self, plan: Plan, *, approver: str = "owner", on_event: OnEvent | None = None) -> Outcome:
        """Run the program of a plan anew, with exactly the writes of the plan approved; any other write asks.

        A plan is used once, as it was made; otherwise this raises ApprovalError. Nothing that an agent reaches may call it.
        """
        self._check_open()

        async def follow() -> Outcome:
            return await self._begin(await self._plans.approve(plan, approver, on_event), attach=False)

        return await self._loop.run(follow)

    async def _begin(self, request: RunRequest, *, attach: bool, is_named: bool = False) -> Outcome:
        if request.tools is not None:
            await self._bridge_of(request)  # raises OptionError for tools that do not fit in
        if attach and self._durable is not None and (found := await self._durable.attach(request)) is not None:
            return found
        if is_named and self._store is not None:
            await self._store.claim(self._desk, request)
        if request.tools is not None:
            request.tools.on_start(request.run)
        run = partial(run_to_end, request, self._run)
        return await (run(None) if self._held is None else self._held.start(request, run))

    @property
    def holds_runs(self) -> bool:
        """Whether a run goes on while it waits for a person: then `run` returns `waiting`."""
        return self._held is not None

    async def resume(self, run: str, *, agent: str = DEFAULT_AGENT, on_event: OnEvent | None = None) -> Outcome:
        """Return the outcome of a run, or `waiting`. It never answers what is asked.

        A run in the store that no process runs any more goes on: its recorded part is repeated without calling a tool.
        `on_event` gets what happens then.
        """
        self._check_open()
        if (durable := self._durable) is None:
            raise OptionError(f"no run {run[:40]!r} waits here", hint="runs are kept with store=")
        return await self._loop.run(lambda: durable.resume(run, agent, on_event))

    async def followed(self, run: str, agent: str) -> Outcome | None:
        """Return the end of a run that waits for a person here; None once it is released to the store."""
        durable = self._durable
        return None if durable is None else await self._loop.run(lambda: durable.followed(run, agent))

    def run_sync(self, code: str, **options: Any) -> Outcome:
        """Run a program, for callers without an event loop. It takes the same options as `run`."""
        self._check_open()
        self._loop.close_at_exit(self)
        return self._loop.block(lambda: self.run(code, **options))

    async def _run_once(self, request: RunRequest, held: HeldRun | None) -> Outcome:
        if self._closed:  # since `run` was called
            return closed_outcome(request)
        request, read = await choose_engine(request, self._read, self._pools)
        run = partial(self.observers.watch, partial(self._run_program, held=held, read=read))
        try:
            async with self._sessions.use(request, held) as used:
                outcome = await (self._store.record(self._desk, used, held, run) if self._store else run(used))
        except WorkspaceError as error:
            return Outcome(request.run, "failed", error=unprepared_failure(error), engine=request.options.engine)
        finally:
            if self._desk is not None and (held is None or not held.is_released):
                self._desk.end_run(request.run)
        named = outcome if outcome.engine is not None else replace(outcome, engine=request.options.engine)
        return await self._plans.keep(request, named)

    async def _read(self, request: RunRequest) -> tuple[Program, bool]:
        return await self._programs.prepare_run(request, self._sources, lambda: self._catalog_of(request))

    async def _run_program(self, request: RunRequest, held: HeldRun | None, read: ReadProgram | None = None) -> Outcome:
        if self._log_code or request.log_code:
            program_logger.info("run %s: %s program %r", request.run, request.language, request.code)
        self._pools.find(request.options).warm()
        try:
            program, waits = await (read or self._read)(request)
            if self._closed:
                return closed_outcome(request)
            bridge = await self._bridge_of(request)
            modules = None if request.resumed else await self.imports.modules(program)
            request = self.imports.supply(request, program)
            advice = () if self._types is None else await self._types.advise(program, bridge.catalog, request)
        except ProgramError as error:
            return Outcome(request.run, "failed", error=program_failure(error, self.catalog, self.imports.is_approved))
        except GloveportError as error:
            return Outcome(request.run, "failed", error=unprepared_failure(error))
        pool = self._pools.find(request.options)
        try:
            worker = await pool.take(preparable(request, modules))
        except GloveportError as error:
            return Outcome(request.run, "failed", error=failure(program, error_data(error)))
        try:
            parts = {"reader": self._programs, "snippets": self._snippets, "modules": modules}
            outcome = await attempt(request, program, worker, bridge, held, **parts)
        finally:
            pool.replace(worker)
        if outcome.error is not None and not waits and not self._closed and is_name_error(outcome.error):
            await self._sources.open(naming="")  # the name may be a tool's, without its `tools.`
            bridge = await self._bridge_of(request)
            outcome = replace(outcome, error=await off_loop(with_hint, outcome.error, bridge.catalog))  # builds an index
        return replace(outcome, warnings=(*outcome.warnings, *advice)) if advice else outcome

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, *, agent: str = DEFAULT_AGENT) -> Any:
        """Call one tool and return its result. It is checked like a call of a program. Raise ToolError when it fails."""
        self._governance.agent(agent)
        self._check_open()
        return await self._loop.run(lambda: self._single_calls.call(tool, args, agent, self.limits))

    async def rollback(self, run: str, *, on_event: OnEvent | None = None) -> Rollback:
        """Undo the writes of a run that has ended, the last one first, by the inverses that their tools declare.

        Rules and approvals hold as for any call. What is undone already is not undone again.
        """
        store = self._recording_store()
        undo = RunUndo(store, self._desk, self._sources, self._bridge)
        return await self._loop.run(lambda: undo.undo(run, self.limits, on_event))

    async def recording(self, run: str) -> Recording:
        """Return the steps of a run in the store; raise OptionError if there are none."""
        return await self._loop.run(partial(self._recording_store().recording, run))

    async def flush(self) -> None:
        """Write what was recorded so far, for others who read the store; read its snippets anew for the next program."""
        if self._store is not None:
            await self._loop.run(self._store.flush)

    def _recording_store(self) -> PortStore:
        self._check_open()
        if self._store is None:
            raise OptionError("runs are not recorded here", hint="create the port with store=")
        return self._store

    async def replay(self, run: str | Recording, *, live_reads: bool = False) -> Divergence | None:
        """Run a recorded run again on its events, without calling any tool. Return the first difference, or None.

        With `live_reads`, a run of this store makes its reads anew, under the rules for its agent. No write is made.
        """
        self._check_open()
        recording = run if isinstance(run, Recording) else await self.recording(run)
        live, folders = self._single_calls.live if live_reads else None, self.imports.folders_of(recording)
        return await self._loop.run(partial(replay_run, self._pools, recording, self.limits, live, folders))

    async def open(self, *, naming: str | None = None) -> JailReport:
        """Start the sandboxes, open the sources, and return the report of the jail.

        Raises SandboxError below the minimum strength. `problems` lists the sources that can't be opened. With a text in
        `naming`, it waits only a few seconds for a source that the text does not name.
        """
        self._check_open()
        return await self._loop.run(lambda: self._open(naming))

    async def _open(self, naming: str | None) -> JailReport:
        pool = self._pools.find(self._requests.usual_options("typescript"))
        report, _ = await asyncio.gather(pool.open(), self._programs.tasks.open())
        if self._warming is None:
            self._warming = asyncio.get_running_loop().call_later(WARMING_DELAY_SECONDS, self._warm_others)
        await self._sources.open(naming)
        return report

    def _warm_others(self) -> None:
        """Start the zygotes of the other engines, without a guest: with one, the first program for it starts at once."""
        for options in () if self._closed else self._requests.later_options():
            self._pools.find(options).warm(workers=False)

    async def connect(self, *, naming: str | None = None) -> None:
        """Open the sources in advance, as `open` does, without starting a sandbox."""
        self._check_open()
        await self._loop.run(lambda: self._sources.open(naming))

    async def rebuild_catalog(self) -> None:
        """Build the catalog anew, after definitions were accepted."""
        await self._loop.run(self._sources.rebuild)

    async def follow_settings(self, *anew: str) -> None:
        """Open and close sources as the settings files state them now, and open those in `anew` again."""
        await self._loop.run(lambda: self._sources.follow(self.settings, anew))

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """Return a tool as it was accepted and as its source defines it now; None where that is not known."""
        return self._sources.versions(address)

    async def close(self) -> None:
        """Stop every sandbox and close every source of this Gloveport."""
        was_closed, self._closed = self._closed, True
        if not was_closed and self._loop.in_use:
            await self._loop.run(self._close)

    def close_sync(self) -> None:
        """Do the same as `close`, for callers without an event loop."""
        was_closed, self._closed = self._closed, True
        if not was_closed and self._loop.in_use:
            self._loop.block(self._close)
        self._loop.stop()

    async def _close(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
        parts = self._durable, self._held, self._pools, self._programs.tasks, self._sources, self._governance.client
        for part in filter(None, (*parts, self._sessions, self._store, self._types, self.imports, self._plugins)):
            await part.close()

    def _loop_closed(self) -> None:
        """End the sandboxes without their event loop, which somebody closed."""
        self._warming = None
        self._pools.abandon()
        self._programs.tasks.abandon()
        self._sources.reset()

    async def __aenter__(self) -> Gloveport:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Gloveport:
        self._check_open()
        self._loop.close_at_exit(self)
        self._loop.block(self.open)
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def _check_open(self) -> None:
        if self._closed:
            raise GloveportError("this Gloveport is closed", code="closed", hint=CODES["closed"].fix)
