"""Support for tests of the sandbox host: a server on loopback, and a caller with tools on its WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed


class HostClient:
    """A caller: runs programs over one socket, and answers their calls with functions of the test."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._reading = asyncio.create_task(self._read())
        self._answering: set[asyncio.Task[None]] = set()
        self._tools: dict[str, Mapping[str, Callable[..., Any]]] = {}
        self._ends: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self.heard: list[dict[str, Any]] = []

    @classmethod
    async def open(cls, url: str, token: str, **options: Any) -> Self:
        """Return a connected caller."""
        headers = {"Authorization": f"Bearer {token}"}
        address = url.replace("http", "ws", 1) + "/v1/host"
        return cls(await connect(address, additional_headers=headers, max_size=None, proxy=None, **options))

    async def send(self, message: Any) -> None:
        """Send a message."""
        await self._socket.send(message if isinstance(message, str) else json.dumps(message))

    async def start(
        self, run: str, code: str, tools: Mapping[str, Any] | None = None, listed: list[Any] | None = None, **more: Any
    ) -> None:
        """Start a run. A tool is a function, or a pair of a function and what else its definition has."""
        pairs = {name: tool if isinstance(tool, tuple) else (tool, {}) for name, tool in (tools or {}).items()}
        self._tools[run] = {name: function for name, (function, _) in pairs.items()}
        self._ends.setdefault(run, asyncio.Queue())
        defined = [{"name": name, **about} for name, (_, about) in pairs.items()] if listed is None else listed
        await self.send({"type": "run", "run": run, "code": code, "tools": defined, **more})

    async def end(self, run: str) -> dict[str, Any]:
        """Return the next outcome of a run, or why it was refused."""
        async with asyncio.timeout(60):
            return await self._ends[run].get()

    async def run(self, run: str, code: str, tools: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Start a run and return how it ended."""
        await self.start(run, code, tools, **more)
        return await self.end(run)

    def of(self, run: str) -> list[dict[str, Any]]:
        """Return what was heard of a run."""
        return [message for message in self.heard if message["run"] == run]

    async def close(self) -> None:
        """Close the socket as a caller does that has finished."""
        await self._socket.close()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)

    def vanish(self) -> None:
        """Cut the connection, as a caller does whose process is killed."""
        self._socket.transport.abort()

    @property
    def close_code(self) -> int | None:
        """The code with which the server closed the socket."""
        return self._socket.close_code

    async def closed(self) -> None:
        """Wait until the socket is closed."""
        async with asyncio.timeout(60):
            await self._socket.wait_closed()

    async def _read(self) -> None:
        async for text in _texts(self._socket):
            message = json.loads(text)
            self.heard.append(message)
            if message["type"] == "call":
                task = asyncio.create_task(self._answer(message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            elif message["type"] in ("outcome", "refused"):
                self._ends[message["run"]].put_nowait(message.get("outcome") or message["error"])

    async def _answer(self, call: Mapping[str, Any]) -> None:
        about = {"run": call["run"], "call": call["call"]}
        try:
            value = self._tools[call["run"]][call["tool"]](call["args"])
            value = await value if inspect.isawaitable(value) else value
        except Exception as error:  # noqa: BLE001 - the tool of a test
            await self.send({"type": "error", **about, "error": {"message": str(error)}})
        else:
            await self.send({"type": "result", **about, "value": value})


async def _texts(socket: ClientConnection) -> AsyncIterator[str | bytes]:
    """Yield what arrives until the connection is closed, in whatever way."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield await socket.recv()
