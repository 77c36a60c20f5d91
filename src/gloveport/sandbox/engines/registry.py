"""The registry of engines: which there are, which one runs a program, and which can be used on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gloveport.errors import GloveportError, OptionError, SandboxError
from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.sandbox.engines.engine import Capability, Engine, ProcessOptions, installed_version
from gloveport.sandbox.engines.remote.engine import PREFIX, RemoteEngine, remote_engines
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import LANGUAGES, Language, Strength

# One line an engine. Among the engines of a language, the first that is installed runs a program that names none.
LOCAL_ENGINES: ExtensionPoint[Engine] = ExtensionPoint(
    "engine",
    {name: f"gloveport.sandbox.engines.{name}.engine:ENGINE" for name in ("deno", "quickjs", "cpython", "monty")},
)
REMOTE_ENGINES: Mapping[str, RemoteEngine] = remote_engines(LOCAL_ENGINES.values())
ENGINES: ExtensionPoint[Engine] = ExtensionPoint("engine", {**LOCAL_ENGINES, **REMOTE_ENGINES})
_OF_PLUGINS: dict[str, Engine] = {}  # so that the record of a run can be read whose port has such an engine
REMOTE = "remote"
"""Stands for the first engine of a language, at the sandbox host."""
AUTO = "auto"
"""Stands for the engine of a language that suits the program: see `lighter_engine`."""
_LIGHTER = {"deno": "quickjs"}


def add_engine(engine: Engine) -> None:
    """Let runs be described whose port has this engine of a plugin. Which ports have it is their own matter."""
    _OF_PLUGINS[engine.name] = engine


def every_engine() -> Mapping[str, Engine]:
    """Return the engines of all ports of this process, those of plugins included."""
    return {**ENGINES, **_OF_PLUGINS} if _OF_PLUGINS else ENGINES


def engine_names(language: Language, engines: Mapping[str, Engine] = ENGINES) -> tuple[str, ...]:
    """Return the names of the engines of a language, the preferred one first."""
    return tuple(engine.name for engine in engines.values() if language in engine.languages)


def preferred_engines(names: object, engines: Mapping[str, Engine] = ENGINES) -> dict[Language, str]:
    """Return the engine to use for each language that `names` has one for. Raise OptionError for an unknown name."""
    known = (*engines, REMOTE, AUTO)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name in known for name in names):
        raise OptionError(f"engines must be a list of {', '.join(sorted(known))}, not {names!r}")
    preferred: dict[Language, str] = {}
    for name in names:
        for language in _languages(name, engines):
            preferred.setdefault(language, name if name == AUTO else _named(name, language))
    return preferred


def _languages(name: str, engines: Mapping[str, Engine]) -> Sequence[Language]:
    if name == AUTO:
        return tuple(language for language in LANGUAGES if lighter_engine(default_engine(language)))
    return LANGUAGES if name == REMOTE else engines[name].languages


def _named(name: str, language: Language) -> str:
    """Return the engine of a name that may be `remote`."""
    return PREFIX + engine_names(language)[0] if name == REMOTE else name


def process_options(
    language: Language, named: str | None, wanted: ProcessOptions, engines: Mapping[str, Engine] = ENGINES
) -> ProcessOptions:
    """Return the options of the process for a program. Raise OptionError when the named engine can't run its language."""
    name = default_engine(language) if not named or named == AUTO else _named(named, language)
    if not isinstance(name, str) or name not in engines:
        known = ", ".join(sorted((*engines, REMOTE, AUTO)))
        raise OptionError(f"there is no engine {name!r}", hint=f"the engines are: {known}")
    if language not in engines[name].languages:
        others = " or ".join(engine_names(language, engines))
        raise OptionError(f"the engine {name} does not run {language}", hint=f"{language} is run by {others}")
    found = engines[name].process_options(wanted if wanted.engine == name else replace(wanted, engine=name))
    if wanted.workspace is not None and found.workspace is None:
        raise OptionError(
            f"the engine {name} keeps no files", hint="a session needs the engine deno or cpython, on this machine"
        )
    return found


@cache
def default_engine(language: Language) -> str:
    """Return the engine that runs a language here when a run names none: the first that is installed, else the first."""
    names = engine_names(language)
    return next((name for name in names if _is_installed(ENGINES[name])), names[0])


@cache
def lighter_engine(name: str) -> str | None:
    """Return the engine that runs some programs of an engine at a lower cost, if it is installed."""
    lighter = _LIGHTER.get(name)
    return lighter if lighter is not None and _is_installed(ENGINES[lighter]) else None


def _is_installed(engine: Engine) -> bool:
    try:
        engine.version()
    except SandboxError:
        return False
    return True


async def is_held(pool: Pool[RunWorker]) -> bool:
    """Return whether the jail here is strong enough for a pool's engine, by starting it; never because a run failed."""
    try:
        await pool.open()
    except SandboxError as error:
        return "strength" not in (error.data or {})
    return True


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """An engine on this machine: its version, the strength of its jail, or the problem why it can't be used.

    `chosen` are the languages that it runs here when a run names no engine, and `fix` is what to do about the problem.
    """

    name: str
    version: str | None
    languages: tuple[Language, ...]
    strength: Strength | None
    problem: str | None
    abilities: tuple[Capability, ...]
    chosen: tuple[Language, ...] = ()
    fix: str | None = None

    @property
    def available(self) -> bool:
        """True when programs can be run in it."""
        return self.problem is None


async def try_engines(
    hosted: Iterable[Engine] = (), preferred: Mapping[Language, str] | None = None
) -> tuple[EngineStatus, ...]:
    """Start every engine of this machine once, and the given ones of plugins and of a sandbox host; return what came of it.

    `preferred` are the engines that the settings choose, whether they can be used or not.
    """
    tried = [await _try(engine) for engine in LOCAL_ENGINES.values()]
    tried += await asyncio.gather(*map(_try, hosted))
    usable = {engine.name for engine in tried if engine.available}
    named: Mapping[Language, str] = preferred or {}

    def chosen(language: Language) -> tuple[str | None, ...]:
        if (name := named.get(language, AUTO)) != AUTO:
            return (name,)
        first = next((name for name in engine_names(language) if name in usable), None)
        return (first, lighter_engine(first)) if first and language in named else (first,)

    return tuple(
        replace(engine, chosen=tuple(language for language in engine.languages if engine.name in chosen(language)))
        for engine in tried
    )


async def _try(engine: Engine) -> EngineStatus:
    version = installed_version(engine.distribution) if engine.distribution else engine.version()
    problem, strength, fix = None, None, None
    try:
        launcher = engine.launch(ProcessOptions(engine.name)).launcher("kernel")
        strength = (await launcher.start()).strength
        await launcher.close()
    except GloveportError as error:
        problem, fix = error.message, error.hint
    return EngineStatus(engine.name, version, engine.languages, strength, problem, engine.capabilities, fix=fix)
