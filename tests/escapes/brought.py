"""What a program may bring along, for the hostile programs: a writable workspace, and approved packages.

`make workspaces` sets BROUGHT. Then each of them runs in a session of its own, imports a package, and is tried in the engines
that have both. Threats S8, S16, D7 and D8.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.errors import WorkspaceError
from gloveport.importable import Importable, ModuleImport
from gloveport.packages.package import PackageId
from gloveport.packages.store import PackageStore
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.types import MIB
from tests.escapes.corpus import Escape
from tests.packages.approved import Approved

BROUGHT = "BROUGHT" in os.environ
WITH_FILES = frozenset({"deno", "cpython"})
QUOTA = WorkspaceQuota(4 * MIB, 200)
IMPORTABLE = Importable(packages=frozenset({"leaf"})) if BROUGHT else None
IMPORTS = (ModuleImport("leaf", "package", "import"),) if BROUGHT else ()
"""What `prepare` would find, for the programs that run past it."""


def engines(every: tuple[str, ...]) -> tuple[str, ...]:
    """Return the engines that the programs are tried in, of those of a language."""
    return tuple(each for each in every if each in WITH_FILES) if BROUGHT else every


@contextmanager
def approved() -> Iterator[None]:
    """Approve a package of npm and one of PyPI, each called `leaf`."""
    if not BROUGHT:
        yield
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o755)
        patch.setenv("XDG_DATA_HOME", folder)
        found = Approved()
        found.add("leaf@1.0.0", {"index.js": "module.exports = 'a leaf'"})
        found.add("pypi:leaf@1.0", {"leaf.py": "LEAF = 'a leaf'"})
        yield


def package_folders() -> tuple[tuple[str, int], ...]:
    """Return the folders of packages for a process that nothing but the jail surrounds."""
    tree = PackageStore().tree(PackageId.parse("pypi:leaf@1.0"))
    return ((str(tree), tree.stat().st_ino),)


def with_package(escape: Escape, code: str) -> str:
    """Return a program that also imports the package."""
    if not BROUGHT:
        return code
    return f"import leaf\n{code}" if escape.python else f"import 'leaf';\n{code}"


@asynccontextmanager
async def session(port: Gloveport, escape: Escape, number: int) -> AsyncIterator[dict[str, Any]]:
    """Yield the options of one run of a program: a session that no other run has."""
    if not BROUGHT:
        yield {}
        return
    name = f"{escape.path.stem[:40]}-{escape.path.suffix[1:]}-{number}"
    yield {"session": name}
    with suppress(WorkspaceError):  # a program that failed has left none
        await port.session(name).remove()
