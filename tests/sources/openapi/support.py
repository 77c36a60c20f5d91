"""A server that records requests and sends prepared replies, and sources made of hand-written operations."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gloveport.config import SourceConfig
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.compiled_definition import CredentialSlot, ToolHead
from gloveport.sources.context import SourceContext
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi.opening import open_openapi
from gloveport.sources.openapi.operation import CompiledOperation, Operation
from gloveport.sources.openapi.source import OpenApiSource
from gloveport.types import Tool
from tests.sources.in_process_tasks import InProcessTasks


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        """Return the header of this name; fails when there are two."""
        found = [value for key, value in self.fields if key == name.lower()]
        assert len(found) < 2, f"{name} was sent {len(found)} times"
        return found[0] if found else None


def answer(body: bytes = b"{}", status: int = 200, content_type: str | None = "application/json", **headers: str) -> bytes:
    """Return a complete HTTP reply."""
    lines = [f"HTTP/1.1 {status} Said", f"content-length: {len(body)}"]
    lines += [f"content-type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Server:
    """A raw HTTP server on loopback. `reply` is bytes or a function of the request; empty bytes close the connection."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.reply: bytes | Callable[[Seen], bytes | Awaitable[bytes]] = answer()
        self.url = ""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        try:
            while seen := await _read(reader):
                self.seen.append(seen)
                reply = self.reply(seen) if callable(self.reply) else self.reply
                reply = await reply if isinstance(reply, Awaitable) else reply
                writer.write(reply.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if seen.method == "HEAD" else reply)
                if not reply:
                    break
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    fields = tuple((name.lower(), value) for name, _, value in (line.partition(": ") for line in lines))
    length = int(dict(fields).get("content-length", 0))
    return Seen(method, target, fields, await reader.readexactly(length))


class Kit:
    """Creates sources that share one egress and one folder."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.environment: dict[str, str] = {}
        self._folder = folder
        self._egress = Egress()
        self._made: list[OpenApiSource] = []

    def source(
        self,
        operations: dict[str, Operation],
        slots: tuple[CredentialSlot, ...] = (),
        facts: dict[str, Any] | None = None,
        **config: Any,
    ) -> OpenApiSource:
        """Return a source of these operations, which calls the recording server unless `base_url` is given."""
        settings = {"base_url": self.server.url, "allow_private": True, "timeout_seconds": 20, **config}
        chosen = SourceConfig("api", "openapi", settings.pop("location", "api.json"), **settings)
        configured = {("api", slot): origin for slot, origin in chosen.credentials.items()}
        outside = SourceContext(
            self._egress, EnvironmentCredentials(configured, self.environment), self._folder, InProcessTasks()
        )
        heads = [
            ToolHead(
                name,
                "",
                (),
                name,
                writes=operation.method not in {"GET", "HEAD", "OPTIONS"},
                pages=operation.paging is not None,
            )
            for name, operation in operations.items()
        ]
        texts = [
            (name, msgspec.json.encode(CompiledOperation(operation, {"type": "object"})))
            for name, operation in operations.items()
        ]
        whole = {"title": "An API", "slots": msgspec.to_builtins(slots), **(facts or {})}
        self._made.append(
            OpenApiSource(
                chosen, outside, DefinitionCache.build(self._folder, f"d{len(self._made)}", heads, texts, [], whole)
            )
        )
        return self._made[-1]

    @asynccontextmanager
    async def opened(self, path: Path, **config: Any) -> AsyncIterator[OpenApiSource]:
        """Open a document as a source that calls the recording server."""
        settings = {"base_url": self.server.url, "allow_private": True, "timeout_seconds": 20, **config}
        chosen = SourceConfig("api", "openapi", str(path), **settings)
        configured = {("api", slot): origin for slot, origin in chosen.credentials.items()}
        credentials = EnvironmentCredentials(configured, self.environment)
        source = await open_openapi(chosen, SourceContext(self._egress, credentials, self._folder, InProcessTasks()))
        try:
            yield source
        finally:
            await source.close()

    async def call(self, operation: Operation, args: dict[str, Any] | None = None, **config: Any) -> Any:
        """Call the operation, down to the socket, and return the value."""
        source = self.source({"it": operation}, **config)
        return await source.call(tool_of(source), args or {})

    async def close(self) -> None:
        for source in self._made:
            await source.close()
        await self._egress.close()


def tool_of(source: OpenApiSource, name: str = "it") -> Tool:
    return next(tool for tool in source.tools() if tool.address == f"api.{name}")


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
