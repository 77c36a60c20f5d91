"""The ways in which a hostile program runs: outside as a control, under a naive prelude, sealed, and in a fallen engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Literal

import orjson
import pytest

from gloveport import Gloveport, Outcome
from gloveport.host.program_reader import ProgramReader
from gloveport.sandbox import run_attempt, worker
from gloveport.sandbox.engines import registry
from gloveport.sandbox.engines.deno.engine import ENVIRONMENT, find_deno
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.jail.limits import MAX_THREADS
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.process_status import data_bytes, held_bytes, held_bytes_and_threads
from gloveport.sandbox.watchdog import WATCHDOG, Watch, Watched
from gloveport.sandbox.worker import RESIDENT_SLACK_FACTOR
from gloveport.types import MIB, Program, Strength
from tests.conftest import TOOLS
from tests.escapes.brought import BROUGHT, IMPORTABLE, IMPORTS, QUOTA, engines, session, with_package
from tests.escapes.calls import NUMBERS
from tests.escapes.canaries import VARIABLE, Canaries, Posture, token
from tests.escapes.corpus import HERE, Escape, corpus

SECONDS = 90.0  # of wall time: on a machine with time, every program ends in less than ten
CPU_SECONDS = 10.0
HARNESS = "/guest/plain.js"
FLAGS = (
    "--allow-all",
    "--no-lock",
    "--no-config",
    "--unstable-net",
    "--unstable-kv",
    "--unstable-raw-imports",
    "--unstable-worker-options",
    "--unstable-broadcast-channel",
    "--unstable-vsock",
)
# What only the host may say of a run; a program that brings about one of them without the cause has forged it.
HOST_CODES = frozenset(
    {
        "time-limit",
        "cpu-limit",
        "memory-limit",
        "call-limit",
        "sandbox-crashed",
        "sandbox-unavailable",
        "wire-violation",
        "internal-error",
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the canaries say, and all that came out, for the reader of a failure."""

    tripped: frozenset[str]
    text: str


# ── the plain platform: outside, and inside the jail ──


def plain_launch() -> Launch:
    """An engine with every permission, and with nothing but the jail around it."""
    return Launch(
        executable=find_deno(),
        argv=("deno", "run", *FLAGS, HARNESS),
        env={**ENVIRONMENT, "DENO_DIR": f"{HARNESS}/none"},
        files={HARNESS: (HERE / "_harness" / "plain.js").read_bytes()},
        workspace=QUOTA if BROUGHT else None,
    )


# The engines of JavaScript: those that run it sealed, and how each is started when it has fallen.
ENGINES = engines(("deno", "quickjs"))
PLAIN = {"deno": plain_launch}


async def outside(escape: Escape, deno_dir: str) -> Verdict:
    """The program as it would run without any sandbox."""
    with Canaries() as canaries, _bare_deno("plain.js", canaries, deno_dir) as engine:
        text, tripped = await drive(engine.channel, engine.process.pid, escape, canaries, inputs(escape, canaries))
        text += engine.complaints()
        judged = text.rpartition("middle-")[2] if escape.twice else text
        return Verdict(frozenset(tripped | canaries.tripped(judged)), text)


def _bare_deno(script: str, canaries: Canaries, deno_dir: str, *words: str) -> contextlib.AbstractContextManager[_Bare]:
    registry = f"http://127.0.0.1:{canaries.input()['tcp']}/"
    env = {"DENO_DIR": deno_dir, "NO_COLOR": "1", "NPM_CONFIG_REGISTRY": registry, "JSR_URL": registry}
    return bare([find_deno(), "run", *FLAGS, str(HERE / "_harness" / script), *words], canaries, deno_dir, env)


@contextlib.contextmanager
def bare(command: list[str], canaries: Canaries, folder: str, env: dict[str, str]) -> Iterator[_Bare]:
    """An engine outside of any sandbox, which has all that a careless host would leave to it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    canaries.tokens["environment"] = HOST_VARIABLE
    with tempfile.TemporaryFile() as stderr, ours:
        process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=stderr,
            env={**os.environ, VARIABLE: HOST_VARIABLE, **env},
            pass_fds=(canaries.inherited,),
            cwd=folder,
        )
        theirs.close()
        try:
            yield _Bare(ours, process, stderr)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class _Bare:
    channel: socket.socket
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    def complaints(self) -> str:
        """What it wrote to stderr, once it is dead."""
        self.process.kill()
        self.process.wait()
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")


async def fallen(escape: Escape, launcher: Launcher, strength: str) -> Verdict:
    """The program in an engine that has fallen: every permission, the plain platform, the jail alone around it."""
    with Canaries() as canaries:
        canaries.tokens["environment"] = HOST_VARIABLE
        texts: list[str] = []
        tripped: set[str] = set()
        async with contextlib.AsyncExitStack() as guests:  # the first still lives while the second looks
            for given in inputs(escape, canaries):
                guest = await launcher.spawn()
                guests.callback(guest.close)
                how = {"guest": guest, "watched_threads": strength != "full"}  # at `full` it has a user of its own
                text, found = await drive(guest.socket, guest.pid, escape, canaries, [given], **how)
                with contextlib.suppress(OSError):
                    text += os.read(guest.stderr, MIB).decode(errors="replace")
                texts.append(text)
                tripped |= found
        return Verdict(frozenset(tripped | canaries.tripped(texts[-1])), "\n".join(texts))


def inputs(escape: Escape, canaries: Canaries) -> list[dict[str, Any]]:
    """What the program is told in each of its runs."""
    given = {**canaries.input(), "inherited": canaries.inherited}
    if not escape.twice:
        return [given]
    planted = canaries.tokens.setdefault("planted", token())
    return [{**given, "plant": planted}, {**given, "round": 2}]


async def drive(
    channel: socket.socket,
    pid: int,
    escape: Escape,
    canaries: Canaries,
    inputs: list[dict[str, Any]],
    *,
    guest: Guest | None = None,
    watched_threads: bool = False,
) -> tuple[str, set[str]]:
    """Run the program in a harness that waits at the other end; all it said, and what the kernel says it became.

    `watched_threads`: no limit of the kernel's bounds them closely, only a run attempt that checks them from time to time.
    """
    loop, nonce = asyncio.get_running_loop(), secrets.token_hex(8)
    data = b""
    before: Posture | None = None
    watch: Watch | None = None
    for own in canaries.sockets():
        loop.add_reader(own, canaries.answer)
    try:
        async with asyncio.timeout(SECONDS):
            while b"ready\n" not in data:
                if not (piece := await loop.sock_recv(channel, 65536)):
                    return data.decode(errors="replace"), set()
                data += piece
            before = canaries.posture(pid)
            canaries.listen_for_urgent(channel)
            if guest is not None:
                guest.set_limits(data_bytes=data_bytes(pid) + 256 * MIB, cpu_seconds=30)
                watch = _watch(guest)
            plan = {"code": escape.wrapped, "dialect": escape.dialect, "inputs": inputs, "nonce": nonce}
            await loop.sock_sendall(channel, json.dumps({**plan, "calls": NUMBERS}).encode() + b"\n")
            while f"end-{nonce}".encode() not in data and (piece := await loop.sock_recv(channel, 65536)):
                data += piece
    except (TimeoutError, ConnectionError) as error:
        data += f"\n{type(error).__name__}".encode()
    finally:
        if watch is not None:
            watch.stop()
        for own in canaries.sockets():
            loop.remove_reader(own)
    tripped = canaries.posture(pid).tripped(before) if before else set()
    if watched_threads and guest is not None and _has_many_threads(guest):
        tripped.discard("posture: threads")  # it was done between two looks; the next look would have ended it
    return data.decode(errors="replace"), tripped


def _watch(guest: Guest) -> Watch:
    """Do what a run does beside setting limits: check what no limit of the kernel counts."""
    most = held_bytes(guest.pid) + 256 * MIB * RESIDENT_SLACK_FACTOR
    return WATCHDOG.watch(Watched(guest.pid, guest.pidfd, max_held_bytes=most, max_threads=MAX_THREADS))


def _has_many_threads(guest: Guest) -> bool:
    """Return whether the watchdog would end the guest; a test of limits checks that it does."""
    with contextlib.suppress(OSError):
        return held_bytes_and_threads(guest.pid)[1] > MAX_THREADS
    return False


# ── a naive prelude, outside ──


async def naive(escape: Escape, deno_dir: str) -> Verdict:
    """The program under a prelude that uses whatever built-ins the program left: where forging succeeds."""
    with Canaries() as canaries:
        for place in ("wire", "betrayed", "argument"):
            canaries.tokens[place] = token()
        with _bare_deno("naive.js", canaries, deno_dir, canaries.tokens["argument"]) as engine:
            frames = Frames(engine.channel, canaries.tokens["wire"])
            kind = "application/typescript" if escape.dialect == "typescript" else "text/javascript"
            setup = {"code": escape.wrapped, "type": kind, "input": inputs(escape, canaries)[0]}
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(SECONDS):
                    await frames.next()
                    await frames.send(["start", 0, setup])
                    await serve_naively(frames, canaries)
            text = "\n".join(json.dumps(message) for message in frames.messages[1:]) + engine.complaints()
        forged = {"forged"} if frames.forged() else set()
        return Verdict(frozenset(canaries.tripped(text) | forged), text)


async def serve_naively(frames: Frames, canaries: Canaries) -> None:
    """Answer calls, and believe everything, until the program says that it is done."""
    while (message := await frames.next()) is not None and not frames.forged():
        match message:
            case ["call", int(number), "betray", _]:
                details = {"message": "betrayed", "data": {"locals": {"secret": canaries.tokens["betrayed"]}}}
                await frames.send(["reply", 0, number, False, details])
            case ["call", int(number), ("fail" | "crash"), _]:
                await frames.send(["reply", 0, number, False, {"message": "no luck", "code": "tool-failed"}])
            case ["call", int(number), "echo", [{"value": value}, *_]]:
                await frames.send(["reply", 0, number, True, value])
            case ["call", int(number), _, _]:
                await frames.send(["reply", 0, number, True, 3])
            case ["done", *_]:
                return


class Frames:
    """The wire's framing, spoken by a host that believes what it hears."""

    def __init__(self, channel: socket.socket, *mark: str) -> None:
        self._channel = channel
        self._mark = mark
        self._data = b""
        self.messages: list[Any] = []

    async def send(self, message: Any) -> None:
        """Send a message."""
        payload = json.dumps([*message, *self._mark]).encode()
        await asyncio.get_running_loop().sock_sendall(self._channel, len(payload).to_bytes(4) + payload)

    async def next(self) -> Any:
        """The next message, None at the end or when the bytes are no message."""
        loop = asyncio.get_running_loop()
        while len(self._data) < 4 or len(self._data) < 4 + int.from_bytes(self._data[:4]):
            if len(self._data) >= 4 and self.forged():
                return None
            if not (piece := await loop.sock_recv(self._channel, 65536)):
                return None
            self._data += piece
        size = 4 + int.from_bytes(self._data[:4])
        payload, self._data = self._data[4:size], self._data[size:]
        try:
            self.messages.append(orjson.loads(payload))
        except ValueError:
            self.messages.append(["not JSON", repr(payload[:1000])])
        return self.messages[-1]

    def forged(self) -> bool:
        """Whether something came that no honest prelude sends for an honest program."""
        last = 0
        if int.from_bytes(self._data[:4]) > MIB:
            return True  # bytes that are no frame
        for message in self.messages[1:]:
            match message:
                case ["call", int(number), str(name), list()]:
                    if number <= last or "forged" in name:
                        return True
                    last = number
                case ["done", "error", {"code": code}, *_] if code in HOST_CODES:
                    return True
                case [("emit" | "log" | "done" | "timer" | "call_sync"), *_]:
                    pass
                case _:
                    return True
        return False


# ── the real product ──


async def betray() -> None:
    """Fail with a secret in every place that an exception has for one."""
    secret = BETRAYED
    try:
        raise KeyError(secret)
    except KeyError as inner:
        outer = RuntimeError("betrayed")
        outer.secret = secret  # type: ignore[attr-defined]
        outer.__context__ = inner
        raise outer from None


BETRAYED = token()
HOST_VARIABLE = token()
UNPREPARED = "// unprepared: "
ENGINE_TOKENS = {"engine file": token(), "engine argument": token(), "engine variable": token(), "wire": token()}


@contextlib.asynccontextmanager
async def baited_port(minimum: Strength = "full", **options: Any) -> Any:
    """A Gloveport whose engines hold tokens where only an engine that is not taken apart gives them up (S1)."""

    def baited(launch: Callable[[ProcessOptions], Launch], options: ProcessOptions) -> Launch:
        plain = launch(options)
        return replace(
            plain,
            files={**plain.files, "/guest/canary": ENGINE_TOKENS["engine file"].encode()},
            argv=(*plain.argv, ENGINE_TOKENS["engine argument"]),
            env={**plain.env, VARIABLE: ENGINE_TOKENS["engine variable"]},
        )

    with pytest.MonkeyPatch.context() as patch:
        for engine in registry.ENGINES.values():
            patch.setattr(engine, "launch", partial(baited, engine.launch))
        async with Gloveport(tools=[*TOOLS, betray], minimum=minimum, **options) as port:
            yield port


@contextlib.contextmanager
def eavesdropping() -> Iterator[list[str]]:
    """Put a token into every frame that a guest is sent, another into our environment, and hear what engines write to stderr."""
    said: list[str] = []
    event, read = run_attempt.RunAttempt._event, worker._read_stderr

    def baited_event(self: run_attempt.RunAttempt, payload: bytes) -> None:
        event(self, payload[:-1] + f',"{ENGINE_TOKENS["wire"]}"]'.encode())

    def heard(guest: Guest) -> str:
        said.append(read(guest))
        return said[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_attempt.RunAttempt, "_event", baited_event)
        patch.setattr(worker, "_read_stderr", heard)
        patch.setattr(ProgramReader, "prepare", _read)
        patch.setenv(VARIABLE, HOST_VARIABLE)
        yield said


async def sealed(escape: Escape, port: Gloveport, said: list[str], engine: str, *, prepared: bool = True) -> Verdict:
    """The program in the real product, as an agent's text; or without `prepare`, as if that had been fooled (S22)."""
    with Canaries() as canaries:
        canaries.tokens |= ENGINE_TOKENS | {"betrayed": BETRAYED, "environment": HOST_VARIABLE}
        outcomes: list[Outcome] = []
        for number, given in enumerate(inputs(escape, canaries)):
            limits = {"wall_seconds": SECONDS, "cpu_seconds": CPU_SECONDS}
            code = with_package(escape, escape.code) if prepared else UNPREPARED + escape.name
            async with session(port, escape, number) as options:
                outcomes.append(await port.run(code, engine=engine, input=given, limits=limits, **options))
        last = outcomes[-1]
        text = f"{last}\n{said}"
        forged = {"forged"} if last.error is not None and last.error.code in HOST_CODES else set()
        return Verdict(frozenset(canaries.tripped(text) | forged), text)


_prepare = ProgramReader.prepare


async def _read(reader: ProgramReader, source: str, **options: Any) -> Program:
    """Stands in for `prepare`: takes a program as it is when asked to, as if `prepare` had seen nothing in it."""
    if not source.startswith(UNPREPARED):
        return await _prepare(reader, source, **options)
    escape = next(escape for escape in corpus() if escape.name == source.removeprefix(UNPREPARED))
    dialect: Literal["javascript", "typescript"] = "javascript" if escape.path.suffix == ".js" else "typescript"
    program = Program("typescript", source, escape.wrapped, dialect, "function", ())
    return replace(program, imports=IMPORTS, importable=IMPORTABLE)
