"""How to start a zygote: a Python in the jail that holds a guest package, and that guests are forked from."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from gloveport.errors import SandboxError
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.launcher import Launch
from gloveport.types import MIB

GUEST_FOLDER = "/guest"
ZYGOTE_FOLDER = "/zygote"
PACKAGE = "gloveport_guest"

# The parts of -I except -E, which would ignore the hash seed. The environment holds nothing else.
FLAGS = ("-S", "-s", "-P", "-B")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "TZ": "UTC", "LD_BIND_NOW": "1"}
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from gloveport.sandbox.jail.zygote import main; main(*sys.argv[2:4])"

_JAIL = Path(__file__).parents[1] / "jail"
_ZYGOTE_MODULES = (
    "zygote",
    "channel",
    "confinement",
    "heap",
    "landlock",
    "limits",
    "namespaces",
    "prefault",
    "privileges",
    "seccomp",
    "syscalls",
    "workspace",
)
# These are of no use without a display, a network or tests, and would bring 40 libraries along.
_EXCLUDED_MODULES = frozenset({"ensurepip", "idlelib", "test", "tkinter", "_tkinter", "turtle", "turtledemo"})


def zygote_launch(
    files: Mapping[str, bytes],
    folders: Mapping[str, Folder],
    env: Mapping[str, str],
    *,
    own_code: bool = False,
    workspace: WorkspaceQuota | None = None,
    heap_mb: int = 0,
) -> Launch:
    """Return how to start a zygote of this Python with a guest package and other files in its root.

    `heap_mb` of the package's objects are kept together, so that they fit into large pages.
    """
    program, library = find_python()
    inside = f"/usr/{sys.platlibdir}/{os.path.basename(library)}"
    python = {inside: Folder(library, tuple(_modules(library)))}
    for dynamic in _dynamic_folders(library):
        python[f"{inside}/lib-dynload"] = Folder(dynamic, tuple(_extensions(dynamic)))
    return Launch(
        executable=program,
        argv=("python", *FLAGS, "-c", _BOOT, ZYGOTE_FOLDER, GUEST_FOLDER, "unpacked" if own_code else str(heap_mb * MIB)),
        env={**ENVIRONMENT, **env},
        files={**_zygote_files(), **files},
        folders={**python, **folders},
        zygote=True,
        own_code=own_code,
        workspace=workspace,
    )


def find_python() -> tuple[str, str]:
    """Return the base interpreter of this process and its standard library."""
    program = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    library = os.path.realpath(sysconfig.get_path("stdlib"))
    for landmark in (program, f"{library}/os.py"):
        if not os.path.isfile(landmark):
            raise SandboxError(
                f"the engine `cpython` can't be started: {landmark} is not a file",
                hint="run Gloveport with a Python that is installed as files, or use the engine `monty`",
            )
    return program, library


def _modules(library: str) -> Iterator[str]:
    """Yield the modules in the folder of the standard library, without anything installed beside them."""
    for name in sorted(os.listdir(library)):
        module = name.removesuffix(".py")
        if name == "__pycache__" or (module in sys.stdlib_module_names and module not in _EXCLUDED_MODULES):
            yield name


def _extensions(folder: str) -> Iterator[str]:
    for name in sorted(os.listdir(folder)):
        module = name.partition(".")[0]
        if name.endswith(".so") and module in sys.stdlib_module_names and module not in _EXCLUDED_MODULES:
            yield name


def _dynamic_folders(library: str) -> list[str]:
    beside = f"{sys.base_exec_prefix}/{sys.platlibdir}/{os.path.basename(library)}"
    places = (f"{folder}/lib-dynload" for folder in (library, beside))
    return [os.path.realpath(place) for place in places if os.path.isdir(place)][:1]


def _zygote_files() -> dict[str, bytes]:
    package = f"{ZYGOTE_FOLDER}/gloveport"
    folders = (package, f"{package}/sandbox", f"{package}/sandbox/jail")
    modules = {f"{folders[-1]}/{name}.py": (_JAIL / f"{name}.py").read_bytes() for name in _ZYGOTE_MODULES}
    return {f"{folder}/__init__.py": b"" for folder in folders} | modules


def guest_files(folder: Path) -> dict[str, bytes]:
    """Return the files of the package that the guests of this folder run."""
    package = folder / "guest" / PACKAGE
    found = {f"{GUEST_FOLDER}/{PACKAGE}/{path.relative_to(package)}": path for path in sorted(package.rglob("*.py"))}
    if not found:
        raise SandboxError(f"the guest package of {folder.name} is missing", hint="reinstall gloveport")
    return {guest: path.read_bytes() for guest, path in found.items()}
