"""The globals of the program, the modules of its project, its environment, and the closed exits of the process."""

from __future__ import annotations

import builtins
import errno
import json
import keyword
import os
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from .errors import NO_EXIT, ToolError
from .steps import step
from .tools import Calls, Node
from .web import Web

GETTER = "__getToolInterface"
LISTING = "__interfaces"


def leave(*args: Any) -> NoReturn:
    """Refuse to exit: a program ends by returning."""
    raise SystemExit(NO_EXIT)


def refuse_process(command: str) -> NoReturn:
    """Refuse to start a process. The C library would only return a status, which programs seldom look at."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


class NoInput:
    """The global `input` of a run without input. Calling it fails: there is no terminal."""

    def __call__(self, prompt: object = "") -> NoReturn:
        raise EOFError("input() is not offered here: nobody is at a terminal; the run can be given an `input` instead")

    def _missing(self, *args: Any) -> NoReturn:
        raise NameError("name 'input' is not defined", name="input")

    __getitem__ = __iter__ = __len__ = __contains__ = _missing

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._missing()


def names(setup: dict[str, Any], calls: Calls, tools: Node, web: Web, emit: Callable[[Any], None]) -> dict[str, Any]:
    """Return the globals of one run."""
    given = {
        "tools": tools,
        "codemode": tools,
        "emit": emit,
        "fetch": web.fetch,
        "step": step,
        "state": setup.get("state", {}),
        "ToolError": ToolError,
        "exit": leave,
        "quit": leave,
        "input": setup["input"] if setup["has_input"] else NoInput(),
        GETTER: lambda name: calls.sync("interface", [name]),
    }
    if LISTING in setup["code"]:
        given[LISTING] = calls.sync("interfaces", [])
    taken = vars(builtins)
    for name in setup["sources"]:
        if name not in taken and name not in given and not keyword.iskeyword(name):
            given[name] = tools[name]
    return given


def set_environment(env: dict[str, str]) -> None:
    """Add the run's environment to os.environ, which is empty since `patch_process`."""
    if env:
        os.environ.update(env)
        _set_for_libraries()


def _set_for_libraries() -> None:
    """Set the environment of the C library, which the program does not see."""
    os.putenv("TZ", "UTC")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.putenv(name, "1")  # for libraries that would start threads, which a guest can't


def patch_process() -> None:
    """Remove functions that end or fork the process, the environment, and what distinguishes one process from another."""
    os.environ.clear()
    _set_for_libraries()
    os._exit = os.abort = leave
    os.system = refuse_process
    os.getpid = lambda: 1
    os.getppid = lambda: 0
    os.cpu_count = lambda: 1
    threading.get_native_id = lambda: 1
    sys.argv = ["program.py"]
    sys.executable = ""


# The project's own modules, whose texts the host sends: they are found on `sys.path`, as if they were files at their place.


def install_project(text: str) -> None:
    """Let programs import the modules of a project: `{"folder": …, "files": {path: source}}`."""
    given = json.loads(text)
    folder: str = given["folder"]
    sources = {f"{folder}/{path}": source for path, source in given["files"].items()}
    folders = {folder}
    for path in sources:
        above = path.rpartition("/")[0]
        while above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]

    def hook(path: str) -> _Finder:
        path = path.rstrip("/")
        if path not in folders:
            raise ImportError
        return _Finder(path, sources, folders)

    sys.path_hooks.insert(0, hook)
    sys.path.append(folder)


class _Finder:
    """Finds the modules of one folder."""

    def __init__(self, folder: str, sources: dict[str, str], folders: set[str]) -> None:
        self._folder = folder
        self._sources = sources
        self._folders = folders

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        place = f"{self._folder}/{name.rpartition('.')[2]}"
        for path, is_package in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            if path in self._sources:
                spec = ModuleSpec(name, _Loader(path, self._sources[path]), origin=path, is_package=is_package)
                spec.has_location = True
                if is_package:
                    spec.submodule_search_locations = [place]
                return spec
        if place not in self._folders:
            return None
        spec = ModuleSpec(name, None, is_package=True)  # a folder without `__init__.py`
        spec.submodule_search_locations = [place]
        return spec


class _Loader:
    """Runs one module."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source

    def create_module(self, spec: ModuleSpec) -> None: ...

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, self._path, "exec", dont_inherit=True), vars(module))

    def get_source(self, name: str) -> str:
        """Return its text, for tracebacks and `inspect`."""
        return self._source
