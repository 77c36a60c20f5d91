"""The project's own modules, which its programs may import: the code in one folder, read within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gloveport.errors import PackageError
from gloveport.types import MIB

MAX_FILES = 500
MAX_BYTES = 8 * MIB
MAX_DEPTH = 12
JAVASCRIPT = frozenset({".mjs", ".js", ".cjs", ".ts", ".mts", ".json"})
PYTHON = frozenset({".py"})


@dataclass(frozen=True, slots=True)
class ModuleFolder:
    """A folder of modules. In the guest it is `mount`."""

    path: Path
    mount: str = "/root/skills"

    def files(self, endings: frozenset[str]) -> tuple[str, ...]:
        """Return the paths of a language's modules, below the folder. Links are left out: they may lead anywhere (D8)."""
        found = sorted(self._walk(endings))
        if len(found) > MAX_FILES:
            raise PackageError(
                f"the folder of the project's modules holds more than {MAX_FILES}",
                hint="name a smaller folder as `modules`",
            )
        return tuple(found)

    def read(self, endings: frozenset[str]) -> dict[str, bytes]:
        """Return the modules of a language with their contents."""
        contents: dict[str, bytes] = {}
        left = MAX_BYTES
        for name in self.files(endings):
            with open(self.path / name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW)) as file:
                contents[name] = file.read(left + 1)
            left -= len(contents[name])
            if left < 0:
                raise PackageError(f"the project's modules have more than {MAX_BYTES // MIB} MiB")
        return contents

    def _walk(self, endings: frozenset[str]) -> Iterator[str]:
        count = 0
        for here, folders, names in os.walk(self.path):
            inside = os.path.relpath(here, self.path)
            depth = 0 if inside == "." else inside.count("/") + 1
            folders[:] = [
                each for each in folders if not each.startswith(".") and each != "node_modules" and depth < MAX_DEPTH
            ]
            for name in names:
                path = os.path.join(here, name)
                plain = os.path.splitext(name)[1] in endings and not name.startswith(".") and path.isprintable()
                if plain and os.path.isfile(path) and not os.path.islink(path):
                    yield os.path.normpath(os.path.join(inside, name))
                    count += 1
                    if count > MAX_FILES:
                        return
