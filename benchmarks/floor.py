"""The floor's host side: a bare Deno, spawned in advance, served under asyncio with the same framing as ours."""

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
    """One bare engine process that waits for a program; a cold one has not warmed up and does not say ready."""

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
        """Itself, once the process has said ready."""
        await asyncio.get_running_loop().sock_recv(self._socket, 4096)
        return self

    async def run(self, code: str, dialect: str) -> Any:
        """The program's result; each of its calls is echoed."""
        return await serve(self._socket, orjson.dumps(["start", code, dialect]))

    def end(self) -> None:
        """Kill the process and reap it."""
        self.process.kill()
        self.process.wait()
        self._socket.close()


async def serve(engine: socket.socket, start: bytes) -> Any:
    """What the program gives that a bare engine is started on by this frame; each of its calls is echoed."""
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
