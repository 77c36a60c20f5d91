"""CPython: the engine for Python. The interpreter that runs Gloveport, without its site-packages, forked in the jail."""

from __future__ import annotations

import os
import platform
import sysconfig
from pathlib import Path

from gloveport.sandbox.engines.engine import Capability, ProcessOptions
from gloveport.sandbox.engines.zygote_launch import GUEST_FOLDER, guest_files, zygote_launch
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.worker import Worker
from gloveport.types import Language

ZONES = "/usr/share/zoneinfo"


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
        Capability("packages", "no", "only the standard library can be imported"),
    )

    def version(self) -> str:
        """Return the version of the interpreter that runs Gloveport."""
        return platform.python_version()

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the same options for every run, but for the workspace: nothing else is fixed at the start."""
        return ProcessOptions(wanted.engine, allow_eval=True, memory_mb=0, workspace=wanted.workspace)

    def launch(self, options: ProcessOptions) -> Launch:
        """Return how to start a zygote of this Python, whose guests run the main of the guest package."""
        zones = {ZONES: Folder(ZONES)} if os.path.isdir(ZONES) else {}
        return zygote_launch(
            {**guest_files(Path(__file__).parent), **_build_settings()}, zones, {}, workspace=options.workspace
        )

    async def start(self, launcher: Launcher) -> Worker:
        """Have the zygote fork a guest and return its worker once it is ready."""
        return await Worker.start(launcher)


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
