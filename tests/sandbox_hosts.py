"""Sandbox hosts for tests: real ones in processes of their own, hostile ones, and the settings of their callers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from gloveport import Gloveport
from gloveport.config import Config
from gloveport.store.tokens import Role
from tests.surfaces.agents import TOKEN, http_server
from tests.surfaces.command import COMMAND, environment

TOKEN_VARIABLE = "GLOVEPORT_TEST_SANDBOX_TOKEN"
START_SECONDS = 60


@dataclass
class SandboxHostProcess:
    """A Gloveport that lends sandboxes, in a process of its own."""

    process: subprocess.Popen[str]
    url: str

    def kill(self) -> None:
        """Kill it at once, as the kernel does when memory runs out."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def sandbox_host(role: Role = "host", **options: Any) -> Iterator[SandboxHostProcess]:
    """Start a sandbox host with these options of `Gloveport` and a token of this role, and end it afterwards."""
    code = f"from tests.sandbox_hosts import serve_sandboxes; serve_sandboxes({options!r}, {role!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield SandboxHostProcess(process, process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        process.stdout.close()


@contextlib.contextmanager
def served_sandbox_host(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the URL and the token of a real `gloveport serve --role host`, with its folders below this one."""
    folders = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
    command = [*COMMAND, "serve", "--role", "host", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(**folders), cwd=folder) as process:
        try:
            assert process.stdout is not None
            about = json.loads(process.stdout.readline())
            yield about["url"], Path(about["token_file"]).read_text().strip()
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def serve_sandboxes(options: dict[str, Any], role: Role = "host") -> None:
    """Serve until SIGTERM, in a process of its own; print the URL first."""

    async def main() -> None:
        stopped = asyncio.Event()
        async with http_server(Gloveport(**options), role=role) as url:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
            print(url, flush=True)
            await stopped.wait()

    asyncio.run(main())


def caller_settings(url: str, *, token: str = TOKEN, allow_private: bool = True) -> Config:
    """Return settings whose programs run at a sandbox host."""
    os.environ[TOKEN_VARIABLE] = token
    remote = {"url": url, "token": f"env:{TOKEN_VARIABLE}", "allow_private": allow_private}
    return Config(sandbox={"engines": ["remote"], "remote": remote})


@contextlib.asynccontextmanager
async def hostile_host(answer: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[str]:
    """Yield the URL of a server that answers callers in its own way."""
    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextlib.asynccontextmanager
async def cuttable(url: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Yield a URL that leads to another one, and a function that cuts every connection through it."""
    target = int(url.rpartition(":")[2])
    writers: list[asyncio.StreamWriter] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", target)
        writers.extend((writer, back))
        await asyncio.gather(copy(reader, back), copy(there, writer))

    def cut() -> None:
        for writer in writers:
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", cut
        cut()


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something is so; fail if it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)
