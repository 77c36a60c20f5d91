"""What the programs of a port may import, and the modules that a run gets for what its program imports."""

from __future__ import annotations

import re

from gloveport.host.runs.run_request import RunRequest
from gloveport.sandbox.engines.registry import ENGINES
from gloveport.sandbox.start_event import RunModules
from gloveport.types import Importable, Program

FILE_MODULES = frozenset({"fs", "fs/promises"})
"""The modules of Node that a run has with a session."""
_MAY_IMPORT = re.compile(r"\b(?:import|require|export)\b")


class ProgramImports:
    """The modules that programs can import. A program that imports nothing costs one search of its text."""

    def importable(self, request: RunRequest) -> Importable | None:
        """Return what the program of a run may import; None if its text imports nothing."""
        if request.language == "python" or not _MAY_IMPORT.search(request.code):
            return None
        builtins = frozenset(ENGINES[request.options.engine].builtin_modules)
        return Importable(builtins=builtins | FILE_MODULES if request.session is not None else builtins)

    async def modules(self, program: Program) -> RunModules | None:
        """Return the modules for what a program imports; None if it imports nothing."""
        if not program.imports:
            return None
        return RunModules(tuple(dict.fromkeys(found.name for found in program.imports if found.kind == "builtin")))
