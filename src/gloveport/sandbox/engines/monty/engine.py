"""Monty: the engine for Python where no jail holds CPython."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from functools import partial

from gloveport.errors import SandboxError
from gloveport.sandbox.engines.engine import Capability, ProcessOptions
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.worker import Worker
from gloveport.types import Language

PACKAGE = "pydantic-monty-runtime"
SUPPORTED_VERSION = "1.4."
ENVIRONMENT = {"TZ": "UTC"}


class MontyEngine:
    """Monty, from the `pydantic-monty` package: its worker is the jailed process."""

    name = "monty"
    languages: tuple[Language, ...] = ("python",)
    distribution = PACKAGE
    substitute = None
    builtin_modules: tuple[str, ...] = ()
    subset = "gloveport.sandbox.engines.monty.subset"
    capabilities = (
        Capability(
            "python", "yes", "a part of the language and the standard library; what is missing is named before the run"
        ),
        Capability("await", "yes", "top-level await and return; parallel calls with asyncio.gather"),
        Capability("eval", "yes", "eval and exec, in the interpreter itself: there is no native code"),
        Capability("classes", "no", "classes without inheritance, properties and most special methods; dataclasses work"),
        Capability("generators", "no", "no yield, async for, async with, del; comprehensions work"),
        Capability("network", "off", "fetch, by rules; there are no sockets"),
        Capability("files", "no", "there is no file system; tools read and write on the host"),
        Capability("packages", "no", "only Monty's part of the standard library can be imported"),
    )

    def version(self) -> str:
        """Return the version of the worker. Raise SandboxError when there is none, or one of another protocol."""
        return monty_version()

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the same options for every run: nothing is fixed at the start, so one pool serves all."""
        return ProcessOptions(wanted.engine, allow_eval=True, memory_mb=0)

    def launch(self, options: ProcessOptions) -> Launch:
        """Return how to start a Monty worker."""
        del options
        monty_version()
        return Launch(executable=find_monty(), argv=("monty", "subprocess"), env=ENVIRONMENT, files={}, joins_threads=True)

    async def start(self, launcher: Launcher) -> Worker:
        """Start a process and return its worker once the prelude has run in it."""
        from gloveport.sandbox.engines.monty.worker import MontyWorker, check_out

        return await MontyWorker.start(launcher, partial(check_out, version=monty_version()))


def monty_version() -> str:
    """Return the version of the installed worker. Raise SandboxError when it is missing or not supported."""
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise SandboxError("the engine `monty` is not installed", hint='pip install "pydantic-monty>=1.4,<1.5"') from None
    if not version.startswith(SUPPORTED_VERSION):
        hint = 'pip install "pydantic-monty>=1.4,<1.5"'
        message = f"the engine `monty` has version {version}, and {SUPPORTED_VERSION}x is required"
        raise SandboxError(message, hint=hint)
    return version


def find_monty() -> str:
    """Return the path of the worker's binary."""
    beside = os.path.join(sysconfig.get_path("scripts"), "monty")
    found = beside if os.path.isfile(beside) else shutil.which("monty")
    if found is None:
        raise SandboxError("the engine `monty` has no binary", hint=f"pip install --force-reinstall {PACKAGE}")
    return os.path.realpath(found)


ENGINE = MontyEngine()
