"""The engines that run programs, and what each can do here."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial

from gloveport.errors import GloveportError, OptionError, SandboxError
from gloveport.sandbox.engines.cpython import CPythonOptions, cpython_launch
from gloveport.sandbox.engines.deno import DenoOptions, deno_launch, find_deno
from gloveport.sandbox.engines.monty import PACKAGE as MONTY
from gloveport.sandbox.engines.monty import monty_launch, monty_version
from gloveport.sandbox.engines.monty.worker import MontyWorker, check_out
from gloveport.sandbox.engines.quickjs import DISTRIBUTION as QUICKJS
from gloveport.sandbox.engines.quickjs import QuickJSOptions, find_quickjs, quickjs_launch
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.pool import Pool, Start
from gloveport.sandbox.worker import Worker
from gloveport.types import Language, Strength

ENGINES_OF: Mapping[Language, tuple[str, ...]] = {
    "typescript": ("deno", "quickjs"),
    "javascript": ("deno", "quickjs"),
    "python": ("cpython", "monty"),
}
"""The engines of each language, the one that is taken where it can be had first."""


def preferred(engines: object) -> dict[Language, str]:
    """The engine for each language that these name one for, the first that does; OptionError for a name that is none."""
    known = sorted({name for names in ENGINES_OF.values() for name in names})
    if not isinstance(engines, (list, tuple)) or not all(name in known for name in engines):
        raise OptionError(f"engines must be a list of {', '.join(known)}, not {engines!r}")
    return {
        language: next(name for name in engines if name in names)
        for language, names in ENGINES_OF.items()
        if any(name in names for name in engines)
    }


@dataclass(frozen=True, slots=True)
class Kind:
    """What is fixed when a process starts, and so tells pools apart."""

    engine: str
    allow_eval: bool
    allow_wasm: bool
    memory_mb: int


def kind_for(language: Language, named: str | None, *, allow_eval: bool, allow_wasm: bool, memory_mb: int) -> Kind:
    """The kind of process for a program; OptionError when the named engine does not speak its language."""
    engine = named or (ENGINES_OF[language][0] if language == "python" else _javascript_engine())
    if engine not in ENGINES_OF[language]:
        known = sorted({name for names in ENGINES_OF.values() for name in names})
        if engine not in known:
            raise OptionError(f"there is no engine {engine!r}", hint=f"the engines are: {', '.join(known)}")
        others = " or ".join(ENGINES_OF[language])
        raise OptionError(f"the engine {engine} does not run {language}", hint=f"{language} is run by {others}")
    if language == "python":  # nothing is fixed at the start: one pool serves all
        return Kind(engine, allow_eval=True, allow_wasm=False, memory_mb=0)
    if engine == "quickjs":
        if allow_wasm:
            raise OptionError("the engine quickjs has no WebAssembly", hint="leave allow_wasm out, or use the engine deno")
        return Kind(engine, allow_eval, allow_wasm=False, memory_mb=0)
    return Kind(engine, allow_eval, allow_wasm, memory_mb)


@cache
def _javascript_engine() -> str:
    """The engine that runs JavaScript and TypeScript here when a run names none: QuickJS only where there is no Deno."""
    try:
        find_deno()
    except SandboxError:
        with suppress(SandboxError):
            find_quickjs()
            return "quickjs"
    return "deno"


def launch_for(kind: Kind) -> Launch:
    """How to start a process of this kind."""
    if kind.engine == "cpython":
        return cpython_launch(CPythonOptions())
    if kind.engine == "monty":
        return monty_launch()
    if kind.engine == "quickjs":
        return quickjs_launch(QuickJSOptions(kind.allow_eval))
    return deno_launch(DenoOptions(kind.allow_eval, kind.allow_wasm, kind.memory_mb))


def start_for(kind: Kind) -> Start:
    """How to make a worker of a process of this kind."""
    if kind.engine == "monty":
        greet = partial(check_out, version=monty_version())
        return partial(MontyWorker.start, greet=greet)
    return Worker.start


async def holds(pool: Pool) -> bool:
    """Whether the jail here is strong enough for an engine; found out when it starts, and never because a run failed."""
    try:
        await pool.open()
    except SandboxError as error:
        return "strength" not in error.data
    return True


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that programs may want: `yes`, `no`, or `off` until a run's Gloveport allows it."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: its version and languages; whether it can be used here, how strongly it is jailed, or why it can't.

    `chosen` are the languages that it runs here when a run names no engine.
    """

    name: str
    version: str | None
    languages: tuple[Language, ...]
    strength: Strength | None
    problem: str | None
    abilities: tuple[Ability, ...]
    chosen: tuple[Language, ...] = ()

    @property
    def available(self) -> bool:
        """True when programs can be run in it."""
        return self.problem is None


DENO_ABILITIES = (
    Ability("typescript", "yes", "types are stripped, enums and generics work; types are not checked"),
    Ability("await", "yes", "top-level await and return; parallel calls with Promise.all"),
    Ability("eval", "off", "eval and new Function: Gloveport(allow_eval=True) or --allow-eval"),
    Ability("wasm", "off", "WebAssembly: Gloveport(allow_wasm=True) or --allow-wasm"),
    Ability("network", "no", "fetch is refused; tools make requests on the host"),
    Ability("files", "no", "there is no file system; tools read and write on the host"),
    Ability("packages", "no", "import is refused"),
)


QUICKJS_ABILITIES = (
    Ability("typescript", "yes", "types are erased; enums, namespaces, decorators and parameter properties are refused"),
    Ability("await", "yes", "top-level await and return; parallel calls with Promise.all"),
    Ability("eval", "off", "eval and new Function: Gloveport(allow_eval=True) or --allow-eval"),
    Ability(
        "platform", "no", "no Intl, URL, Temporal, Blob, streams or crypto.subtle; what is missing is named before the run"
    ),
    Ability("wasm", "no", "there is no WebAssembly, and no compiler to machine code"),
    Ability("network", "no", "fetch is refused; tools make requests on the host"),
    Ability("files", "no", "there is no file system; tools read and write on the host"),
    Ability("packages", "no", "import is refused"),
)


CPYTHON_ABILITIES = (
    Ability("python", "yes", f"the whole language and standard library of Python {platform.python_version()}"),
    Ability("await", "yes", "top-level await and return; parallel calls with asyncio.gather"),
    Ability("eval", "yes", "eval, exec and ctypes run native code, and win nothing in the jail"),
    Ability("threads", "no", "threads and processes can't be started; asyncio works"),
    Ability("network", "no", "sockets are refused; tools make requests on the host"),
    Ability("files", "no", "nothing can be written, and only the standard library read"),
    Ability("packages", "no", "only the standard library can be imported"),
)


MONTY_ABILITIES = (
    Ability("python", "yes", "a part of the language and of the standard library; what is missing is named before the run"),
    Ability("await", "yes", "top-level await and return; parallel calls with asyncio.gather"),
    Ability("eval", "yes", "eval and exec, in the interpreter itself: there is no native code"),
    Ability("classes", "no", "classes without inheritance, properties and most special methods; dataclasses work"),
    Ability("generators", "no", "no yield, async for, async with, del; comprehensions work"),
    Ability("network", "no", "there are no sockets; tools make requests on the host"),
    Ability("files", "no", "there is no file system; tools read and write on the host"),
    Ability("packages", "no", "only Monty's part of the standard library can be imported"),
)


async def engines() -> tuple[Engine, ...]:
    """Every engine, tried out."""
    found = [
        await _tried("deno", _version("deno"), ("typescript", "javascript"), DENO_ABILITIES),
        await _tried("quickjs", _version(QUICKJS), ("typescript", "javascript"), QUICKJS_ABILITIES),
        await _tried("cpython", platform.python_version(), ("python",), CPYTHON_ABILITIES),
        await _tried("monty", _version(MONTY), ("python",), MONTY_ABILITIES),
    ]
    usable = {engine.name for engine in found if engine.available}
    chosen = {language: next((name for name in names if name in usable), None) for language, names in ENGINES_OF.items()}
    return tuple(
        replace(engine, chosen=tuple(language for language in engine.languages if chosen[language] == engine.name))
        for engine in found
    )


def deno_version() -> str | None:
    """The version of the Deno that is installed."""
    return _version("deno")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


async def _tried(name: str, version: str | None, languages: tuple[Language, ...], abilities: tuple[Ability, ...]) -> Engine:
    kind = Kind(name, allow_eval=False, allow_wasm=False, memory_mb=256)
    try:
        launcher = Launcher(launch_for(kind))  # the least strength at which programs are run unless someone asks for less
        report = await launcher.start()
        await launcher.close()
    except GloveportError as error:
        return Engine(name, version, languages, None, error.message, abilities)
    return Engine(name, version, languages, report.strength, None, abilities)
