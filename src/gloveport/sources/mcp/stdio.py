"""A server on stdio: a process in its own group, JSON lines in and out, and no process left behind.

The command is an argv: no shell reads it. What the server writes is bounded: the length of lines, the number of lines that
are no MCP, and what is kept of stderr.
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

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.policy.credentials import Attachment, Credentials
from gloveport.policy.redaction import Redaction
from gloveport.sources.mcp.connection import REPLY_TOO_LARGE
from gloveport.sources.mcp.line_splitter import LineSplitter, OverlongLine
from gloveport.sources.mcp.messages import MessageLimitError, decode, to_small

INHERITED = ("PATH", "HOME")
"""All that a command gets of this process's environment: where programs are, and where npx and uvx keep theirs."""

SECRET_PREFIX = "env:"
READ_BYTES = 64 * 1024
KEPT_STDERR_BYTES = 64 * 1024
SHOWN_LINES = 12
SHOWN_LINE_CHARS = 300
MAX_FOREIGN_LINES = 10_000
"""Lines in a row that are no MCP before the server is given up."""
# How long a server may take to end when its stdin closes, and again to obey SIGTERM, before it is killed.
GRACE_SECONDS = 2.0
CHILDREN_SECONDS = 0.5
STREAM_CLOSED = (anyio.BrokenResourceError, anyio.ClosedResourceError)


async def command_environment(
    config: SourceConfig, credentials: Credentials, host: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], Redaction]:
    """Return the environment variables of a server's command, and the redaction of the secrets among them.

    `NAME = "env:OTHER"` in the settings is a secret: the source's credential of the slot NAME.
    """
    variables = {name: host[name] for name in INHERITED if name in host}
    secrets: list[Attachment] = []
    for name, value in config.env.items():
        if not value.startswith(SECRET_PREFIX):
            variables[name] = value
            continue
        secret = await credentials.find(config.name, name, "")
        if secret is None:
            variable = value.removeprefix(SECRET_PREFIX)
            message = f"the command of the source {config.name} needs {name}, and {variable} is not set"
            raise SourceError(message, code="auth-required", hint=f"set {variable}")
        secrets.append(Attachment("header", name, secret, frozenset()))
        variables[name] = secret.reveal()
    return variables, Redaction(secrets)


class StdioConnection:
    """A command that is started for one session and ended with it, together with its children."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        redaction: Redaction,
        *,
        folder: str | None,
        max_bytes: int,
    ) -> None:
        self._argv = argv
        self._folder = folder
        self._environment = environment
        self._max_bytes = max_bytes
        self._redaction = redaction
        self._process: Process | None = None
        self._stderr = b""  # its end, and lines on stdout that are no MCP
        self._violation = ""  # why the connection was given up
        self._foreign_lines = 0  # in a row
        self.lost = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Start the command; on leaving, end it and every process in its group."""
        transport, protocol = await self._start()
        process = self._process = Process(transport, protocol, asyncio.get_running_loop())
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read_stdout, process, incoming)
                group.start_soon(self._read_stderr, process)
                group.start_soon(self._watch_exit, protocol.exited)
                group.start_soon(self._write_stdin, process, outgoing)
                try:
                    yield read, write
                finally:
                    with anyio.CancelScope(shield=True):
                        await _stop(process)
                    group.cancel_scope.cancel()
        finally:
            for stream in (incoming, read, write, outgoing):
                stream.close()
            with suppress(PermissionError, ProcessLookupError):
                transport.close()  # a process that left the group may hold the pipes open for ever

    def claim(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result: it is carried whole."""
        return result

    def exit_report(self) -> str:
        """Return how the process ended, and the last lines that it wrote on stderr."""
        status = self._process.returncode if self._process else None
        ended = "" if status is None or self._violation else f"it ended with status {status}"
        if status is not None and status < 0:
            ended = f"it was ended by {signal.Signals(-status).name}"
        stderr = self._last_lines()
        return "; ".join(part for part in (self._violation or ended, stderr and f"its last output:\n{stderr}") if part)

    def _last_lines(self) -> str:
        # Secrets are redacted in more than is shown, so that what is shown can't begin with half of one.
        text = self._redaction.clean(self._stderr).decode("utf-8", "replace")
        lines = ["".join(c if c.isprintable() else " " for c in line[-SHOWN_LINE_CHARS:]) for line in text.splitlines()]
        return "\n".join([line for line in lines if line.strip()][-SHOWN_LINES:])

    async def _start(self) -> tuple[asyncio.SubprocessTransport, _ExitProtocol]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.subprocess_exec(
                lambda: _ExitProtocol(READ_BYTES, loop),
                *self._argv,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else str(error)
            message = f"the command {self._argv[0]!r} can't be started: {problem}"
            raise SourceError(message, hint="check that it is installed and on the PATH") from None

    async def _read_stdout(self, process: Process, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout
        splitter = LineSplitter(self._max_bytes)
        try:
            while not self._violation and (chunk := await process.stdout.read(READ_BYTES)):
                for line in splitter.feed(chunk):
                    if message := await self._message(line):
                        with suppress(*STREAM_CLOSED):  # the session is closing: drop what the server still writes
                            await incoming.send(message)
        finally:
            incoming.close()
            self.lost.set()

    async def _message(self, line: bytes | OverlongLine) -> SessionMessage | None:
        if isinstance(line, OverlongLine):
            return self._error_in_place(line, f"is larger than {self._max_bytes:,} bytes")
        large = len(line) > LARGE_BYTES
        try:
            value = await decode(await off_loop_if(large, self._redaction.clean, line))
            message = jsonrpc_message_adapter.validate_python(to_small(value) if large else value, by_name=False)
        except MessageLimitError as problem:
            return self._error_in_place(OverlongLine.of(line), f"{problem}")
        except ValueError:  # also what pydantic raises
            self._stderr = (self._stderr + line[-KEPT_STDERR_BYTES:] + b"\n")[-KEPT_STDERR_BYTES:]
            self._foreign_lines += 1
            if self._foreign_lines >= MAX_FOREIGN_LINES:
                self._violation = "it writes something that is not MCP on stdout"
            return None
        self._foreign_lines = 0
        return SessionMessage(message)

    def _error_in_place(self, line: OverlongLine, problem: str) -> SessionMessage | None:
        """Return the error that the waiting call gets in place of a line that can't be read."""
        if line.id is None:  # which call waits for this reply can't be known any more
            self._violation = f"it sent a message that {problem}"
            return None
        error = ErrorData(code=REPLY_TOO_LARGE, message=f"the reply {problem}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.id, error=error))

    async def _read_stderr(self, process: Process) -> None:
        assert process.stderr
        while chunk := await process.stderr.read(READ_BYTES):
            self._stderr = (self._stderr + chunk)[-KEPT_STDERR_BYTES:]

    async def _watch_exit(self, exited: asyncio.Event) -> None:
        """Report the connection lost soon after the process exits: a child of it may hold its stdout open for ever.

        Until then, what the process had written is still read.
        """
        await exited.wait()
        with anyio.move_on_after(CHILDREN_SECONDS):
            await self.lost.wait()
        self.lost.set()

    async def _write_stdin(self, process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin
        with suppress(OSError):
            async with outgoing:
                async for item in outgoing:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
            return  # the session closes
        self.lost.set()


class _ExitProtocol(SubprocessStreamProtocol):
    """Sets `exited` when the process exits, even while a child holds its pipes; `Process.wait` would wait for those too."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        """Set `exited`."""
        super().process_exited()
        self.exited.set()


async def _stop(process: Process) -> None:
    """End a process and its group: close stdin, then SIGTERM, then SIGKILL. The pid is also the group's id."""
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
    """Send a signal to a process group; return False when no process is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
