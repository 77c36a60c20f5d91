"""CPython: the engine for Python. The interpreter that runs Gloveport, without its site-packages, forked in the jail."""

from __future__ import annotations

import os
import platform
import sysconfig
from pathlib import Path

from gloveport.sandbox.engines.engine import Capability, ProcessOptions
from gloveport.sandbox.engines.zygote_launch import GUEST_FOLDER, guest_files, zygote_launch
from gloveport.sandbox.jail.elf import default_directories
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.worker import Worker
from gloveport.types import Language

ZONES = "/usr/share/zoneinfo"
PACKAGES_FOLDER = "/packages"
HEAP_MB = 7  # less than the modules that are loaded in advance take
# PEP 600 lets wheels expect these of the system, beside libc itself; PyPI's auditwheel puts all others into the wheel.
WHEEL_LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")


class CPythonEngine:
    """CPython, forked from a zygote. It runs native code, so it needs a jail that holds native code."""

    name = "cpython"
    languages: tuple[Language, ...] = ("python",)
    distribution = None
    subset = None
    substitute = "monty"
    builtin_modules: tuple[str, ...] = ()
    capabilities = (
        Capability("python", "yes", f"the whole language and standard library of Python {platform.python_version()}"),
        Capability("await", "yes", "top-level await and return; parallel calls with asyncio.gather"),
        Capability("eval", "yes", "eval, exec and ctypes run native code, and win nothing in the jail"),
        Capability("threads", "no", "threads and processes can't be started; asyncio works"),
        Capability("network", "off", "fetch and urllib.request, by rules; sockets are refused"),
        Capability("files", "off", "/workspace in runs with session=; else only the standard library can be read"),
        Capability("packages", "off", "packages that the user approved with `gloveport packages add`"),
    )

    def version(self) -> str:
        """Return the version of the interpreter that runs Gloveport."""
        return platform.python_version()

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the same options for every run, but for workspace and packages: nothing else is fixed at the start."""
        return ProcessOptions(
            wanted.engine, allow_eval=True, memory_mb=0, workspace=wanted.workspace, packages=wanted.packages
        )

    def launch(self, options: ProcessOptions) -> Launch:
        """Return how to start a zygote of this Python, whose guests run the main of the guest package."""
        folders = {ZONES: Folder(ZONES)} if os.path.isdir(ZONES) else {}
        folders |= {f"{PACKAGES_FOLDER}/{number:03}": Folder(path) for number, (path, _) in enumerate(options.packages)}
        folders |= _system_libraries() if options.packages else {}
        # Each has its own variable: without namespaces, the jail replaces a value that is the path of a bound folder.
        env = {f"GLOVEPORT_PACKAGE_{place[-3:]}": place for place in folders if place.startswith(PACKAGES_FOLDER)}
        if options.workspace is not None:
            env["GLOVEPORT_WORKSPACE"] = options.workspace.path
        files = {**guest_files(Path(__file__).parent), **_build_settings()}
        return zygote_launch(files, folders, env, workspace=options.workspace, heap_mb=HEAP_MB)

    async def start(self, launcher: Launcher) -> Worker:
        """Have the zygote fork a guest and return its worker once it is ready."""
        return await Worker.start(launcher)


def _system_libraries() -> dict[str, Folder]:
    """Return the libraries that binary wheels take from the system, in the folders where the loader looks for them."""
    found: dict[str, Folder] = {}
    for name in WHEEL_LIBRARIES:
        place = next((each for each in default_directories(platform.machine()) if os.path.isfile(f"{each}/{name}")), None)
        if place is not None:
            found[place] = Folder(place, (*(found[place].entries or () if place in found else ()), name))
    return found


def _build_settings() -> dict[str, bytes]:
    """Return the module that `sysconfig` reads, without paths of the machine that Python was built or is installed on."""
    kept = {
        name: value
        for name, value in sysconfig.get_config_vars().items()
        if isinstance(value, int) or (isinstance(value, str) and "/" not in value)
    }
    text = f"build_time_vars = {kept | {'TZPATH': ZONES}!r}\n"
    return {f"{GUEST_FOLDER}/{sysconfig._get_sysconfigdata_name()}.py": text.encode()}  # pyright: ignore


ENGINE = CPythonEngine()
