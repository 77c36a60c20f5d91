"""Type checkers: language servers that check agents' programs, kept running in the same jail as the programs themselves.

A checker reads hostile text and follows its imports (`import "file:///…"`), so it gets no more than a guest: no files but
its own, no network, no environment. It runs no program. If it is slow, wrong or dead, a run goes on: its findings are
advice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from gloveport.errors import SandboxError
from gloveport.sandbox.engines.deno.engine import ENVIRONMENT as DENO_ENVIRONMENT
from gloveport.sandbox.engines.deno.engine import STACK_MAP, find_deno
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.types import Strength, TypeFinding

GUEST_FOLDER = "/guest"
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
FIRST_CHECK_SECONDS, CHECK_SECONDS = 30.0, 3.0
MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
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


class TypeChecker:
    """One language server. It checks one text at a time."""

    def __init__(self, launch: Launch, *, language: str, minimum: Strength) -> None:
        self._launch = launch
        self._language = language
        self._minimum: Strength = minimum
        self._turn = asyncio.Lock()
        self._server: _LanguageServer | None = None
        self._checks = 0

    async def check(self, text: str) -> tuple[TypeFinding, ...]:
        """Return the findings in a text; SandboxError when the checker can't run, TimeoutError when it takes too long."""
        # The wait for its turn has its own timeout: earlier checks may be slow.
        async with asyncio.timeout(CHECK_SECONDS if self._server else FIRST_CHECK_SECONDS):
            await self._turn.acquire()
        try:
            async with asyncio.timeout(CHECK_SECONDS if self._server else FIRST_CHECK_SECONDS):
                return await self._check(text)
        except BaseException:
            await self._end()
            raise
        finally:
            self._turn.release()

    async def _check(self, text: str) -> tuple[TypeFinding, ...]:
        if self._server is None or self._checks >= MAX_CHECKS_PER_SERVER or not self._server.alive:
            await self._end()
            self._server = await _LanguageServer.start(self._launch, self._minimum)
            self._checks = 0
        self._checks += 1
        # One file name for all programs: for a new one, Deno analyses its whole project again, for 10 ms.
        uri = f"file://{GUEST_FOLDER}/program.{'ts' if self._language == 'typescript' else 'py'}"
        document = {"uri": uri, "languageId": self._language, "version": self._checks, "text": text}
        self._server.notify("textDocument/didOpen", {"textDocument": document})
        answer = await self._server.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        self._server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        try:
            return tuple(_finding(item) for item in answer.get("items", ()))
        except (AttributeError, KeyError, TypeError):
            raise SandboxError("the type checker broke the protocol", code="wire-violation") from None

    async def close(self) -> None:
        """End the server."""
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.end()


class _LanguageServer:
    """A connection to a jailed language server: JSON-RPC with Content-Length headers, over its standard streams."""

    def __init__(
        self, launcher: Launcher, guest: Guest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._launcher, self._guest, self._reader, self._writer = launcher, guest, reader, writer
        self._last = 0
        self._unsent_notifications = b""
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, launch: Launch, minimum: Strength) -> _LanguageServer:
        """Start a server and complete its handshake."""
        launcher = Launcher(launch, minimum=minimum)
        try:
            await launcher.start()
            guest = await launcher.spawn()
            guest.set_limits(data_bytes=MAX_MEMORY_BYTES, cpu_seconds=None)
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
            while True:
                self._handle(orjson.loads(await self._reader.readexactly(await self._read_length())))
        except (asyncio.IncompleteReadError, ValueError, OSError, AttributeError, KeyError, TypeError):
            pass  # it has ended or broke the protocol: nothing more will come
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(SandboxError("the type checker has ended", code="sandbox-crashed"))

    async def _read_length(self) -> int:
        length = 0
        while line := (await self._reader.readuntil(b"\r\n")).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not 0 < length <= MAX_MESSAGE_BYTES:
            raise ValueError("a message has an invalid length")
        return length

    def _handle(self, message: Any) -> None:
        number, method = message.get("id"), message.get("method")
        if method is None:
            answer = self._answers.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_result(message.get("result") or {})
        elif number is not None:
            wanted = len(message["params"]["items"]) if method == "workspace/configuration" else 0
            self._send({"jsonrpc": "2.0", "id": number, "result": [_SETTINGS] * wanted or None})


def _pack(message: Mapping[str, Any]) -> bytes:
    data = orjson.dumps(message)
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


def _finding(item: Mapping[str, Any]) -> TypeFinding:
    start, end = item["range"]["start"], item["range"]["end"]
    return TypeFinding(
        start["line"] + 1,
        start["character"] + 1,
        end["line"] + 1,
        end["character"] + 1,
        str(item.get("message", "")),
        str(item.get("code", "")),
    )
