"""What a program may import, and what it imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ImportKind = Literal["builtin", "package", "file"]
ImportForm = Literal["import", "dynamic", "require"]


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """A module that a program imports: its name in the guest, where it comes from, and how the program imports it."""

    name: str
    kind: ImportKind
    form: ImportForm


@dataclass(frozen=True, slots=True)
class Importable:
    """What a program may import. `files` are the absolute paths of the project's modules in the guest.

    A relative import of a program is looked up in `beside`, then in `folder`, the place of those modules.
    """

    builtins: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    folder: str = "/root/skills"
    beside: str = "/workspace"

    def has(self, module: ModuleImport) -> bool:
        """Return whether a module is among these. The name of a package may go on with a path in it."""
        if module.kind == "builtin":
            return module.name in self.builtins
        if module.kind == "file":
            return module.name in self.files
        parts = module.name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            return False
        return "/".join(parts[: 2 if module.name.startswith("@") else 1]) in self.packages
