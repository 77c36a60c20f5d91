"""Let a project's functions import only those files of the project that the user has trusted, as they were then (M6).

The digest of one file says nothing about what it imports. So the interpreter asks here, for as long as the process lives:

- A finder gives files below the project's folder a loader that reads the source, checks its digest and compiles what it
  read. It never uses `__pycache__`, whose files can hold other code than the source.
- An audit hook refuses every other way to run a file below that folder as code: loaders of others, `runpy`, zip files,
  compiled files, shared libraries.

Files elsewhere (installed libraries) are imported as ever, and so is what the user's own files import. Text that a function
reads and executes itself is its own business.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from gloveport.errors import SourceError
from gloveport.sources.functions.importable_files import below


@dataclass(frozen=True, slots=True)
class TrustedFiles:
    """The files that a source or a plugin of a project may import: their digests by path, and the project's folders."""

    source: str
    folders: tuple[str, ...]
    digests: Mapping[str, str]
    what: str = "source"
    """What messages call the owner; `plugin` for a plugin."""

    @property
    def owner(self) -> str:
        """The owner, as messages name it."""
        return f"the {self.what} {self.source}"


class _TrustedLoader(SourceFileLoader):
    """Compiles the source itself, after a check of exactly the bytes that it compiles."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the module."""
        data = self.get_data(self.path)
        _check(self.path, data)
        code = self.source_to_code(data, self.path)
        assert isinstance(code, CodeType)
        _checked_code[id(code)] = code
        return code


_guarded: dict[str, TrustedFiles] = {}  # by owner
_checked_code: weakref.WeakValueDictionary[int, CodeType] = weakref.WeakValueDictionary()
_loading = threading.local()


def guard(files: TrustedFiles) -> None:
    """From now on refuse to import other files below the source's folders than the trusted ones."""
    if not _guarded:
        sys.addaudithook(_audit)
    _guarded[files.owner] = files
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    sys.meta_path.insert(0, _finder)


def spec_of(name: str, path: str) -> ModuleSpec | None:
    """Return the spec of a trusted file, with the loader that checks it."""
    return importlib.util.spec_from_file_location(name, path, loader=_TrustedLoader(name, path))


@contextmanager
def users_own() -> Iterator[None]:
    """Import in this block what the user has named: it needs no trust."""
    before = getattr(_loading, "users_own", False)
    _loading.users_own = True
    try:
        yield
    finally:
        _loading.users_own = before


class _Finder:
    """Asks the other finders, and checks what they find below a guarded folder."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find; a file that is not trusted is an error."""
        spec = next(
            filter(None, (_ask(finder, name, path, target) for finder in sys.meta_path if finder is not self)), None
        )
        if spec is None or not spec.has_location or spec.origin is None or not _is_guarded(spec.origin):
            return spec
        if isinstance(spec.loader, SourceFileLoader):
            _check(spec.origin)  # now, so that an optional import can't go on without it
            spec.loader, spec.cached = _TrustedLoader(spec.loader.name, spec.origin), None
        elif not isinstance(spec.loader, ExtensionFileLoader):
            raise _refusal(spec.origin, "is not a source file")
        return spec


_finder = _Finder()


def _ask(finder: Any, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    find = getattr(finder, "find_spec", None)
    return find(name, path, target) if find is not None else None


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "exec":
        code = args[0]
        known = isinstance(code, CodeType) and _checked_code.get(id(code)) is code
        if isinstance(code, CodeType) and not known and _is_guarded(code.co_filename):
            raise _refusal(code.co_filename, "is not imported by its name")
    elif event in ("import", "ctypes.dlopen"):
        path = args[1 if event == "import" else 0]  # of a shared library; None for other modules
        if isinstance(path, str) and _is_guarded(path):
            _check(path)


def _is_guarded(path: str) -> bool:
    """Return whether a file lies below a guarded folder, and a project's functions run it.

    The nearest caller below that folder decides: a project's, or a file that the user has named. Without one, the caller is
    Gloveport, or a thread of a library: then the file is a project's, unless the user's own is being loaded.
    """
    if path.startswith("<") or not any(below(path, files.folders) for files in _guarded.values()):
        return False
    frame = sys._getframe(1)
    while frame is not None:
        values = frame.f_globals
        if isinstance(values.get("__loader__"), _TrustedLoader):
            return True
        file, name = values.get("__file__"), str(values.get("__name__"))
        if name.startswith("gloveport.") and name != __name__:
            break
        if isinstance(file, str) and any(below(file, files.folders) for files in _guarded.values()):
            return False
        frame = frame.f_back
    return not getattr(_loading, "users_own", False)


def _check(path: str, data: bytes | None = None) -> None:
    """Raise SourceError unless a source may import this file with this content."""
    real = os.path.realpath(path)
    if data is None:
        with open(real, "rb") as file:
            data = file.read()
    digest = hashlib.sha256(data).hexdigest()
    digests = [files.digests[real] for files in _guarded.values() if real in files.digests]
    if digest not in digests:
        raise _refusal(path, f"{'has changed since' if digests else 'was not there when'} you trusted the {{what}}")


def _refusal(path: str, problem: str) -> SourceError:
    files = next(each for each in _guarded.values() if below(path, each.folders))
    folder = next((folder for folder in files.folders if os.path.realpath(path).startswith(folder)), files.folders[0])
    shown = os.path.relpath(os.path.realpath(path), folder)
    command = f"gloveport tools trust {files.source}" if files.what == "source" else "gloveport config trust"
    hint = f"review it; `{command}` trusts the files that {files.owner} names"
    return SourceError(f"{files.owner} may not import {shown}: it {problem.format(what=files.what)}", hint=hint)
