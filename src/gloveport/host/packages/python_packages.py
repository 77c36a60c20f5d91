"""The packages of PyPI that Python programs may import, and those that the process of a run gets."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gloveport.errors import OptionError, PackageError
from gloveport.host.runs.run_request import RunRequest
from gloveport.packages.package import Package, PackageId, PackageRequest
from gloveport.packages.store import PackageStore
from gloveport.types import Importable, Recording

_PYTHON_IMPORT = re.compile(r"(?:\bfrom\s+([\w.]+)\s*)?\bimport\b\s*([^\n;#]{0,300})")
_LOADED = re.compile(r"\b(?:import_module|__import__)\(\s*[\"'](\w+)")
PACKAGE_ENGINES = frozenset({"cpython"})
"""The engines whose Python programs can import packages."""

PackageFolders = tuple[tuple[str, int], ...]
"""Folders of the host with their inodes."""

Integrities = Mapping[str, str]
"""The hashes of packages, by their ids."""


MAX_CHOICES = 64


class _Choice:
    """The packages that a run may import, with their modules, folders, and hashes by package id."""

    def __init__(self, packages: Mapping[PackageId, Package], store: PackageStore) -> None:
        self.modules = frozenset(module for package in packages.values() for module in package.modules)
        self.trees = tuple(str(store.tree(each)) for each in sorted(packages))
        self.integrities = {str(each): packages[each].integrity for each in sorted(packages)}

    def folders(self) -> PackageFolders:
        """Return the folders with the inodes that they have now."""
        try:
            return tuple((tree, os.stat(tree).st_ino) for tree in self.trees)
        except OSError as error:
            hint = "ask the user to remove the package and to add it again"
            raise PackageError(
                f"the files of a package are gone: {os.path.basename(str(error.filename))}", hint=hint
            ) from None


class PythonPackages:
    """The packages that Python programs can import. A program that imports none costs one search of its text."""

    def __init__(self, store: PackageStore | None = None) -> None:
        self._store = store or PackageStore()
        self._choices: dict[frozenset[str] | None, tuple[Mapping[PackageId, Package], _Choice]] = {}  # by what is allowed

    def importable(self, request: RunRequest) -> Importable | None:
        """Return what a Python program may import; None if its text names nothing but the standard library."""
        if request.options.engine not in PACKAGE_ENGINES or not _imports_packages(request.code):
            return None
        return Importable(packages=self._of_run(request).modules)

    def supply(self, request: RunRequest) -> RunRequest:
        """Return the request of a Python run with the packages that its process gets: all that it may import."""
        chosen = self._of_run(request)
        options = replace(request.options, packages=chosen.folders())
        return replace(request, options=options, supplied=chosen.integrities)

    def folders_of(self, recording: Recording) -> tuple[tuple[str, int], ...]:
        """Return the folders of the packages that a recorded run began with; raise PackageError if one has changed."""
        return _Choice(self.recorded(recording.events[0]), self._store).folders() if recording.events else ()

    def recorded(self, start: bytes) -> Mapping[PackageId, Package]:
        """Return the packages that a recorded run began with; raise PackageError unless all are as they were."""
        stated = recorded_packages(start)
        approved = self._store.approved() if stated else {}
        found: dict[PackageId, Package] = {}
        for name, integrity in stated.items():
            package = approved.get(PackageId.parse(name))
            if package is None or package.integrity != integrity:
                problem = "is not approved any more" if package is None else "has another hash now"
                raise PackageError(
                    f"this run can't go on: it began with {name}, which {problem}",
                    code="package-changed",
                    hint=f"ask the user to add {name} again" if package is None else None,
                )
            found[package.id] = package
        return found

    def _of_run(self, request: RunRequest) -> _Choice:
        """Return the packages that a run may import."""
        if request.resumed is not None and (events := request.resumed.history.recording.events):
            return _Choice(self.recorded(events[0]), self._store)
        approved = self._store.approved()
        read, chosen = self._choices.get(request.packages, (None, None))
        if chosen is None or read is not approved:
            chosen = _Choice(_with_required(approved, request.packages), self._store)
            if len(self._choices) >= MAX_CHOICES:
                self._choices.clear()
            self._choices[request.packages] = approved, chosen
        return chosen


def _with_required(approved: Mapping[PackageId, Package], names: frozenset[str] | None) -> Mapping[PackageId, Package]:
    """Return the approved packages of these names, or all, with all that they require."""
    chosen = [each for each in approved if each.ecosystem == "pypi" and (names is None or f"pypi:{each.name}" in names)]
    found: dict[PackageId, Package] = {}
    while chosen:
        each = chosen.pop()
        if each not in found:
            if each not in approved:  # removed by hand
                raise PackageError(f"{each} is required by a package, and is not approved")
            found[each] = approved[each]
            chosen += approved[each].requires
    return found


def recorded_packages(start: bytes) -> Integrities:
    """Return the packages that the first event of a run names, with their hashes."""
    if b'"packages":' not in start:
        return {}
    setup = json.loads(start)[2]
    found = setup.get("packages", {})
    return found if isinstance(found, dict) else {}


def common(lists: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Return the packages that are in all lists; None stands for a list of all packages."""
    stated = [names for names in lists if names is not None]
    return frozenset.intersection(*stated) if stated else None


def checked_names(names: Iterable[str] | None, of: str) -> frozenset[str] | None:
    """Return the names of packages that an option or a setting lists; raise OptionError for one that names none."""
    if names is None:
        return None
    if isinstance(names, str):
        raise OptionError(f'{of} must be a list of packages such as "pypi:numpy", not {names!r:.60}')
    found = [PackageRequest.parse(name) for name in names]
    if wrong := next((each for each in found if each.versions), None):
        raise OptionError(f"{of} lists packages without their versions, not {wrong}")
    return frozenset(f"{each.ecosystem}:{each.name}" for each in found)


def loaded_names(code: str) -> set[str]:
    """Return the modules that a text loads by functions."""
    return set(_LOADED.findall(code))


def _imports_packages(code: str) -> bool:
    """Return whether a text may import something that is not in the standard library."""
    if "import" not in code:
        return False
    names = loaded_names(code)
    for package, listed in _PYTHON_IMPORT.findall(code):
        names.update([package] if package else [part.split()[0] for part in listed.split(",") if part.split()])
    return not {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
