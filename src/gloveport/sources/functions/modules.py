"""A Python module or file → its functions, to use as tools."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from gloveport.errors import GloveportError, OptionError
from gloveport.sources.functions import TOOL_ATTRIBUTE
from gloveport.sources.functions.trusted_imports import TrustedFiles, guard, spec_of, users_own


def load_module(spec: str, trusted: TrustedFiles | None = None) -> list[Callable[..., Any]]:
    """Return the public functions of `package.module` or of a `.py` file: those in `__all__`, else those defined in it.

    With `trusted`, it is a project's, and may import only these files of the project; without, it is the user's own.
    """
    module = import_from(spec, trusted)
    found = _listed(module, spec) if hasattr(module, "__all__") else _defined(module)
    if not found:
        hint = "write a public function in it, or name functions in __all__"
        raise OptionError(f"{spec} has no functions to use as tools", hint=hint)
    return found


def import_from(spec: str, trusted: TrustedFiles | None = None) -> ModuleType:
    """Import `package.module` or a `.py` file, as `load_module` does; raise OptionError."""
    with nullcontext(guard(trusted)) if trusted is not None else users_own():
        return _import_file(Path(spec), trusted) if is_file(spec) else _import(spec, lambda: importlib.import_module(spec))


def is_file(spec: str) -> bool:
    """Return whether the text names a file, not a module."""
    return spec.endswith(".py") or "/" in spec or "\\" in spec


def _listed(module: ModuleType, spec: str) -> list[Callable[..., Any]]:
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    if missing:
        raise OptionError(f"{spec} names {missing[0]} in __all__ but does not define it")
    values = [getattr(module, name) for name in module.__all__]
    return [value for value in values if callable(value) and not inspect.isclass(value)]


def _defined(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.isclass(value)
        and (getattr(value, TOOL_ATTRIBUTE, None) is not None or inspect.isfunction(value))
        and getattr(value, "__module__", None) == module.__name__
    ]


def _import_file(path: Path, trusted: TrustedFiles | None) -> ModuleType:
    path = Path(os.path.realpath(os.path.expanduser(path)))
    if not os.path.isfile(path):  # Path.is_file raises for a name that is too long
        raise OptionError(f"there is no file {path}", hint="name a .py file, or a module as package.module")
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # lets it import its neighbours; last, so that it shadows nothing

    def load() -> ModuleType:
        found = spec_of(name, str(path)) if trusted else importlib.util.spec_from_file_location(name, path)
        if found is None or found.loader is None:
            raise ImportError(f"{path.name} is not Python")
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    return _import(str(path), load)


def _import(spec: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except GloveportError:
        raise
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" ({Path(last[0].filename).name}, line {last[0].lineno})" if last and last[0].filename[0] != "<" else ""
        raise OptionError(f"{spec} can't be imported: {type(error).__name__}: {error}{place}") from error
