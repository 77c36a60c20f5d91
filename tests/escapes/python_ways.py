"""The ways in which a hostile Python program runs: outside as a control, under a host that believes it, sealed, fallen."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gloveport import Gloveport, Outcome
from gloveport.host.program_reader import ProgramReader
from gloveport.sandbox import worker
from gloveport.sandbox.engines.cpython.engine import ENGINE as CPYTHON
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.zygote_launch import GUEST_FOLDER, PACKAGE, find_python
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch
from gloveport.types import MIB, Program
from tests.conftest import TOOLS
from tests.escapes.brought import BROUGHT, IMPORTABLE, IMPORTS, QUOTA, engines, package_folders, session, with_package
from tests.escapes.canaries import MOST_MEMORY, VARIABLE, Canaries, token
from tests.escapes.corpus import HERE, Escape
from tests.escapes.ways import (
    BETRAYED,
    CPU_SECONDS,
    HOST_CODES,
    HOST_VARIABLE,
    SECONDS,
    Frames,
    Verdict,
    bare,
    betray,
    drive,
    inputs,
    serve_naively,
)
from tests.sandbox.pythonhost import GUEST, START, setup_of

ENGINES = engines(("cpython", "monty"))
UNPREPARED = "# unprepared\n"
# A guest in Python is free to break its own wire, to end its own process, and to raise a MemoryError, which can't be told
# from one that the interpreter raised: that these are told is no forgery.
FORGEABLE = HOST_CODES - {"wire-violation", "sandbox-crashed", "memory-limit"}
MAX_LOG_BYTES = 64 * 1024
HONEST = """
both = [await tools.add(1, 2), await tools.echo(value="honest")]
print("an honest line")
both + [sum([len(word) for word in ["x", "yz"]]), sorted("cab"), f"{1.5:.2f}", input]
"""
HONESTLY = [3, "honest", 3, ["a", "b", "c"], "1.50", "given"]


def plain_launch(*, workspace: bool = False) -> Launch:
    """A zygote whose guests have nothing of ours in them: the bare interpreter, and the jail around it."""
    packages = package_folders() if BROUGHT else ()
    made = CPYTHON.launch(ProcessOptions("cpython", workspace=QUOTA if workspace or BROUGHT else None, packages=packages))
    ours = f"{GUEST_FOLDER}/{PACKAGE}/"
    files = {path: content for path, content in made.files.items() if not path.startswith(ours)}
    return replace(made, files={**files, f"{ours}__init__.py": (HERE / "_harness" / "plain.py").read_bytes()})


async def outside(escape: Escape, folder: str) -> Verdict:
    """The program as it would run without any sandbox."""
    program, _ = find_python()
    command = [program, "-S", "-B", str(HERE / "_harness" / "plain.py")]
    with Canaries() as canaries, bare(command, canaries, folder, {"PYTHONHASHSEED": "0"}) as engine:
        text, tripped = await drive(engine.channel, engine.process.pid, escape, canaries, inputs(escape, canaries))
        text += engine.complaints()
        judged = text.rpartition("middle-")[2] if escape.twice else text
        return Verdict(frozenset(tripped | canaries.tripped(judged)), text)


async def believed(escape: Escape, folder: str) -> Verdict:
    """The program under our own prelude, outside of the jail, before a host that believes what it hears."""
    program, _ = find_python()
    command = [program, "-S", "-s", "-P", "-B", "-c", f"import {PACKAGE}; {PACKAGE}.main()"]
    env = {"PYTHONPATH": str(GUEST), "PYTHONHASHSEED": "0"}
    with Canaries() as canaries:
        canaries.tokens["betrayed"] = token()
        with bare(command, canaries, folder, env) as engine:
            frames = Frames(engine.channel)
            setup = setup_of(escape.wrapped, input=inputs(escape, canaries)[0], max_log_bytes=MAX_LOG_BYTES)
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(SECONDS):
                    await frames.next()
                    await frames.send(["start", START, setup])
                    await serve_naively(frames, canaries)
            text = "\n".join(json.dumps(message) for message in frames.messages[1:]) + engine.complaints()
        said = sum(len(message[2]) for message in frames.messages if message[0] == "log")
        lies = {"forged"} if frames.forged() else set[str]()
        lies |= {"log budget"} if said > MAX_LOG_BYTES else set()
        return Verdict(frozenset(canaries.tripped(text) | lies), text)


# ── the real product ──


@contextlib.asynccontextmanager
async def open_port(**options: Any) -> Any:
    """A Gloveport whose tools hold a secret, in whose environment another is."""
    with _unprepared():
        async with Gloveport(tools=[*TOOLS, betray], **options) as port:
            yield port


@contextlib.contextmanager
def _unprepared() -> Iterator[None]:
    """Have `prepare` take a program as it is when it is told to, as if it had seen nothing in it (S22)."""

    honest = ProgramReader.prepare

    async def read(reader: ProgramReader, source: str, **options: Any) -> Program:
        if not source.startswith(UNPREPARED):
            return await honest(reader, source, **options)
        return Program("python", source, source, "python", "body", (), imports=IMPORTS, importable=IMPORTABLE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramReader, "prepare", read)
        patch.setenv(VARIABLE, HOST_VARIABLE)
        yield


@contextlib.contextmanager
def eavesdropping() -> Iterator[list[str]]:
    """Hear what guests write to their stderr."""
    said: list[str] = []
    read = worker._read_stderr

    def heard(guest: Guest) -> str:
        said.append(read(guest))
        return said[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "_read_stderr", heard)
        yield said


async def sealed(escape: Escape, port: Gloveport, said: list[str], engine: str) -> Verdict:
    """The program in the real product, beside an honest one that must not suffer; past `prepare`, if that refuses it."""
    limits = {"wall_seconds": SECONDS, "cpu_seconds": CPU_SECONDS, "max_log_bytes": MAX_LOG_BYTES}

    async def run(text: str, given: Any, **options: Any) -> Outcome:
        return await port.run(text, language="python", engine=engine, input=given, limits=limits, **options)

    with Canaries() as canaries:
        canaries.tokens |= {"betrayed": BETRAYED, "environment": HOST_VARIABLE}
        tripped: set[str] = set()
        code = with_package(escape, escape.wrapped)
        for number, given in enumerate(inputs(escape, canaries)):
            async with session(port, escape, number) as options:
                last, honest = await asyncio.gather(run(code, given, **options), run(HONEST, "given"))
                if last.error is not None and last.error.type == "ProgramError":
                    last = await run(UNPREPARED + code, given, **options)
            tripped |= _lies(last) | (set() if honest.value == HONESTLY and _printed(honest) else {f"bystander: {honest}"})
        text = f"{last}\n{said}"
        return Verdict(frozenset(canaries.tripped(text) | tripped), text)


def _printed(honest: Outcome) -> bool:
    return [line.text for line in honest.logs] == ["an honest line"]


def _lies(outcome: Outcome) -> set[str]:
    """What an outcome says that only the host may say, or says more of than a run may."""
    found: set[str] = set()
    if outcome.error is not None and outcome.error.code in FORGEABLE:
        found.add(f"forged: {outcome.error.code}")
    if any(call.status == "ok" and "forged" in call.tool for call in outcome.calls):
        found.add("forged: a call")
    if sum(len(line.text) for line in outcome.logs) > MAX_LOG_BYTES:
        found.add("log budget")
    if outcome.usage.memory_peak_mb > MOST_MEMORY / MIB:
        found.add("memory")
    return found
