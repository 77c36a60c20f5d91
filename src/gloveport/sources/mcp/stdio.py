"""A server on stdio: a process in a group of its own, lines of JSON in and out, and nothing of it left behind.

The command is an argv: no shell reads it. What the server writes is bounded: lines, garbage, what it says on stderr.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from gloveport import bounded_json
from gloveport.errors import SourceError
from gloveport.policy.redaction import Redaction
from gloveport.sources.mcp.connection import REPLY_TOO_LARGE
from gloveport.sources.mcp.lines import Lines, Overlong

CHUNK = 64 * 1024
KEPT_BYTES = 64 * 1024
SHOWN_LINES = 12
SHOWN_LENGTH = 300
MOST_GARBAGE = 10_000
# A server has this long to end by itself when its stdin closes, then to obey SIGTERM, before it is killed.
GRACE_SECONDS = 2.0
CHILDREN_SECONDS = 0.5
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class StdioConnection:
    """A command, started for one session and ended with it, its children too."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], redaction: Redaction, *, max_bytes: int
    ) -> None:
        self._argv = argv
        self._environment = environment
        self._max_bytes = max_bytes
        self._redaction = redaction
        self._process: Process | None = None
        self._said = b""
        self._complaint = ""
        self._garbage = 0
        self.lost = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Starts the command; leaving ends it and whatever it started in its process group."""
        transport, watched = await self._start()
        process = self._process = Process(transport, watched, asyncio.get_running_loop())
        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outof = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, process, into)
                group.start_soon(self._hear, process)
                group.start_soon(self._outlive, watched.exited)
                group.start_soon(self._write, process, outof)
                try:
                    yield read, write
                finally:
                    with anyio.CancelScope(shield=True):
                        await _stop(process)
                    group.cancel_scope.cancel()
        finally:
            for stream in (into, read, write, outof):
                stream.close()
            with suppress(PermissionError, ProcessLookupError):
                transport.close()  # a process that left the group may hold the pipes open for ever

    def last_words(self) -> str:
        """How the process ended, and the last lines that it wrote on stderr."""
        status = self._process.returncode if self._process else None
        ended = "" if status is None or self._complaint else f"it ended with status {status}"
        if status is not None and status < 0:
            ended = f"it was ended by {signal.Signals(-status).name}"
        said = self._shown()
        return "; ".join(part for part in (self._complaint or ended, said and f"its last words:\n{said}") if part)

    def _shown(self) -> str:
        # Secrets are looked for in more than is shown: what is shown begins with no half of one.
        text = self._redaction.clean(self._said).decode("utf-8", "replace")
        lines = ["".join(c if c.isprintable() else " " for c in line[-SHOWN_LENGTH:]) for line in text.splitlines()]
        return "\n".join([line for line in lines if line.strip()][-SHOWN_LINES:])

    async def _start(self) -> tuple[asyncio.SubprocessTransport, _Watched]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.subprocess_exec(
                lambda: _Watched(CHUNK, loop), *self._argv, env=self._environment, start_new_session=True
            )
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else str(error)
            message = f"the command {self._argv[0]!r} can't be started: {problem}"
            raise SourceError(message, hint="check that it is installed and on the PATH") from None

    async def _read(self, process: Process, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout
        lines = Lines(self._max_bytes)
        try:
            while not self._complaint and (chunk := await process.stdout.read(CHUNK)):
                for line in lines.feed(chunk):
                    if message := self._message(line):
                        with suppress(*GONE):  # the session is closing; what the server still writes is dropped
                            await into.send(message)
        finally:
            into.close()
            self.lost.set()

    def _message(self, line: bytes | Overlong) -> SessionMessage | None:
        if isinstance(line, Overlong):
            return self._in_place_of(line, f"is larger than {self._max_bytes:,} bytes")
        try:
            bounded_json.check(line)
            message = SessionMessage(jsonrpc_message_adapter.validate_json(self._redaction.clean(line), by_name=False))
        except bounded_json.JsonLimitError as problem:
            return self._in_place_of(Overlong.of(line), f"is too much JSON: it {problem}")
        except ValidationError:
            self._said = (self._said + line + b"\n")[-KEPT_BYTES:]
            self._garbage += 1
            if self._garbage >= MOST_GARBAGE:
                self._complaint = "it writes something that is not MCP on stdout"
            return None
        self._garbage = 0
        return message

    def _in_place_of(self, line: Overlong, problem: str) -> SessionMessage | None:
        if line.id is None:  # nobody can tell any more which reply belongs to which call
            self._complaint = f"it sent a message that {problem}"
            return None
        error = ErrorData(code=REPLY_TOO_LARGE, message=f"the reply {problem}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.id, error=error))

    async def _hear(self, process: Process) -> None:
        assert process.stderr
        while chunk := await process.stderr.read(CHUNK):
            self._said = (self._said + chunk)[-KEPT_BYTES:]

    async def _outlive(self, exited: asyncio.Event) -> None:
        """A child of the server may hold its stdout open when it is gone; what it had written is still read."""
        await exited.wait()
        with anyio.move_on_after(CHILDREN_SECONDS):
            await self.lost.wait()
        self.lost.set()

    async def _write(self, process: Process, outof: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin
        with suppress(OSError):
            async with outof:
                async for item in outof:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
            return  # the session closes
        self.lost.set()


class _Watched(SubprocessStreamProtocol):
    """Tells when the process is gone, whoever still holds its pipes; `Process.wait` waits for those too."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        """The process is gone."""
        super().process_exited()
        self.exited.set()


async def _stop(process: Process) -> None:
    """Ends a process and its group: stdin closes, then SIGTERM, then SIGKILL. Its pid is the group's id."""
    assert process.stdin
    process.stdin.close()
    exited = await _until(lambda: process.returncode is not None, GRACE_SECONDS)
    _signal(process.pid, signal.SIGTERM)
    await _until(lambda: not _signal(process.pid, 0), CHILDREN_SECONDS if exited else GRACE_SECONDS)
    _signal(process.pid, signal.SIGKILL)
    await _until(lambda: process.returncode is not None, GRACE_SECONDS)


async def _until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while not done():
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal(group: int, number: int) -> bool:
    """Sends a signal to a process group; False when nobody is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
