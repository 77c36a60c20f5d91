"""A hostile service on loopback, as the host's side holds it: a process that serves what is written into its folder."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

PEER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("peer.py")))


class Service:
    """`url` leads to the files of the folder; `stdio` is the command of an MCP server with the same answers."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.stdio = (*PEER, "stdio", str(folder))

    def put(self, name: str, data: bytes) -> Path:
        """Write a file: a raw HTTP reply, or the result of an MCP method."""
        path = self._folder / name
        path.write_bytes(data)
        return path

    def put_reply(self, name: str, body: bytes, media: str = "application/json", status: int = 200, more: str = "") -> None:
        """Write an HTTP reply with this body. `more` is further header lines."""
        lines = f"HTTP/1.1 {status} Said\r\ncontent-type: {media}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        self.put(name, lines.encode("utf-8", "surrogatepass") + body)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._folder / name).unlink(missing_ok=True)


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    """Run the service while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        argv = (*PEER, "http", folder)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
        assert process.stdout is not None
        try:
            yield Service(Path(folder), int(await process.stdout.readline()))
        finally:
            process.kill()
            await process.wait()


async def send(port: int, data: bytes) -> bytes:
    """Send bytes to a port of loopback from another process, and return what came back."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        argv = (*PEER, "send", str(port), file.name)
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, env=dict(os.environ))
        out, _ = await process.communicate()
        return out
