"""What the programs of a port may import, and the modules that a run gets for what its program imports."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from gloveport.config.packages import PackagesConfig
from gloveport.errors import PackageError
from gloveport.host.bundles.script_bundles import ScriptBundles
from gloveport.host.packages.python_modules import PythonModules, names_in
from gloveport.host.packages.python_packages import PackageFolders, PythonPackages, common
from gloveport.host.runs.run_request import RunRequest
from gloveport.packages.module_folder import ModuleFolder
from gloveport.packages.store import PackageStore
from gloveport.sandbox.engines.registry import every_engine
from gloveport.sandbox.start_event import RunModules, modules_of
from gloveport.types import Importable, Program, Recording, Strength

FILE_MODULES = frozenset({"fs", "fs/promises"})
"""The modules of Node that a run has with a session."""
_MAY_IMPORT = re.compile(r"\b(?:import|require|export)\b")


class ProgramImports:
    """The modules that programs can import. A program that imports nothing costs one search of its text.

    `of_agent` returns the packages that the settings list for an agent, None if they list none. A run may import the
    packages that this list, `[packages] allow` and its own list have in common.
    """

    def __init__(
        self, minimum: Strength, settings: PackagesConfig, of_agent: Callable[[str], frozenset[str] | None]
    ) -> None:
        self._allow = None if settings.allow is None else frozenset(settings.allow)
        self._of_agent = of_agent
        self._store = PackageStore()
        self._python = PythonPackages(self._store)
        folder = None if settings.modules is None else ModuleFolder(settings.modules, settings.modules_mount)
        self._modules = None if folder is None else PythonModules(folder)
        self._scripts = ScriptBundles(minimum, folder, settings.workspace_mount, self._store)
        self.modules_mount = None if folder is None else folder.mount

    async def importable(self, request: RunRequest) -> Importable | None:
        """Return what the program of a run may import; None if its text imports nothing."""
        if request.language == "python":
            found = self._python.importable(self._narrowed(request))
            return found and replace(found, packages=found.packages | await self._module_names(request))
        if not _MAY_IMPORT.search(request.code):
            return None
        builtins = frozenset(every_engine()[request.options.engine].builtin_modules)
        builtins |= FILE_MODULES if request.session is not None else frozenset()
        if imports := _recorded(request).imports:  # it goes on with the script that it began with
            return self._scripts.importable_again(builtins, imports)
        return await self._scripts.importable(builtins, self._narrowed(request).packages)

    async def _module_names(self, request: RunRequest) -> frozenset[str]:
        """Return the names of the project's own modules in Python; for a run that is resumed, those that it began with."""
        if request.resumed is not None:
            return names_in(_recorded(request).script)
        return frozenset() if self._modules is None else await self._modules.names()

    def _narrowed(self, request: RunRequest) -> RunRequest:
        """Return the request with the packages that the run may import after all lists."""
        allowed = common((self._allow, self._of_agent(request.agent), request.packages))
        return request if allowed == request.packages else replace(request, packages=allowed)

    def packages_of(self, agent: str) -> list[str]:
        """Return what programs of an agent may import, as `npm:zod`, without packages that only others require."""
        try:
            approved = self._store.approved()
        except PackageError:  # a run that imports something says so
            return []
        required = {each for package in approved.values() for each in package.requires}
        names = {f"{each.ecosystem}:{each.name}" for each in approved.keys() - required}
        allowed = common((self._allow, self._of_agent(agent)))
        listed = names if allowed is None else allowed & {f"{each.ecosystem}:{each.name}" for each in approved}
        return sorted(listed)

    def is_approved(self, package: str) -> bool:
        """Return whether a package is approved that a program may not import: then a list leaves it out."""
        try:
            return any(f"{each.ecosystem}:{each.name}" == package for each in self._store.approved())
        except PackageError:
            return False

    async def modules(self, program: Program) -> RunModules | None:
        """Return the modules for what a program imports; None if it imports nothing. Raise PackageError."""
        if program.language == "python":
            names = {found.name.partition(".")[0] for found in program.imports}
            script = None if self._modules is None else await self._modules.script(program)
            return RunModules(script=script, imports=tuple(sorted(names))) if names or script else None
        return await self._scripts.modules(program) if program.imports else None

    def supply(self, request: RunRequest, program: Program) -> RunRequest:
        """Return the request of a run with the packages that its process gets."""
        if request.language != "python" or program.importable is None:
            return request
        return self._python.supply(self._narrowed(request))

    def folders_of(self, recording: Recording) -> PackageFolders:
        """Return the folders of the packages that a recorded run began with; raise PackageError if one has changed."""
        return self._python.folders_of(recording)

    async def close(self) -> None:
        """Give up the scripts that are being made."""
        await self._scripts.close()


def _recorded(request: RunRequest) -> RunModules:
    """Return the modules that a run has begun with which is resumed."""
    events = request.resumed.history.recording.events if request.resumed is not None else ()
    return modules_of(events[0]) if events else RunModules()
