"""The contenders: what to install, what to run, and the isolation that each claims.

Each contender, ours included, runs in a process of its own behind a pipe (`beside/worker.py`). Those from PyPI get a virtual
environment below `.interop`, created at first use. A new contender is one more row.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import dialects
from benchmarks.dialects import Programs

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".interop"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to run a program that a model wrote. Without `packages` it runs in our environment; `engine` names one of ours."""

    name: str
    module: str
    programs: Programs
    isolation: str
    packages: tuple[str, ...] = ()
    engine: str = ""
    language: str = "python"
    check_types: bool = False


FRESH = "a fresh process for each run, jailed: namespaces, Landlock, seccomp, limits of the kernel"
OWN_INTERPRETER = "an interpreter of its own, which knows no files and no sockets"


def ours(engine: str, language: str, programs: Programs, isolation: str) -> tuple[Contender, Contender]:
    """Return the contenders for one of our engines: the library, and `serve` or `mcp`."""
    common: dict[str, Any] = {"engine": engine, "language": language, "isolation": isolation}
    return (
        Contender(f"Gloveport, {engine}", "gloveport_engine", programs, **common),
        Contender(f"Gloveport, {engine}, types checked", "gloveport_engine", programs, check_types=True, **common),
    )


CONTENDERS = (
    *ours("deno", "typescript", dialects.TYPESCRIPT, FRESH),
    *ours("quickjs", "typescript", dialects.TYPESCRIPT, f"an interpreter without a compiler to machine code, in {FRESH}"),
    *ours("cpython", "python", dialects.OURS_PYTHON, FRESH),
    *ours("monty", "python", dialects.OURS_PYTHON, f"{OWN_INTERPRETER}, in {FRESH}"),
    Contender(
        "FastMCP 4.1.2, code mode",
        "fastmcp_code_mode",
        dialects.FASTMCP,
        f"{OWN_INTERPRETER} (Monty), in a fresh process for each run, without a jail",
        ("fastmcp[code-mode]==4.1.2", "pydantic-monty<1.5"),
    ),
    Contender(
        "Monty 1.4 alone",
        "monty_alone",
        dialects.MONTY,
        f"{OWN_INTERPRETER}, in a process that serves one run after another, without a jail",
        ("pydantic-monty<1.5",),
    ),
    Contender(
        "smolagents 1.26, LocalPythonExecutor",
        "smolagents_local",
        dialects.SMOLAGENTS,
        "walks the syntax tree in the host's process; its documentation says that it is no sandbox",
        ("smolagents==1.26.0",),
    ),
    Contender(
        "code-mode 1.1 (UTCP)",
        "code_mode_utcp",
        dialects.UTCP,
        "RestrictedPython in a thread of the host's process",
        ("code-mode==1.1.0", "utcp<1.2"),  # its client can't be constructed with utcp 1.2, which lacks a method
    ),
    Contender("control: Deno, all allowed", "plain_deno", dialects.TYPESCRIPT, "none; a fresh process for each run"),
    Contender("control: Python's `exec`", "plain_python", dialects.MONTY, "none; in the host's process"),
)


class PeerError(Exception):
    """A contender can't be installed or started, or its program failed."""


def interpreter(name: str, packages: tuple[str, ...]) -> Path:
    """Return the interpreter of an environment below `.interop` with these packages, and create it if it is missing."""
    folder = ENVIRONMENTS / name
    python, mark = folder / "bin" / "python", folder / "ready"
    if not mark.exists() or mark.read_text() != " ".join(packages):
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, capture_output=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=900)
        except (subprocess.SubprocessError, OSError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            raise PeerError(f"could not be installed: {said[-1] if said else error}") from None
        mark.write_text(" ".join(packages))
    return python


class Running:
    """The process of a contender."""

    def __init__(self, contender: Contender, *, seconds: int = 60, memory_mb: int = 256) -> None:
        self.contender = contender
        self._options = {
            "seconds": seconds,
            "memory_mb": memory_mb,
            "engine": contender.engine,
            "language": contender.language,
            "check_types": contender.check_types,
        }
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    async def start(self) -> Running:
        """Wait until it accepts programs and return self."""
        one = self.contender
        python = await asyncio.to_thread(interpreter, one.module, one.packages) if one.packages else sys.executable
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "" if one.packages else os.pathsep.join(sys.path)}
        self._process = await asyncio.create_subprocess_exec(
            python,
            HERE / "beside" / "worker.py",
            one.module,
            json.dumps(self._options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            limit=2**24,
        )
        ready = self._expect(0)
        self._listening = asyncio.create_task(self._listen())
        try:
            await asyncio.wait_for(ready, START_SECONDS)
        except (TimeoutError, PeerError):
            await self.close()
            raise PeerError("did not start") from None
        return self

    async def run(self, code: str, seconds: float = 120.0) -> Any:
        """Run a program and return its value. Raises PeerError if it fails, TimeoutError if no reply comes in time."""
        number = next(self._numbers)
        answer = self._expect(number)
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"id": number, "code": code}).encode() + b"\n")
        return await asyncio.wait_for(answer, seconds)

    def _expect(self, number: int) -> asyncio.Future[Any]:
        self._asked[number] = asyncio.get_running_loop().create_future()
        return self._asked[number]

    async def _listen(self) -> None:
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            future = self._asked.pop(message["id"])
            if future.done():
                continue
            if "error" in message:
                future.set_exception(PeerError(message["error"]))
            else:
                future.set_result(message["value"])
        for future in self._asked.values():
            if not future.done():
                future.set_exception(PeerError("its process ended"))

    async def close(self) -> None:
        """Stop the process: terminate, then kill."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening
