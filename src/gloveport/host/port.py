"""Gloveport: wires prepare, sandbox and bridge together; the only module that knows all of them."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gloveport.bridge import Bridge, RunBridge
from gloveport.bridge.hints import is_name_error, with_hint
from gloveport.catalog import Catalog
from gloveport.config import Config, config_from
from gloveport.errors import CODES, GloveportError, OptionError, ProgramError, ToolError
from gloveport.host.connections import Connections, Given
from gloveport.host.event_loop import Home
from gloveport.host.failures import believed, failure, internal, program_failure, told
from gloveport.host.options import check_flags, check_run, env_from, limits_from, spare_from, strength_from
from gloveport.host.type_check import TypeChecks
from gloveport.journal.memory import Journal, Tape
from gloveport.prepare import Judged, check, prepare
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import ENGINES, is_held, preferred_engines, process_options
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.replay import replay
from gloveport.sandbox.run_attempt import AttemptResult, RunAttempt, RunSetup
from gloveport.sandbox.worker import Worker
from gloveport.sources.functions import functions
from gloveport.types import (
    CallRecord,
    Divergence,
    Event,
    Failure,
    Language,
    Limits,
    LogLine,
    Outcome,
    Problem,
    Program,
    Recording,
    Strength,
    Tool,
    ToolCall,
    Usage,
)

logger = logging.getLogger("gloveport")

MAX_POOLS = 8
PREPARE_INLINE = 16 * 1024
NO_INPUT: Any = object()


OnEvent = Callable[[Event], None]


class Gloveport:
    """Runs programs that agents wrote, in sealed sandboxes, with these tools. Use it inside `async with` or `with`."""

    def __init__(
        self,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        sources: Iterable[Given] = (),
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
    ) -> None:
        settings = config_from(config)
        allow_eval = settings.sandbox.get("allow_eval", False) if allow_eval is False else allow_eval
        allow_wasm = settings.sandbox.get("allow_wasm", False) if allow_wasm is False else allow_wasm
        check_flags(allow_eval=allow_eval, allow_wasm=allow_wasm, log_code=log_code, check_types=check_types)
        self.limits = limits_from(limits_from(Limits(), settings.limits), limits)
        self._connections = Connections(functions(tools), (*settings.sources, *sources))
        self._connections.on_change = self._connect
        self.on_change: Callable[[], None] = lambda: None  # called when the catalog has changed
        self._bridge = Bridge(self._connections.catalog, self._connections.policy)
        self._allow_eval, self._allow_wasm, self._log_code = allow_eval, allow_wasm, log_code
        self._minimum: Strength = strength_from(settings.sandbox.get("minimum", "kernel") if minimum is None else minimum)
        self._engines = preferred_engines(settings.sandbox.get("engines", ()) if engines is None else engines)
        for language, engine in self._engines.items():
            self._options(language, engine, self.limits)  # which refuses what the engine can't do
        self._types = TypeChecks(self._minimum) if check_types else None
        self._spare = spare_from(spare)
        self._journal = journal
        self._pools: dict[ProcessOptions, Pool] = {}
        self._held: dict[str, bool] = {}  # whether the jail holds an engine, once it was tried
        self._home = Home(self._forsake)
        self._closed = False
        self._at_exit = False

    @property
    def catalog(self) -> Catalog:
        """What programs can call now; sources are in it once they are open."""
        return self._connections.catalog

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The sources that could not be opened, and what their owners should know of the others."""
        return self._connections.problems

    def _connect(self, catalog: Catalog) -> None:
        self._bridge = Bridge(catalog, self._connections.policy)
        self.on_change()

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
    ) -> Outcome:
        """How the program ended. Never raises for what the program did; cancelling this cancels the run."""
        check_run(code, language)
        wanted = limits_from(self.limits, limits)
        engine = engine or self._engines.get(language)
        options = self._options(language, engine, wanted)
        order = _Order(
            secrets.token_hex(16), code, language, options, engine is None, input, wanted, env_from(env), on_event
        )
        self._check_open()
        return await self._home.run(lambda: self._run(order))

    def run_sync(self, code: str, **options: Any) -> Outcome:
        """The same as `run`, for callers without an event loop."""
        self._check_open()
        self._close_at_exit()
        return self._home.block(lambda: self.run(code, **options))

    async def _run(self, order: _Order) -> Outcome:
        if self._log_code:
            logger.info("run %s: %s program %r", order.run, order.language, order.code)
        if self._closed:  # since this run was asked for
            return _closed(order)
        order = await self._choose_engine(order)
        pool = self._pool(order.options)
        # A large text takes up to a second; other runs must not wait for it.
        large = len(order.code) > PREPARE_INLINE
        try:
            program = await asyncio.to_thread(_prepare, order) if large else _prepare(order)
            waits = self._connections.concern(program.tool_access)
            if waits:
                await self._connections.open(naming=order.code)
            if self._closed:
                return _closed(order)
            bridge = self._bridge
            await asyncio.to_thread(check, program, bridge.catalog) if large else check(program, bridge.catalog)
            judged = await self._types.check(program, bridge.catalog) if self._types else Judged()
            if judged.error is not None:
                raise judged.error
        except ProgramError as error:
            return Outcome(order.run, "failed", error=program_failure(error))
        try:
            worker = await pool.take()
        except GloveportError as error:
            return Outcome(order.run, "failed", error=failure(program, told(error)))
        try:
            outcome = await self._leg(order, program, worker, bridge)
        finally:
            pool.retire(worker)
            pool.refill()
        if outcome.error is not None and not waits and not self._closed and is_name_error(outcome.error):
            await self._connections.open(naming="")  # the name may be that of a tool, without `tools.` before it
            outcome = replace(outcome, error=with_hint(outcome.error, self.catalog))
        return replace(outcome, warnings=(*outcome.warnings, *judged.advice)) if judged.advice else outcome

    async def _choose_engine(self, order: _Order) -> _Order:
        """Return the order, with the substitute of its engine where none was named and the jail can't hold the default."""
        name = order.options.engine
        substitute = ENGINES[name].substitute
        if not order.any_engine or substitute is None:
            return order
        if name not in self._held:
            self._held[name] = await is_held(self._pool(order.options))
        if self._held[name]:
            return order
        return replace(order, options=self._options(order.language, substitute, order.limits))

    async def _leg(self, order: _Order, program: Program, worker: Worker, bridge: Bridge) -> Outcome:
        began = time.monotonic()
        on_call = order.call_happened if order.on_event else None
        port = _RunPort(order, bridge.for_run(order.limits, on_call, began=began))
        has_input = order.input is not NO_INPUT
        setup = RunSetup(
            sources=tuple(sorted(bridge.catalog.roots)),
            env=order.env,
            input=order.input if has_input else None,
            has_input=has_input,
        )
        tape = Tape(order.run, order.options.engine, order.limits.memory_mb) if self._journal else None
        try:
            ending = await RunAttempt(worker, port, order.limits, tape).run(program, setup)
        except GloveportError as error:
            ending = AttemptResult(error=told(error))
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of ours must not look like the guest's
            ending = AttemptResult(error=internal(order.run, error))
        finally:
            port.bridge.close()
            if self._journal and tape and (recording := tape.recording()):
                self._journal.keep(recording)
        return _outcome(order, program, port, ending, time.monotonic() - began)

    async def call(self, tool: str, args: Mapping[str, Any] | None = None) -> Any:
        """What one tool answers, checked and recorded like a call of a program; raises ToolError."""
        self._check_open()
        return await self._home.run(lambda: self._call(tool, args))

    async def _call(self, tool: str, args: Mapping[str, Any] | None) -> Any:
        await self._connections.open(naming=tool)
        run = self._bridge.for_run(self.limits)
        try:
            return await run.call(ToolCall(1, tool, [dict(args or {})]))
        finally:
            run.close()

    async def replay(self, run: str) -> Divergence | None:
        """The first difference when a recorded run is run again on its events, without calling anything; None if none."""
        recording = self._journal.find(run) if self._journal else None
        if recording is None:
            raise OptionError(
                f"there is no recording of the run {run[:40]!r}",
                hint="make the port with journal=MemoryJournal(); a run that exchanges more than 64 MiB is not kept",
            )
        self._check_open()
        return await self._home.run(lambda: self._replay(recording))

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

    # Life.

    async def open(self, *, naming: str | None = None) -> JailReport:
        """Start the sandboxes and open the sources in advance; what the jail holds here.

        Raises SandboxError below the minimum strength. A source that can't be opened is told in `problems`. With a text in
        `naming`, a source that it does not name is waited for no longer than a few seconds, and is there when it is open.
        """
        self._check_open()
        return await self._home.run(lambda: self._open(naming))

    async def _open(self, naming: str | None) -> JailReport:
        report = await self._pool(self._options("typescript", self._engines.get("typescript"), self.limits)).open()
        await self._connections.open(naming)
        return report

    async def connect(self, *, naming: str | None = None) -> None:
        """Open the sources in advance, as `open` does, and start no sandbox."""
        self._check_open()
        await self._home.run(lambda: self._connections.open(naming))

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """A tool as it was accepted, and as its source has it now; None where that is not known."""
        return self._connections.versions(address)

    async def close(self) -> None:
        """End every sandbox of this Gloveport."""
        if self._closed:
            return
        self._closed = True
        if self._home.settled:
            await self._home.run(self._close)

    def close_sync(self) -> None:
        """The same as `close`, for callers without an event loop."""
        if not self._closed and self._home.settled:
            self._closed = True
            self._home.block(self._close)
        self._closed = True
        self._home.leave()

    async def _close(self) -> None:
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.close()
        await self._connections.close()
        if self._types is not None:
            await self._types.close()

    def _forsake(self) -> None:
        """The event loop was closed under the sandboxes: end them without it."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.abandon()
        self._connections.forsake()

    async def __aenter__(self) -> Gloveport:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Gloveport:
        self._check_open()
        self._close_at_exit()
        self._home.block(self.open)
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
                    f"one Gloveport keeps sandboxes of at most {MAX_POOLS} kinds",
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
            atexit.register(_close_weakly, weakref.ref(self), os.getpid())


@dataclass(frozen=True, slots=True)
class _Order:
    """What one run was asked to do."""

    run: str
    code: str
    language: Language
    options: ProcessOptions
    any_engine: bool
    input: Any
    limits: Limits
    env: Mapping[str, str]
    on_event: OnEvent | None

    def happened(self, event: Event) -> None:
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:
            logger.exception("run %s: on_event raised; the run goes on", self.run)

    def call_happened(self, kind: Literal["call-started", "call-ended"], record: CallRecord) -> None:
        self.happened(Event(kind, self.run, call=record))


def _prepare(order: _Order) -> Program:
    size, subset = order.limits.max_code_bytes, ENGINES[order.options.engine].subset
    return prepare(order.code, language=order.language, max_code_bytes=size, subset=subset)


def _closed(order: _Order) -> Outcome:
    return Outcome(order.run, "failed", error=Failure("closed", "GloveportError", "this Gloveport was closed"))


class _RunPort:
    """What the sandbox may reach of this run: its bridge, and a place for its output."""

    def __init__(self, order: _Order, bridge: RunBridge) -> None:
        self._order = order
        self.bridge = bridge
        self.call = bridge.call
        self.call_sync = bridge.call_sync
        self.logs: list[LogLine] = []
        self.emitted: list[Any] = []

    def report_defect(self, error: Exception) -> ToolError:
        return ToolError(internal(self._order.run, error)["message"], code="internal-error")

    def log(self, line: LogLine) -> None:
        self.logs.append(line)
        self._order.happened(Event("log", self._order.run, log=line))

    def emit(self, value: Any) -> None:
        self.emitted.append(value)
        self._order.happened(Event("emit", self._order.run, value=value))


def _outcome(order: _Order, program: Program, port: _RunPort, ending: AttemptResult, seconds: float) -> Outcome:
    calls = port.bridge.records
    pending = frozenset(ending.pending)
    warnings = [
        f"the program ended while tools.{call.tool} was under way (it {_ended_how(call)}); what follows it did not run"
        for call in calls
        if call.id in pending
    ]
    if warnings:
        together = "asyncio.gather(*calls)" if order.language == "python" else "Promise.all(items.map(…))"
        warnings.append(f"await every call: one by one in a loop, or all with `await {together}`")
    return Outcome(
        run=order.run,
        status="completed" if ending.error is None else "failed",
        value=ending.value,
        error=None
        if ending.error is None
        else port.bridge.with_hint(failure(program, believed(ending, port.bridge.error_codes))),
        logs=tuple(port.logs),
        emitted=tuple(port.emitted),
        calls=calls,
        usage=Usage(
            wall_seconds=seconds,
            cpu_seconds=ending.cpu_seconds,
            memory_peak_mb=ending.memory_peak_mb,
            calls=len(calls),
            log_bytes=sum(len(line.text.encode()) for line in port.logs),
        ),
        warnings=(*warnings, *port.bridge.notes, *ending.warnings),
    )


def _ended_how(call: CallRecord) -> str:
    return {"ok": "went well", "failed": "failed", "running": "was left running"}[call.status]


def _close_weakly(reference: weakref.ref[Gloveport], process: int) -> None:
    port = reference()
    if port is not None and os.getpid() == process:
        port.close_sync()
