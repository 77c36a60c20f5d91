"""The project's own modules in Python: their texts go to the sandbox with the first event, and so into the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from gloveport.errors import PackageError
from gloveport.host.packages.python_packages import loaded_names
from gloveport.packages.module_folder import PYTHON, ModuleFolder
from gloveport.types import Program


class PythonModules:
    """The Python modules in the folder that `[packages] modules` names."""

    def __init__(self, folder: ModuleFolder) -> None:
        self._folder = folder

    async def names(self) -> frozenset[str]:
        """Return the names that programs may import: of the folder's modules, and of folders with modules."""
        return _names(await asyncio.to_thread(self._folder.files, PYTHON))

    async def script(self, program: Program) -> str | None:
        """Return the modules, as a sandbox takes them; None if the program imports none. Raise PackageError."""
        wanted = {found.name for found in program.imports} | loaded_names(program.code)
        return await asyncio.to_thread(self._read) if wanted and wanted & await self.names() else None

    def _read(self) -> str:
        files: dict[str, str] = {}
        for path, content in self._folder.read(PYTHON).items():
            try:
                files[path] = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise PackageError(f"the project's module {path} is no text in UTF-8") from None
        return json.dumps({"folder": self._folder.mount, "files": files}, ensure_ascii=False)


def names_in(script: str | None) -> frozenset[str]:
    """Return the names that programs may import of the modules that a sandbox was given."""
    return frozenset() if script is None else _names(json.loads(script)["files"])


def _names(paths: Iterable[str]) -> frozenset[str]:
    found = (part for path in paths for part in path.removesuffix(".py").split("/"))
    return frozenset(part for part in found if part.isidentifier() and part != "__init__")
