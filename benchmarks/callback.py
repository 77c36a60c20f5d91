"""What it costs to call a tool that a caller brings: a round trip from the program to the caller and back.

The floor is an empty call of the same server over HTTP: a request of its API with the smallest body and answer that carries a
token. Server and caller are two processes, and both ways of calling are measured: a WebSocket, and a callback over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from tests.surfaces.hosts import HostClient

from benchmarks.sampling import Row, median

BAR = "≤ 2 ×"
CALLS = 50
# The program measures its own calls, in the host's time: the clock of a guest moves with the events that it gets.
CODE = f"""
const times: number[] = [];
for (let i = 0; i < {CALLS}; i++) {{
  const began = performance.now();
  await tools.echo({{n: i}});
  times.push(performance.now() - began);
}}
return times;
"""


class Caller(asyncio.Protocol):
    """Answers each call that is posted to it. It reads no more of HTTP than one client of ours writes."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        _, _, body = self._received.partition(b"\r\n\r\n")
        try:
            n = json.loads(body)["args"]["n"]
        except ValueError:
            return  # the rest is on its way
        self._received = b""
        answer = b'{"value":%d}' % n
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))


@asynccontextmanager
async def server(folder: Path, origin: str) -> AsyncIterator[tuple[str, str]]:
    """Yield the URL and the token of a `gloveport serve` that may call a caller at this origin."""
    settings = folder / "gloveport.toml"
    settings.write_text(f'[serve]\ncallbacks_private = ["{origin}"]\n')
    own = {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gloveport", "serve", "--config", str(settings), "--role", "host", "--port", "0"),
        *("--json", "--quiet"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **own},
    )
    try:
        about = json.loads(await process.stdout.readline())
        yield about["url"], await asyncio.to_thread(_token, about["token_file"])
    finally:
        process.terminate()
        await process.wait()


def _token(file: str) -> str:
    return Path(file).read_text().strip()


async def rows(rounds: int) -> list[Row]:
    """Return a row for each way of calling, for tools that only read and for others."""
    loop = asyncio.get_running_loop()
    callbacks = await loop.create_server(Caller, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{callbacks.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as name:
        async with server(Path(name), origin) as (url, token):
            return await _measured(rounds, url, token, origin)


async def _measured(rounds: int, url: str, token: str, origin: str) -> list[Row]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    samples: dict[str, list[float]] = {}
    caller = await HostClient.open(url, token)
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60, headers=headers) as http:
        for number in range(rounds + 1):
            found = {"empty": await _empty_calls(url, token)}
            for what, only_reads in (("that reads", True), ("that may write", False)):
                options = {"readOnly": only_reads}
                ran = await caller.run(
                    f"{what}-{number}".replace(" ", "-"), CODE, {"echo": (lambda args: args["n"], options)}
                )
                found[f"{what}, WebSocket"] = ran["value"]
                tools, callback = [{"name": "echo", **options}], {"url": origin, "token": "t"}
                reply = await http.post("/v1/runs", json={"code": CODE, "tools": tools, "callback": callback})
                found[f"{what}, callback over HTTP"] = reply.json()["value"]
            for what, times in found.items():
                samples.setdefault(what, []).extend(times[2:] if number else [])
    await caller.close()
    floor = median(samples.pop("empty"))
    return [
        (
            f"a call of a caller's tool {what}, p50",
            f"{median(times):.2f} ms",
            f"{floor:.2f} ms (an empty call of the API)",
            f"{median(times) / floor:.2f} ×",
            BAR,
        )
        for what, times in samples.items()
    ]


async def _empty_calls(url: str, token: str) -> list[float]:
    """Return how long empty calls took, in milliseconds: on one connection, without the cost of a client's library."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = b'{"query":"","limit":1}'
    request = (
        f"POST /v1/search HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    times: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        times.append((time.perf_counter() - began) * 1000)
        assert head.startswith(b"HTTP/1.1 200"), head
    writer.close()
    return times


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 10)):
        print(" | ".join(row))
