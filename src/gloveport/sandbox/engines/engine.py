"""What an engine is to the rest of Gloveport: the `Engine` Protocol, and the values that it speaks of."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.pool import WorkerLaunch
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import Language


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The options that are fixed when a process starts. They are the key of its pool."""

    engine: str
    allow_eval: bool = False
    allow_wasm: bool = False
    memory_mb: int = 256
    workspace: WorkspaceQuota | None = None
    packages: tuple[tuple[str, int], ...] = ()  # folders of approved packages, with the inode: one made anew is another


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that a program may need. `off` means that a `Gloveport` must allow it first."""

    name: str
    state: Literal["yes", "no", "off"]
    detail: str


class Engine(Protocol):
    """A way to run programs in a jailed process. Each engine is a folder here and a line in `registry`.

    `distribution` is the package that it comes with, if any. `substitute` names the engine that runs its languages where
    the jail is too weak for this one. `subset` is the module whose `SUBSET` tells `prepare` what the engine lacks of its
    languages; None when it lacks nothing. Only the processes that read programs import it. `builtin_modules` are the
    modules of Node that programs may import.
    """

    name: str
    languages: tuple[Language, ...]
    distribution: str | None
    capabilities: tuple[Capability, ...]
    substitute: str | None
    subset: str | None
    builtin_modules: tuple[str, ...]

    def version(self) -> str:
        """Return the installed version. Raise SandboxError when the engine can't be used."""
        ...

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the options that the engine fixes at the start. Raise OptionError for one that it can't grant."""
        ...

    def launch(self, options: ProcessOptions) -> WorkerLaunch:
        """Return how to start a process. Raise SandboxError when the engine is not installed."""
        ...

    def start(self, launcher: Any) -> Awaitable[RunWorker]:
        """Start a process with a launcher that `launch` has described; return its worker once it is ready for a program."""
        ...


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
