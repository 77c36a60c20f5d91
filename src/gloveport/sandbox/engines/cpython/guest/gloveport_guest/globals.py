"""The globals of the program, its environment, and the closed exits of the process."""

from __future__ import annotations

import builtins
import errno
import keyword
import os
import sys
import threading
from collections.abc import Callable
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
    os.environ.update(env)
    os.putenv("TZ", "UTC")  # for the C library; the program does not see it
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.putenv(name, "1")  # for libraries that would start threads, which a guest can't


def patch_process() -> None:
    """Remove functions that end or fork the process, the environment, and what distinguishes one process from another."""
    os.environ.clear()
    os._exit = os.abort = leave
    os.system = refuse_process
    os.getpid = lambda: 1
    os.getppid = lambda: 0
    os.cpu_count = lambda: 1
    threading.get_native_id = lambda: 1
    sys.argv = ["program.py"]
    sys.executable = ""
