"""The engines that run programs, and what each can do here."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

from gloveport.errors import GloveportError
from gloveport.sandbox.deno import DenoOptions, deno_launch
from gloveport.sandbox.launcher import Launcher
from gloveport.types import Language, Strength


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that programs may want: `yes`, `no`, or `off` until a run's Gloveport allows it."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: its version and languages; whether it can be used here, how strongly it is jailed, or why it can't."""

    name: str
    version: str | None
    languages: tuple[Language, ...]
    strength: Strength | None
    problem: str | None
    abilities: tuple[Ability, ...]

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


async def engines() -> tuple[Engine, ...]:
    """Every engine, tried out."""
    return (await _deno(),)


def deno_version() -> str | None:
    """The version of the Deno that is installed."""
    try:
        return importlib.metadata.version("deno")
    except importlib.metadata.PackageNotFoundError:
        return None


async def _deno() -> Engine:
    languages: tuple[Language, ...] = ("typescript", "javascript")
    try:
        launcher = Launcher(deno_launch(DenoOptions()), minimum="none")
        report = await launcher.start()
        await launcher.close()
    except GloveportError as error:
        return Engine("deno", deno_version(), languages, None, error.message, DENO_ABILITIES)
    return Engine("deno", deno_version(), languages, report.strength, None, DENO_ABILITIES)
