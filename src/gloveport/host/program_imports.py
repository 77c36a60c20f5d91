"""What the programs of a port may import, and the modules that a run gets for what its program imports."""

from __future__ import annotations

import re

from gloveport.config.packages import PackagesConfig
from gloveport.host.bundles.script_bundles import ScriptBundles
from gloveport.host.packages.python_packages import PackageFolders, PythonPackages
from gloveport.host.runs.run_request import RunRequest
from gloveport.packages.store import PackageStore
from gloveport.sandbox.engines.registry import ENGINES
from gloveport.sandbox.start_event import RunModules
from gloveport.types import Importable, Program, Recording, Strength

FILE_MODULES = frozenset({"fs", "fs/promises"})
"""The modules of Node that a run has with a session."""
_MAY_IMPORT = re.compile(r"\b(?:import|require|export)\b")


class ProgramImports:
    """The modules that programs can import. A program that imports nothing costs one search of its text."""

    def __init__(self, minimum: Strength, settings: PackagesConfig) -> None:
        self._allow = settings.allow
        self._python = PythonPackages(allow=settings.allow)
        self._scripts = ScriptBundles(minimum, settings, PackageStore())

    async def importable(self, request: RunRequest) -> Importable | None:
        """Return what the program of a run may import; None if its text imports nothing."""
        if request.language == "python":
            return self._python.importable(request)
        if not _MAY_IMPORT.search(request.code):
            return None
        builtins = frozenset(ENGINES[request.options.engine].builtin_modules)
        builtins |= FILE_MODULES if request.session is not None else frozenset()
        return await self._scripts.importable(builtins, lambda name: self._allow is None or name in self._allow)

    async def modules(self, program: Program) -> RunModules | None:
        """Return the modules for what a program imports; None if it imports nothing. Raise PackageError."""
        return await self._scripts.modules(program) if program.imports and program.language != "python" else None

    def supply(self, request: RunRequest, program: Program) -> RunRequest:
        """Return the request of a run with the packages that its process gets."""
        return self._python.supply(request, program) if request.language == "python" else request

    def folders_of(self, recording: Recording) -> PackageFolders:
        """Return the folders of the packages that a recorded run began with; raise PackageError if one has changed."""
        return self._python.folders_of(recording)

    async def close(self) -> None:
        """Give up the scripts that are being made."""
        await self._scripts.close()
