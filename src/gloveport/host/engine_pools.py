"""The pools of sandboxes of a port: one for each engine and set of options that a process is started with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from gloveport.errors import OptionError
from gloveport.sandbox.engines.engine import Engine, ProcessOptions
from gloveport.sandbox.engines.registry import AUTO, ENGINES, REMOTE_ENGINES, is_held, lighter_engine, process_options
from gloveport.sandbox.engines.remote.messages import Connect
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import Language, Limits, Strength

MAX_POOLS = 8


class EnginePools:
    """The pools, which are created when they are needed.

    A caller chooses the options of its runs, so they must not use up what others need (R4): of more than `MAX_POOLS`, those
    that nobody uses are closed, the least recently used first. Those in use are as many as there are runs, at most.
    """

    def __init__(
        self,
        minimum: Strength,
        spare: int,
        *,
        allow_eval: bool,
        allow_wasm: bool,
        connect: Connect | None = None,
        engines: Mapping[str, Engine] = ENGINES,
    ) -> None:
        self.minimum: Strength = minimum
        self._spare = spare
        self._allow_eval, self._allow_wasm = allow_eval, allow_wasm
        self._jailed: dict[str, bool] = {}  # whether the jail holds an engine, once it was tried
        self.open: dict[ProcessOptions, Pool[RunWorker]] = {}  # the latest used last
        self._closing: dict[asyncio.Task[None], Pool[RunWorker]] = {}
        # Those of a sandbox host can be used only with a connection to it.
        self.hosted = hosted_engines(connect)
        self._engines: dict[str, Engine] = {**engines, **{engine.name: engine for engine in self.hosted}}

    def options(
        self,
        language: Language,
        engine: str | None,
        limits: Limits,
        *,
        allow_eval: bool | None = None,
        allow_wasm: bool | None = None,
        workspace: WorkspaceQuota | None = None,
    ) -> ProcessOptions:
        """Return the options of a process; raise OptionError for one that the engine lacks, or the port does not allow."""
        allowed = _allowed("allow_eval", allow_eval, self._allow_eval), _allowed("allow_wasm", allow_wasm, self._allow_wasm)
        wanted = ProcessOptions(engine or "", *allowed, limits.memory_mb, workspace)
        return process_options(language, engine, wanted, self._engines)

    def lighter(self, engine: str | None, options: ProcessOptions) -> ProcessOptions | None:
        """Return the options of the engine that may run the program instead, if `auto` was asked for and there is one.

        It has no WebAssembly, and no program that names it suits the engine. It keeps no files.
        """
        name = lighter_engine(options.engine) if engine == AUTO and options.workspace is None else None
        if name is None:
            return None
        return self._engines[name].process_options(replace(options, engine=name, allow_wasm=False))

    def find(self, options: ProcessOptions) -> Pool[RunWorker]:
        """Return the pool of processes with these options. Take a worker at once: an idle pool may be closed later."""
        pool = self.open.pop(options, None)
        if pool is None:
            if (engine := self._engines.get(options.engine)) is None:  # of a run in the store
                raise OptionError(f"there is no engine {options.engine!r:.60} here", hint="turn its plugin on")
            # A worker that waits at a sandbox host would keep it from others.
            spare = 0 if options.engine in REMOTE_ENGINES else self._spare
            pool = Pool(engine.launch(options), size=spare, minimum=self.minimum, start=engine.start)
        self.open[options] = pool
        if len(self.open) > MAX_POOLS:
            self._close_idle(kept=options)
        return pool

    def _close_idle(self, kept: ProcessOptions) -> None:
        idle = [options for options, pool in self.open.items() if pool.idle and options != kept]
        for options in idle[: len(self.open) - MAX_POOLS]:
            pool = self.open.pop(options)
            closing = asyncio.create_task(pool.close())
            self._closing[closing] = pool
            closing.add_done_callback(self._closing.pop)

    async def held(self, language: Language, options: ProcessOptions, limits: Limits) -> ProcessOptions:
        """Return the options, with the engine's substitute if the jail can't hold the engine."""
        name = options.engine
        substitute = self._engines[name].substitute
        if substitute is None or options.workspace is not None:  # the substitute keeps no files
            return options
        return options if await self.holds(options) else self.options(language, substitute, limits)

    async def holds(self, options: ProcessOptions) -> bool:
        """Return whether the jail can hold an engine. It is tried once."""
        if options.engine not in self._jailed:
            self._jailed[options.engine] = await is_held(self.find(options))
        return self._jailed[options.engine]

    async def close(self) -> None:
        """End all processes."""
        pools, self.open = list(self.open.values()), {}
        for pool in pools:
            await pool.close()
        await asyncio.gather(*self._closing)

    def abandon(self) -> None:
        """End all processes without their event loop, which somebody closed."""
        pools, self.open, self._closing = [*self.open.values(), *self._closing.values()], {}, {}
        for pool in pools:
            pool.abandon()


def hosted_engines(connect: Connect | None) -> tuple[Engine, ...]:
    """Return the engines of a sandbox host; none without a connection to it."""
    return tuple(engine.connected(connect) for engine in REMOTE_ENGINES.values()) if connect is not None else ()


def _allowed(name: str, wanted: bool | None, allowed: bool) -> bool:
    """Return whether a run is allowed something: a run may have less than its port, and never more."""
    if wanted and not allowed:
        raise OptionError(f"{name} is off here", code="forbidden", hint=f"ask the user to set {name} under [sandbox]")
    return allowed if wanted is None else wanted
