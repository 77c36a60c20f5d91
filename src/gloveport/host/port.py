"""`Gloveport`: wires prepare, sandbox and bridge together. It is the only module that knows all of them."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gloveport.approvals.desk import ApprovalDesk, OnApproval
from gloveport.bridge import Bridge, RunContext
from gloveport.bridge.hints import is_name_error, with_hint
from gloveport.bridge.run_bridge import OnCall
from gloveport.catalog import Catalog
from gloveport.config import AgentConfig, Config, config_from
from gloveport.errors import CODES, GloveportError, OptionError, ProgramError
from gloveport.host.event_loop import PortLoop
from gloveport.host.failures import (
    call_line,
    error_data,
    failure,
    internal_error,
    program_failure,
    unprepared_failure,
)
from gloveport.host.governance import Governance, RulesArgument, desk_from
from gloveport.host.held_runs import HeldRuns
from gloveport.host.options import check_flags, check_run, env_from, limits_from, spare_from, strength_from
from gloveport.host.port_store import PortStore
from gloveport.host.program_reader import MAX_INLINE_TOOLS, ProgramReader
from gloveport.host.run_request import NO_INPUT, OnEvent, RunPort, RunRequest, closed_outcome, outcome_of
from gloveport.host.source_set import SourceArgument, SourceSet
from gloveport.host.type_check import TypeChecks
from gloveport.journal.memory import Journal, RunRecorder
from gloveport.large_values import off_loop, off_loop_if
from gloveport.prepare import TypeReport
from gloveport.rules.rules import Rules
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import ENGINES, is_held, preferred_engines, process_options
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.replay import replay
from gloveport.sandbox.run_attempt import AttemptResult, RunAttempt, RunSetup
from gloveport.sandbox.worker import Worker
from gloveport.sources import OpenedSource
from gloveport.sources.functions import functions
from gloveport.types import (
    DEFAULT_AGENT,
    Divergence,
    Language,
    Limits,
    Outcome,
    Problem,
    Program,
    Recording,
    Strength,
    Tool,
    ToolCall,
)

logger = logging.getLogger("gloveport")

MAX_POOLS = 8
PYTHON_DELAY_SECONDS = 3.0  # a port that is closed before need not start the engine


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
        journal: Journal | None = None,
        rules: RulesArgument | None = None,
        on_approval: OnApproval | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        settings = config_from(config)
        allow_eval = settings.sandbox.get("allow_eval", False) if allow_eval is False else allow_eval
        allow_wasm = settings.sandbox.get("allow_wasm", False) if allow_wasm is False else allow_wasm
        check_flags(allow_eval=allow_eval, allow_wasm=allow_wasm, log_code=log_code, check_types=check_types)
        self.limits = limits_from(limits_from(Limits(), settings.limits), limits)
        self._minimum: Strength = strength_from(settings.sandbox.get("minimum", "kernel") if minimum is None else minimum)
        self._sources = SourceSet(functions(tools), (*settings.sources, *sources), self._minimum, settings)
        self._sources.on_change = self._connect
        self.on_change: Callable[[], None] = lambda: None  # called when the catalog has changed
        path = settings.governance.store if store is None else Path(store)
        self.store_path = path
        self._store = None if path is None else PortStore(path, settings.governance.notify)
        self._desk = desk_from(settings, on_approval, path)
        self._governance = Governance(settings, rules, self._desk)
        self._governance.connect(self._sources.catalog, self._sources.writes)
        self._held = HeldRuns(self._desk) if self._desk is not None and on_approval is None else None
        self._allow_eval, self._allow_wasm, self._log_code = allow_eval, allow_wasm, log_code
        self._engines = preferred_engines(settings.sandbox.get("engines", ()) if engines is None else engines)
        for language, engine in self._engines.items():
            self._options(language, engine, self.limits)  # raises OptionError for an option that the engine lacks
        self._programs = ProgramReader(self._minimum)
        self._types = TypeChecks(self._minimum, self._programs) if check_types else None
        self._spare = spare_from(spare)
        self._journal = journal
        self._pools: dict[ProcessOptions, Pool] = {}
        self._jailed: dict[str, bool] = {}  # whether the jail holds an engine, once it was tried
        self._loop = PortLoop(self._loop_closed)
        self._warming: asyncio.TimerHandle | None = None
        self._closed = False
        self._at_exit = False

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
        self._governance.connect(catalog, self._sources.writes)
        self.on_change()

    async def _bridge(self, agent: str) -> Bridge:
        """Return the bridge of an agent. A catalog of a part of the tools is built away from the event loop."""
        return await off_loop_if(self._governance.is_slow(agent), self._governance.bridge, agent)

    # Rules and approvals.

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

    # Runs.

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
    ) -> Outcome:
        """Run a program and return its outcome. It never raises for what the program did. Cancelling it cancels the run.

        The outcome is `waiting` when the run waits for a person who answers elsewhere; `resume` returns the next one. With
        `attach`, the same program of the same agent is not started again while it waits.
        """
        check_run(code, language)
        wanted = limits_from(limits_from(self.limits, self._governance.agent(agent).limits), limits)
        engine = engine or self._engines.get(language)
        options = self._options(language, engine, wanted)
        request = RunRequest(
            secrets.token_hex(16), code, language, options, engine is None, input, wanted, env_from(env), on_event, agent
        )
        self._check_open()
        held = self._held
        if held is None:
            return await self._loop.run(lambda: self._run(request))
        if attach and (same := held.same(request)) is not None:
            return await self._loop.run(lambda: held.resume(same.request.run, agent))
        return await self._loop.run(lambda: held.start(request, lambda run: self._run(request, run.call_happened)))

    @property
    def holds_runs(self) -> bool:
        """Whether a run goes on while it waits for a person: then `run` returns `waiting`."""
        return self._held is not None

    async def resume(self, run: str, *, agent: str = DEFAULT_AGENT) -> Outcome:
        """Return the outcome of a run that was `waiting`, or `waiting` again. It never answers what is asked."""
        self._check_open()
        held = self._held
        if held is None:
            raise OptionError("no run waits here", hint="a run waits where a person answers elsewhere: with store=")
        return await self._loop.run(lambda: held.resume(run, agent))

    def run_sync(self, code: str, **options: Any) -> Outcome:
        """Run a program, for callers without an event loop. It takes the same options as `run`."""
        self._check_open()
        self._close_at_exit()
        return self._loop.block(lambda: self.run(code, **options))

    async def _run(self, request: RunRequest, on_call: OnCall | None = None) -> Outcome:
        if self._store is None:
            return await self._run_program(request, on_call)
        return await self._store.record(self._desk, request, lambda recorded: self._run_program(recorded, on_call))

    async def _run_program(self, request: RunRequest, on_call: OnCall | None) -> Outcome:
        if self._log_code:
            logger.info("run %s: %s program %r", request.run, request.language, request.code)
        if self._closed:  # since `run` was called
            return closed_outcome(request)
        request = await self._choose_engine(request)
        pool = self._pool(request.options)
        pool.warm()
        try:
            program, waits = await self._prepare(request)
            if self._closed:
                return closed_outcome(request)
            bridge = await self._bridge(request.agent)
            type_report = TypeReport()
            if self._types is not None:
                type_report = await self._types.check(program, bridge.catalog, request.subset, request.limits)
            if type_report.error is not None:
                raise type_report.error
        except ProgramError as error:
            problem = self.catalog.source_problem(error.tool) if error.tool and error.code == "source-failed" else None
            return Outcome(request.run, "failed", error=program_failure(error, problem))
        except GloveportError as error:
            return Outcome(request.run, "failed", error=unprepared_failure(error))
        try:
            worker = await pool.take()
        except GloveportError as error:
            return Outcome(request.run, "failed", error=failure(program, error_data(error)))
        try:
            outcome = await self._attempt(request, program, worker, bridge, on_call)
        finally:
            pool.retire(worker)
            pool.refill()
        if outcome.error is not None and not waits and not self._closed and is_name_error(outcome.error):
            await self._sources.open(naming="")  # the name may be a tool's, without its `tools.`
            # In a thread: the first suggestion of a catalog builds an index.
            bridge = await self._bridge(request.agent)
            outcome = replace(outcome, error=await off_loop(with_hint, outcome.error, bridge.catalog))
        return replace(outcome, warnings=(*outcome.warnings, *type_report.advice)) if type_report.advice else outcome

    async def _prepare(self, request: RunRequest) -> tuple[Program, bool]:
        """Return the checked program, and whether it can reach a source, and so had to wait for the sources."""

        async def read(catalog: Catalog | None) -> Program:
            return await self._programs.prepare(
                request.code,
                language=request.language,
                subset=request.subset,
                max_code_bytes=request.limits.max_code_bytes,
                catalog=catalog,
            )

        if not self._sources.opening:
            await self._sources.build()
            program = await read((await self._bridge(request.agent)).catalog)
            return program, self._sources.may_concern(program.tool_access)
        program = await read(None)
        waits = self._sources.may_concern(program.tool_access)
        if waits:
            await self._sources.open(naming=request.code)
        return (await read((await self._bridge(request.agent)).catalog) if not self._closed else program), waits

    async def _choose_engine(self, request: RunRequest) -> RunRequest:
        """Return the request, with a substitute for an engine that the run did not name and the jail can't hold."""
        name = request.options.engine
        substitute = ENGINES[name].substitute
        if not request.any_engine or substitute is None:
            return request
        if name not in self._jailed:
            self._jailed[name] = await is_held(self._pool(request.options))
        if self._jailed[name]:
            return request
        return replace(request, options=self._options(request.language, substitute, request.limits))

    async def _attempt(
        self, request: RunRequest, program: Program, worker: Worker, bridge: Bridge, on_call: OnCall | None
    ) -> Outcome:
        began = time.monotonic()
        context = RunContext(
            request.run, began, request.listener(on_call), partial(call_line, program.source), request.audit
        )
        port = RunPort(request, bridge.for_run(request.limits, context))
        port.bridge.on_waiting = lambda waits: worker.pause_clock() if waits else worker.resume_clock()
        has_input = request.input is not NO_INPUT
        setup = RunSetup(
            sources=tuple(sorted(bridge.catalog.roots)),
            env=request.env,
            input=request.input if has_input else None,
            has_input=has_input,
        )
        recorder = RunRecorder(request.run, request.options.engine, request.limits.memory_mb) if self._journal else None
        try:
            result = await RunAttempt(worker, port, request.limits, recorder).run(program, setup)
        except GloveportError as error:
            result = AttemptResult(error=error_data(error))
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of the host must not look like the guest's
            result = AttemptResult(error=internal_error(request.run, error))
        finally:
            port.bridge.close()
            if self._journal and recorder and (recording := recorder.recording()):
                self._journal.keep(recording)
        # The hint of an error may be a suggestion, and the first one of a catalog builds an index.
        slow = result.error is not None and len(bridge.catalog.tools) > MAX_INLINE_TOOLS
        return await off_loop_if(slow, outcome_of, request, program, port, result, time.monotonic() - began)

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, *, agent: str = DEFAULT_AGENT) -> Any:
        """Call one tool and return its result. It is checked like a call of a program. Raise ToolError when it fails."""
        self._governance.agent(agent)
        self._check_open()
        return await self._loop.run(lambda: self._call(tool, args, agent))

    async def _call(self, tool: str, args: Mapping[str, Any] | None, agent: str) -> Any:
        await self._sources.open(naming=tool)
        name = secrets.token_hex(16)
        audit = self._store.audit(self._desk, name, agent) if self._store is not None else None
        run = (await self._bridge(agent)).for_run(self.limits, RunContext(name, audit=audit))
        try:
            return await run.call(ToolCall(1, tool, [dict(args or {})]))
        finally:
            run.close()

    async def replay(self, run: str) -> Divergence | None:
        """Run a recorded run again on its events, without calling any tool. Return the first difference, or None."""
        recording = self._journal.find(run) if self._journal else None
        if recording is None:
            raise OptionError(
                f"there is no recording of the run {run[:40]!r}",
                hint="create the port with journal=MemoryJournal(); a run that exchanges more than 64 MiB is not recorded",
            )
        self._check_open()
        return await self._loop.run(lambda: self._replay(recording))

    async def _replay(self, recording: Recording) -> Divergence | None:
        limits = self.limits.with_(memory_mb=recording.memory_mb)
        language = ENGINES[recording.engine].languages[0]
        pool = self._pool(self._options(language, recording.engine, limits))
        worker = await pool.take()
        try:
            return await replay(worker, recording, limits)
        finally:
            pool.retire(worker)
            pool.refill()

    # Opening and closing.

    async def open(self, *, naming: str | None = None) -> JailReport:
        """Start the sandboxes, open the sources, and return the report of the jail.

        Raises SandboxError below the minimum strength. `problems` lists the sources that can't be opened. With a text in
        `naming`, it waits only a few seconds for a source that the text does not name.
        """
        self._check_open()
        return await self._loop.run(lambda: self._open(naming))

    async def _open(self, naming: str | None) -> JailReport:
        pool = self._pool(self._options("typescript", self._engines.get("typescript"), self.limits))
        report, _ = await asyncio.gather(pool.open(), self._programs.tasks.open())
        await self._sources.open(naming)
        if self._warming is None:
            self._warming = asyncio.get_running_loop().call_later(PYTHON_DELAY_SECONDS, self._warm_python)
        return report

    def _warm_python(self) -> None:
        """Start the zygote of the Python engine, without a guest: with it, the first Python program starts at once."""
        if not self._closed:
            self._pool(self._options("python", self._engines.get("python"), self.limits)).warm(workers=False)

    async def connect(self, *, naming: str | None = None) -> None:
        """Open the sources in advance, as `open` does, without starting a sandbox."""
        self._check_open()
        await self._loop.run(lambda: self._sources.open(naming))

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """Return a tool as it was accepted and as its source defines it now; None where that is not known."""
        return self._sources.versions(address)

    async def close(self) -> None:
        """Stop every sandbox and close every source of this Gloveport."""
        if self._closed:
            return
        self._closed = True
        if self._loop.in_use:
            await self._loop.run(self._close)

    def close_sync(self) -> None:
        """Do the same as `close`, for callers without an event loop."""
        if not self._closed and self._loop.in_use:
            self._closed = True
            self._loop.block(self._close)
        self._closed = True
        self._loop.stop()

    async def _close(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
        if self._held is not None:
            await self._held.close()
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.close()
        await self._programs.tasks.close()
        await self._sources.close()
        if self._store is not None:
            await self._store.close()
        if self._types is not None:
            await self._types.close()

    def _loop_closed(self) -> None:
        """End the sandboxes without their event loop, which somebody closed."""
        self._warming = None
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.abandon()
        self._programs.tasks.abandon()
        self._sources.reset()

    async def __aenter__(self) -> Gloveport:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Gloveport:
        self._check_open()
        self._close_at_exit()
        self._loop.block(self.open)
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def _options(self, language: Language, engine: str | None, limits: Limits) -> ProcessOptions:
        wanted = ProcessOptions(engine or "", self._allow_eval, self._allow_wasm, limits.memory_mb)
        return process_options(language, engine, wanted)

    def _pool(self, options: ProcessOptions) -> Pool:
        if options not in self._pools:
            if len(self._pools) >= MAX_POOLS:
                raise OptionError(
                    f"one Gloveport keeps at most {MAX_POOLS} pools of sandboxes",
                    hint="use a few fixed values of memory_mb",
                )
            engine = ENGINES[options.engine]
            launch = engine.launch(options)
            self._pools[options] = Pool(launch, size=self._spare, minimum=self._minimum, start=engine.start)
        return self._pools[options]

    def _check_open(self) -> None:
        if self._closed:
            raise GloveportError("this Gloveport is closed", code="closed", hint=CODES["closed"].fix)

    def _close_at_exit(self) -> None:
        if not self._at_exit:
            self._at_exit = True
            atexit.register(_close_if_alive, weakref.ref(self), os.getpid())


def _close_if_alive(reference: weakref.ref[Gloveport], process: int) -> None:
    port = reference()
    if port is not None and os.getpid() == process:
        port.close_sync()
