"""Type checkers: language servers that check agents' programs, kept running in the same jail as the programs themselves.

A checker reads hostile text and follows its imports (`import "file:///…"`), so it gets no more than a guest: no files but
its own, no network, no environment. It runs no program, and serves one agent: a text that takes it over learns nothing of
another agent's. If it is slow, wrong or dead, a run goes on: its findings are advice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import orjson

from gloveport.errors import GloveportError, SandboxError
from gloveport.sandbox.engines.deno.engine import ENVIRONMENT as DENO_ENVIRONMENT
from gloveport.sandbox.engines.deno.engine import STACK_MAP, find_deno
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.pool import IdleTimer
from gloveport.sandbox.tasks.result_cache import ResultCache
from gloveport.sandbox.watchdog import WATCHDOG, Watched
from gloveport.types import MIB, Strength, TypeFinding

GUEST_FOLDER = "/guest"
MAX_MESSAGE_BYTES = 1024 * 1024
START_SECONDS = 30.0  # until the first check is done: the server loads its libraries
MAX_CPU_SECONDS = 3.0  # for one check, of all threads of the server
MAX_WAIT_SECONDS = 15.0  # for the answer of a server that does nothing
MAX_TURN_SECONDS = 3.0  # that a run waits for earlier checks, and for a server that replaces a killed one
MAX_MEMORY_MB = 2048
MAX_SERVER_CPU_SECONDS = 120  # of a server in its life: one that was taken over computes between checks, too
MAX_MESSAGES = 1000  # of a server for one check: it sends a handful
MAX_FINDINGS = 1000
MAX_CHECKERS = 4  # of a language, at a time; one of Deno takes 205 MB, and starts in 1.1 s
MAX_CONFIGURATION_ITEMS = 16
MAX_HEADER_LINES = 8
MAX_POSITION = 2**31 - 1  # of a line or a column in the protocol
MAX_KEPT_TEXT_CHARS = 64 * 1024  # of a text whose findings are kept
# A server is replaced after this many programs, so that nothing they left in it lasts.
MAX_CHECKS_PER_SERVER = 2000
_SETTINGS = {"enable": True, "lint": False}
_OPTIONS = {"compilerOptions": {"strict": False, "noImplicitAny": False, "lib": ["deno.ns", "esnext", "dom"]}}


def typescript_launch() -> Launch:
    """Return the launch of the checker for TypeScript."""
    files = {f"{GUEST_FOLDER}/deno.json": orjson.dumps(_OPTIONS), **STACK_MAP}
    return Launch(find_deno(), ("deno", "lsp", "--quiet"), {**DENO_ENVIRONMENT, "HOME": "/"}, files, joins_threads=True)


def python_launch() -> Launch:
    """Return the launch of the checker for Python."""
    beside = os.path.join(os.path.dirname(sys.executable), "ty")
    found = beside if os.path.isfile(beside) else shutil.which("ty")
    if found is None:
        raise SandboxError("the checker `ty` is not installed", hint="pip install 'gloveport[types]'")
    files = {f"{GUEST_FOLDER}/ty.toml": b""}
    return Launch(os.path.realpath(found), ("ty", "server"), {"HOME": "/"}, files, joins_threads=True)


class TypeCheckers:
    """The checkers of one language, each for the texts of one agent. The least recently used one makes room for another.

    When nothing was checked for a while, all of them end: one of Deno takes more memory than the rest of Gloveport.
    """

    def __init__(self, launch: Launch, *, language: str, minimum: Strength) -> None:
        self._launch = launch
        self._language = language
        self._minimum: Strength = minimum
        self._checkers: OrderedDict[str, TypeChecker] = OrderedDict()  # by agent, the least recently used first
        self._turns: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(MAX_CHECKERS)
        self._busy: set[str] = set()  # the agents that have a slot
        self._closing: set[asyncio.Task[None]] = set()
        self._idle_timer = IdleTimer(self._end_idle)

    async def check(self, agent: str, text: str) -> tuple[TypeFinding, ...]:
        """Return the findings in a text of an agent; raise what `TypeChecker.check` raises."""
        self._idle_timer.used()
        turn, checker = self._turns.setdefault(agent, asyncio.Lock()), self._checkers.get(agent)
        if checker is not None and (known := checker.known(text)) is not None:
            self._checkers.move_to_end(agent)
            return known
        starts = checker is not None and checker.starts
        async with asyncio.timeout(START_SECONDS if starts else MAX_TURN_SECONDS):
            await turn.acquire()
        try:
            async with asyncio.timeout(MAX_TURN_SECONDS):
                await self._slots.acquire()
            self._busy.add(agent)
            try:
                return await self._checker(agent).check(text)
            finally:
                self._busy.discard(agent)
                self._slots.release()
        finally:
            turn.release()

    async def close(self) -> None:
        """End the checkers."""
        self._idle_timer.stop()
        checkers, self._checkers = list(self._checkers.values()), OrderedDict()
        await asyncio.gather(*self._closing, *(checker.close() for checker in checkers))

    def _end_idle(self) -> None:
        for agent in [name for name in self._checkers if name not in self._busy]:
            self._close(agent)

    def _close(self, agent: str) -> None:
        closing = asyncio.create_task(self._checkers.pop(agent).close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _checker(self, agent: str) -> TypeChecker:
        """Return the checker of an agent that has a slot. No more than the other slots are busy, so one checker is idle."""
        if agent not in self._checkers:
            if len(self._checkers) >= MAX_CHECKERS:
                self._close(next(name for name in self._checkers if name not in self._busy))
            self._checkers[agent] = TypeChecker(self._launch, language=self._language, minimum=self._minimum)
        self._checkers.move_to_end(agent)
        return self._checkers[agent]


class TypeChecker:
    """One language server. It checks one text at a time.

    A server that a text keeps busy for too long is killed. Its replacement starts at once, and no run waits long for it.
    """

    def __init__(self, launch: Launch, *, language: str, minimum: Strength) -> None:
        self._launch = launch
        self._language = language
        self._minimum: Strength = minimum
        self._starting: asyncio.Task[_LanguageServer] | None = None
        self._replaced = False

    @property
    def starts(self) -> bool:
        """Whether its first server is on its way."""
        return not self._replaced and (self._starting is None or not self._starting.done())

    def known(self, text: str) -> tuple[TypeFinding, ...] | None:
        """Return what the server that runs has found in a text before; None if it has not seen the text."""
        starting = self._starting
        if starting is None or not starting.done() or starting.cancelled() or starting.exception() is not None:
            return None
        server = starting.result()
        found = server.results.find(_key(text)) if server.alive and len(text) <= MAX_KEPT_TEXT_CHARS else None
        return None if found is None else msgspec.json.decode(found[0], type=tuple[TypeFinding, ...])

    async def check(self, text: str) -> tuple[TypeFinding, ...]:
        """Return the findings in a text; SandboxError when the checker can't run, TimeoutError when it takes too long."""
        server = await self._server()
        try:
            found = await self._check(server, text)
        except BaseException:
            await self._replace()
            raise
        if len(text) <= MAX_KEPT_TEXT_CHARS:
            server.results.add(_key(text), [msgspec.json.encode(found)])
        return found

    async def _server(self) -> _LanguageServer:
        """Return the server, which may be starting. A start that fails is tried again by the next check."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        try:
            async with asyncio.timeout(MAX_TURN_SECONDS if self._replaced else START_SECONDS):
                server = await asyncio.shield(self._starting)
        except BaseException:
            if self._starting.done():
                self._starting = None
            raise
        if server.checks >= MAX_CHECKS_PER_SERVER or not server.alive:
            await self._replace()
            return await self._server()
        return server

    async def _start(self) -> _LanguageServer:
        server = await _LanguageServer.start(self._launch, self._minimum)
        try:
            await self._check(server, "", START_SECONDS)
        except BaseException:
            await server.end()
            raise
        return server

    async def _check(
        self, server: _LanguageServer, text: str, max_cpu_seconds: float = MAX_CPU_SECONDS
    ) -> tuple[TypeFinding, ...]:
        server.checks, server.messages = server.checks + 1, 0
        # One document for all programs: for a new one, Deno analyses its whole project again, for 10 ms.
        uri = f"file://{GUEST_FOLDER}/program.{'ts' if self._language == 'typescript' else 'py'}"
        document = {"uri": uri, "version": server.checks}
        with server.limited(max_cpu_seconds):
            async with asyncio.timeout(max(MAX_WAIT_SECONDS, max_cpu_seconds)):
                if server.checks == 1:
                    opened = {**document, "languageId": self._language, "text": text}
                    server.notify("textDocument/didOpen", {"textDocument": opened})
                else:
                    changed = {"textDocument": document, "contentChanges": [{"text": text}]}
                    server.notify("textDocument/didChange", changed)
                answer = await server.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        try:
            return tuple(_finding(item) for item in answer.get("items", ())[:MAX_FINDINGS])
        except (AttributeError, KeyError, TypeError):
            raise SandboxError("the type checker broke the protocol", code="wire-violation") from None

    async def close(self) -> None:
        """End the server."""
        await self._end()

    async def _replace(self) -> None:
        """End the server and start another, which later checks will use."""
        await self._end()
        self._replaced = True
        self._starting = asyncio.create_task(self._start())

    async def _end(self) -> None:
        starting, self._starting = self._starting, None
        if starting is None:
            return
        if not starting.done():
            starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, GloveportError, TimeoutError):
            await (await starting).end()


class _LanguageServer:
    """A connection to a jailed language server: JSON-RPC with Content-Length headers, over its standard streams."""

    def __init__(
        self, launcher: Launcher, guest: Guest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._launcher, self._guest, self._reader, self._writer = launcher, guest, reader, writer
        self._last = 0
        self._unsent_notifications = b""
        self.checks, self.messages = 0, 0
        self.results = ResultCache()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, launch: Launch, minimum: Strength) -> _LanguageServer:
        """Start a server and complete its handshake."""
        launcher = Launcher(launch, minimum=minimum)
        try:
            await launcher.start()
            guest = await launcher.spawn()
            guest.set_limits(data_bytes=MAX_MEMORY_MB * MIB, cpu_seconds=MAX_SERVER_CPU_SECONDS)
            reader, writer = await asyncio.open_connection(sock=guest.socket, limit=MAX_MESSAGE_BYTES)
        except BaseException:
            await launcher.close()
            raise
        server = cls(launcher, guest, reader, writer)
        root = f"file://{GUEST_FOLDER}"
        can = {"textDocument": {"diagnostic": {}}, "workspace": {"configuration": True}}
        folders = [{"uri": root, "name": "guest"}]
        about = {"processId": None, "rootUri": root, "capabilities": can, "workspaceFolders": folders}
        try:
            await server.request("initialize", {**about, "initializationOptions": _SETTINGS})
        except BaseException:
            await server.end()
            raise
        server.notify("initialized", {})
        return server

    @property
    def alive(self) -> bool:
        """Whether the server can still answer."""
        return not self._listening.done()

    @contextlib.contextmanager
    def limited(self, max_cpu_seconds: float) -> Iterator[None]:
        """Have the watchdog kill the server if it uses more than this CPU time, or too much memory, in this block."""
        used = time.clock_gettime((~self._guest.pid << 3) | 2) if self.alive else 0.0
        watch = WATCHDOG.watch(
            Watched(
                self._guest.pid,
                self._guest.pidfd,
                max_cpu_seconds=used + max_cpu_seconds,
                max_held_bytes=MAX_MEMORY_MB * MIB,
            )
        )
        try:
            yield
        finally:
            watch.stop()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Queue a notification to go out with the next request: each write wakes the server."""
        self._unsent_notifications += _pack({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its answer."""
        self._last += 1
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        if self._listening.done():
            raise SandboxError("the type checker has ended", code="sandbox-crashed")
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return await answer

    async def end(self) -> None:
        """End the process and its jail."""
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError, SandboxError):
            await self._listening
        self._writer.close()
        self._guest.close()
        await self._launcher.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        self._writer.write(self._unsent_notifications + _pack(message))
        self._unsent_notifications = b""

    async def _listen(self) -> None:
        try:
            while self.messages < MAX_MESSAGES:
                self.messages += 1
                self._handle(orjson.loads(await self._reader.readexactly(await self._read_length())))
                await asyncio.sleep(0)  # what is buffered already is read without a pause
        except (
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ValueError,
            OSError,
            AttributeError,
            KeyError,
            TypeError,
        ):
            pass  # it has ended or broke the protocol: nothing more will come
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(SandboxError("the type checker has ended", code="sandbox-crashed"))

    async def _read_length(self) -> int:
        length = 0
        for _line in range(MAX_HEADER_LINES):
            line = (await self._reader.readuntil(b"\r\n")).strip()
            if not line and 0 < length <= MAX_MESSAGE_BYTES:
                return length
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        raise ValueError("a message has an invalid header")

    def _handle(self, message: Any) -> None:
        number, method = message.get("id"), message.get("method")
        if method is None:
            answer = self._answers.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_result(message.get("result") or {})
        elif number is not None:
            wanted = len(message["params"]["items"]) if method == "workspace/configuration" else 0
            if wanted > MAX_CONFIGURATION_ITEMS or not isinstance(number, int):
                raise ValueError("no honest server asks this")
            self._send({"jsonrpc": "2.0", "id": number, "result": [_SETTINGS] * wanted or None})


def _key(text: str) -> tuple[bytes, ...]:
    return (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(),)


def _pack(message: Mapping[str, Any]) -> bytes:
    data = orjson.dumps(message)
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


def _finding(item: Mapping[str, Any]) -> TypeFinding:
    """Return a finding of the protocol; raise TypeError for one with a place that no text has."""
    start, end = item["range"]["start"], item["range"]["end"]
    place = start["line"], start["character"], end["line"], end["character"]
    if not all(type(one) is int and 0 <= one <= MAX_POSITION for one in place):
        raise TypeError("a place that no text has")
    line, column, end_line, end_column = (one + 1 for one in place)
    return TypeFinding(line, column, end_line, end_column, str(item.get("message", "")), str(item.get("code", "")))
