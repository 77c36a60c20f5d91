"""How a zygote is started that has the modules of some tasks loaded, and that task processes are forked from."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import gloveport
from gloveport.errors import SandboxError
from gloveport.sandbox.engines.zygote_launch import guest_files, zygote_launch
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.launcher import Launch

PACKAGES_FOLDER = "/packages"
_OWN_PACKAGE = os.path.dirname(os.path.realpath(gloveport.__file__))


def task_launch(tasks: Sequence[str], packages: Sequence[str], modules: Sequence[str] = ()) -> Launch:
    """Return how to start processes for these tasks (`module:function`), which use these installed packages.

    `modules` are loaded in advance too: a process can load nothing by itself.
    """
    hosts = {"gloveport": _OWN_PACKAGE, **{name: _find_package(name) for name in packages}}
    folders = {f"{PACKAGES_FOLDER}/{name}": Folder(host, tuple(_entries(host))) for name, host in hosts.items()}
    # Each has its own variable: without namespaces, the jail replaces a value that is the path of a bound file.
    env = {f"GLOVEPORT_PACKAGE_{number}": f"{place}/__init__.py" for number, place in enumerate(folders)}
    env["GLOVEPORT_TASKS"], env["GLOVEPORT_MODULES"] = ",".join(tasks), ",".join(modules)
    return zygote_launch(guest_files(Path(__file__).parent), folders, env, own_code=True)


def _find_package(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin or os.path.basename(spec.origin) != "__init__.py":
        raise SandboxError(f"the package `{name}` is not installed as a folder", hint="reinstall gloveport")
    return os.path.dirname(os.path.realpath(spec.origin))


def _entries(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))
