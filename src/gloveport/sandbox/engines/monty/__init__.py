"""The engine for Python that needs no whole Python: Monty, an interpreter in Rust, as the one process in the jail.

    host ── Driver (feed_start, resume) ──► `monty subprocess`, exec'd in the jail, one checkout, one run, killed

`pydantic_monty`'s own client starts its workers as children of its own process: out of reach of the fork server, the
jail, the limits and the kill. So the worker that the package brings is launched like Deno, and the host speaks to it as
the client's `feed_start` and `resume` do (`messages`: version 6 of the protocol, which 1.4 speaks; another is refused at
checkout). That leaves one process for each run, and no thread, child or library of Monty's on the host; what the worker
says is decoded here, under budgets, as the frames of every other guest are.

    protobuf ─► nodes (values) ─► messages (requests, answers) ─► driver (one run) ─► worker (what the pool holds)
    world (clock, randomness, environment) · output (lines) · failures (ToolError) · lacks (what Monty does not have)
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig

from gloveport.errors import SandboxError
from gloveport.sandbox.launcher import Launch

PACKAGE = "pydantic-monty-runtime"
SPOKEN = "1.4."
ENVIRONMENT = {"TZ": "UTC"}


def monty_launch() -> Launch:
    """How to start a Monty worker."""
    monty_version()
    return Launch(executable=find_monty(), argv=("monty", "subprocess"), env=ENVIRONMENT, files={})


def monty_version() -> str:
    """The version of the worker that is installed; SandboxError when there is none, or one of another protocol."""
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise SandboxError("the engine `monty` is not installed", hint='pip install "pydantic-monty>=1.4,<1.5"') from None
    if not version.startswith(SPOKEN):
        hint = 'pip install "pydantic-monty>=1.4,<1.5"'
        raise SandboxError(f"the engine `monty` is of version {version}, and {SPOKEN}x is required", hint=hint)
    return version


def find_monty() -> str:
    """The path of the worker's binary."""
    beside = os.path.join(sysconfig.get_path("scripts"), "monty")
    found = beside if os.path.isfile(beside) else shutil.which("monty")
    if found is None:
        raise SandboxError("the engine `monty` has no binary", hint=f"pip install --force-reinstall {PACKAGE}")
    return os.path.realpath(found)
