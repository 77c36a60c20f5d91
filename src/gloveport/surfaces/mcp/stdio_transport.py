"""The MCP transport on standard input and output: bounded lines, and a bounded number of requests under way (M13, S23).

The library's own transport reads on while answers wait to be written. Thousands of requests in one burst are then under way
at once: they take memory without bound, and to end them holds the event loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from gloveport.errors import CODES
from gloveport.sources.mcp.line_splitter import LineSplitter, OverlongLine
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, read_message

READ_BYTES = 256 * 1024
MAX_QUEUED_LINES = 64
MAX_REQUESTS = 256  # under way at once: to cancel this many takes 20 ms of the event loop
STUCK_SECONDS = 1.0  # without the end of any request, before further ones are refused
BUSY = -32000  # the first code that JSON-RPC leaves to servers

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class StdioTransport:
    """Reads messages from a descriptor and writes messages to a file, one a line.

    A line that is no message, or exceeds a bound, is answered here, and the library never parses it. While as many requests
    as allowed are under way, the next one waits. When none of them ends, it is refused: what ends one may come after it.
    """

    def __init__(self, descriptor: int, out: TextIO) -> None:
        self._descriptor = descriptor
        self._out = out
        self._writing = asyncio.Lock()
        self._slots = asyncio.Semaphore(MAX_REQUESTS)
        self._is_stuck = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Yield the two streams of a server: messages from the client, and those to it."""
        sending, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, receiving = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive, sending)
            tasks.start_soon(self._send, receiving)
            yield incoming, outgoing

    async def _receive(self, sending: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with sending:
            async for line in _read(self._descriptor):
                try:
                    message = await _parse(line)
                except ValueError as problem:
                    known = line if isinstance(line, OverlongLine) else OverlongLine.of(line)
                    await self._refuse(known.id, INVALID_REQUEST, f"the request {problem}")
                    continue
                if not isinstance(message, JSONRPCRequest):
                    self._is_stuck = False  # it may end a request
                    await sending.send(SessionMessage(message))
                elif await self._take_slot():
                    metadata = ServerMessageMetadata(on_request_unanswered=self._release_slot)
                    await sending.send(SessionMessage(message, metadata))
                else:
                    text = f"busy: {MAX_REQUESTS} requests are under way, and none ends. {CODES['busy'].fix}"
                    await self._refuse(message.id, BUSY, text)

    async def _send(self, receiving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with receiving:
            async for sent in receiving:
                await self._write(sent.message)
                if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
                    await self._release_slot()

    async def _take_slot(self) -> bool:
        if self._slots.locked() and self._is_stuck:
            return False
        try:
            async with asyncio.timeout(STUCK_SECONDS):
                return await self._slots.acquire()
        except TimeoutError:
            self._is_stuck = True
            return False

    async def _release_slot(self) -> None:
        self._is_stuck = False
        self._slots.release()

    async def _refuse(self, number: int | str | None, code: int, message: str) -> None:
        await self._write(JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message)))

    async def _write(self, message: JSONRPCMessage) -> None:
        text = message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        async with self._writing:
            await anyio.to_thread.run_sync(self._write_line, text)

    def _write_line(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


async def _parse(line: bytes | OverlongLine) -> JSONRPCMessage:
    if isinstance(line, OverlongLine):
        raise ValueError(f"has more than {MAX_REQUEST_BYTES:,} bytes")
    await read_message(line)
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:  # its text repeats the message
        raise ValueError("is not a JSON-RPC message") from None


async def _read(descriptor: int) -> AsyncIterator[bytes | OverlongLine]:
    """Yield lines of input. A daemon thread reads them, because a blocking read can't be cancelled."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | OverlongLine | None] = asyncio.Queue()
    room = threading.Semaphore(MAX_QUEUED_LINES)

    def read() -> None:
        splitter = LineSplitter(MAX_REQUEST_BYTES)
        while chunk := os.read(descriptor, READ_BYTES):
            for line in splitter.feed(chunk):
                room.acquire()
                loop.call_soon_threadsafe(queue.put_nowait, line)
        loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        room.release()
        if isinstance(line, OverlongLine) or line.strip():
            yield line
