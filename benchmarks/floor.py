"""The host side of the floor for Deno: a bare process, started in advance, with our framing under asyncio."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

import orjson

from gloveport.sandbox.engines.deno.engine import ENVIRONMENT, FLAGS, find_deno
from gloveport.sandbox.wire import FrameReader, pack

SCRIPT = Path(__file__).with_name("floor.js")


class Floor:
    """A bare engine process that waits for a program. A cold one has not warmed up and sends no ready message."""

    def __init__(self, *, cold: bool = False) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            environment = dict(ENVIRONMENT, DENO_DIR=f"{SCRIPT}/none")
            self.process = subprocess.Popen(
                [find_deno(), "run", *FLAGS, "--v8-flags=--random-seed=1", str(SCRIPT), *(["cold"] if cold else [])],
                stdin=theirs,
                stdout=theirs,
                env=environment,
            )
        self._socket.setblocking(False)

    async def ready(self) -> Floor:
        """Wait for the ready message and return self."""
        await asyncio.get_running_loop().sock_recv(self._socket, 4096)
        return self

    async def run(self, code: str, dialect: str) -> Any:
        """Run a program, echo its calls, and return its result."""
        return await serve(self._socket, orjson.dumps(["start", code, dialect]))

    def end(self) -> None:
        """Kill and reap the process."""
        self.process.kill()
        self.process.wait()
        self._socket.close()


async def serve(engine: socket.socket, start: bytes) -> Any:
    """Send a start frame, echo the calls of the program, and return its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    reader, buffer = FrameReader(2**24, 2**30), memoryview(bytearray(262144))

    def readable() -> None:
        outgoing = []
        size = engine.recv_into(buffer)
        for frame in reader.feed(bytes(buffer[:size])):
            message = orjson.loads(frame)
            if message[0] == "call":
                outgoing.append(pack(orjson.dumps(["reply", message[1], message[3][0]["value"]])))
            elif not done.done():
                done.set_result(message[1])
        if outgoing:
            engine.send(b"".join(outgoing))

    loop.add_reader(engine, readable)
    engine.send(pack(start))
    try:
        return await done
    finally:
        loop.remove_reader(engine)
