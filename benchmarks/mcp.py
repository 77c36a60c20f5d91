"""The MCP server over HTTP: its overhead on a run, and its sustained rate beside FastMCP's code mode."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.peers import CONTENDERS, PeerError, interpreter
from benchmarks.processes import spent
from benchmarks.programs import unread
from benchmarks.sampling import Row
from gloveport import Gloveport
from gloveport.folders import CONFIG_FILE
from gloveport.policy.credentials import Secret
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck

HERE = Path(__file__).parent / "beside"
FASTMCP = next((one.module, one.packages) for one in CONTENDERS if one.module == "fastmcp_code_mode")
TOOLS = str(HERE / "shop.py")
TOKEN = "the-token-of-the-benchmark-of-mcp"
CLIENTS, SLICE_SECONDS, SLICES = 8, 4.0, 3
PYTHON = """
total = await tools.shop.add(a=1, b=2)
twice = await tools.shop.double(n=total)
await tools.shop.label(n=twice)
"""
TYPESCRIPT = """
const total = await tools.shop.add({ a: 1, b: 2 });
const twice = await tools.shop.double({ n: total });
await tools.shop.label({ n: twice });
"""
THEIRS = """
total = (await call_tool("add", {"a": 1, "b": 2}))["result"]
twice = (await call_tool("double", {"n": total}))["result"]
return (await call_tool("label", {"n": twice}))["result"]
"""
_numbers = itertools.count(1)


async def call(http: httpx2.AsyncClient, url: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool with a single request of revision 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": next(_numbers), "method": "tools/call", "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
        "authorization": f"Bearer {TOKEN}",
    }
    reply = await http.post(url, json=body, headers=headers)
    reply.raise_for_status()
    return reply.json()["result"]


async def added(rounds: int, language: str, code: str) -> Row:
    """Measure `execute` over HTTP, an empty call over HTTP and the run itself in turn on one server."""
    port = Gloveport(sources=[TOOLS], check_types=True, spare=2)
    server = HttpServer(port, ServerNames(), TokenCheck(Secret(TOKEN, "token")), Admission(), 1)
    listening = listen("127.0.0.1", 0, None)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    serving = asyncio.create_task(server.serve(listening))
    whole: list[float] = []
    empty: list[float] = []
    bare: list[float] = []
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:

        async def execute() -> None:
            answer = await call(http, url, "execute", {"code": code, "language": language})
            assert answer["structuredContent"]["value"] == "number 6", answer

        async def search() -> None:
            await call(http, url, "search", {"query": ""})

        async def run() -> None:
            assert (await port.run(code, language=language)).value == "number 6"  # pyright: ignore[reportArgumentType]

        for index in range(rounds + 3):
            for work, times in ((execute, whole), (search, empty), (run, bare)):
                await asyncio.sleep(0.15)  # the pool refills
                began = time.perf_counter()
                await work()
                if index >= 3:
                    times.append(time.perf_counter() - began)
    server.stop()
    server.stop()
    await serving
    ours, floor = statistics.median(whole), statistics.median(empty) + statistics.median(bare)
    told = (
        f"{floor * 1e3:.1f} ms (empty call {statistics.median(empty) * 1e3:.1f} + run {statistics.median(bare) * 1e3:.1f})"
    )
    return f"execute over HTTP, {language}, p50", f"{ours * 1e3:.1f} ms", told, f"{ours / floor:.2f} ×", "≤ 2.0 ×"


@dataclass(frozen=True)
class Served:
    """Run a server in another process."""

    url: str
    pid: int


DENSE = '[sandbox]\nengines = ["quickjs", "monty"]\n'


@contextlib.contextmanager
def ours(settings: str = "") -> Iterator[Served]:
    """Run `gloveport serve` with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.touch(mode=0o600)
        token.write_text(TOKEN)
        env = os.environ | {"XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
        own = Path(folder) / "gloveport" / CONFIG_FILE  # the user's own settings: a project's would need trust
        own.parent.mkdir()
        own.write_text(settings)
        command = [sys.executable, "-m", "gloveport.surfaces.cli.main", "serve", TOOLS, "--port", "0", "--json"]
        with subprocess.Popen(
            [*command, "--token-file", str(token)], stdout=subprocess.PIPE, env=env, cwd=folder
        ) as process:
            try:
                assert process.stdout
                yield Served(json.loads(process.stdout.readline())["mcp"], process.pid)
            finally:
                process.terminate()


@contextlib.contextmanager
def theirs() -> Iterator[Served]:
    """Run FastMCP in an environment of its own."""
    python = interpreter(*FASTMCP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([python, HERE / "fastmcp_server.py", str(port)], env={"PATH": os.environ["PATH"]}) as process:
        try:
            yield Served(f"http://127.0.0.1:{port}/mcp", process.pid)
        finally:
            process.terminate()


@dataclass(frozen=True)
class Slice:
    """Runs per second, and milliseconds of CPU time per run: the server, its type checkers, everything else."""

    rate: float
    host: float
    checkers: float
    sandboxes: float


async def sustained(served: Served, arguments: dict[str, Any]) -> Slice:
    """Measure the rate of several clients that each send the next request after the reply."""
    done = 0
    before, began = spent(served.pid), time.perf_counter()

    async def ask(http: httpx2.AsyncClient) -> None:
        nonlocal done
        while time.perf_counter() < began + SLICE_SECONDS:
            text = unread(arguments["code"], arguments.get("language", "python"))
            answer = await call(http, served.url, "execute", {**arguments, "code": text})
            assert "number 6" in json.dumps(answer), answer
            done += 1

    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        await asyncio.gather(*(ask(http) for _ in range(CLIENTS)))
    seconds = time.perf_counter() - began
    used = {"host": 0.0, "checkers": 0.0, "sandboxes": 0.0}
    for pid, (name, total) in spent(served.pid).items():
        is_checker = name == "ty" or (name == "deno" and pid in before)
        part = "host" if pid == served.pid else "checkers" if is_checker else "sandboxes"
        used[part] += (total - before.get(pid, ("", 0.0))[1]) / done * 1e3
    return Slice(done / seconds, **used)


async def until_up(url: str, arguments: dict[str, Any]) -> None:
    """Wait until a server answers."""
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        for _ in range(600):
            with contextlib.suppress(httpx2.TransportError):
                await call(http, url, "execute", arguments)
                return
            await asyncio.sleep(0.1)
    raise TimeoutError(url)


async def throughput() -> AsyncIterator[Row]:
    """Measure both servers in turn, and the share of each process."""
    programs = {
        "python": {"code": PYTHON, "language": "python"},
        "typescript": {"code": TYPESCRIPT, "language": "typescript"},
    }
    slices: dict[str, list[Slice]] = {"fastmcp": []}
    with ours() as own, ours(DENSE) as dense, theirs() as other:
        served = {"": own, ", dense (quickjs, monty)": dense}
        runs = {language + kind: (server, language) for kind, server in served.items() for language in programs}
        for server, language in runs.values():
            await until_up(server.url, programs[language])
        await until_up(other.url, {"code": THEIRS})
        for _ in range(SLICES):
            slices["fastmcp"].append(await sustained(other, {"code": THEIRS}))
            for name, (server, language) in runs.items():
                slices.setdefault(name, []).append(await sustained(server, programs[language]))
    middle = {name: sorted(found, key=lambda one: one.rate)[len(found) // 2] for name, found in slices.items()}
    floor = middle.pop("fastmcp")
    for language, one in middle.items():
        name = f"runs a second with 3 tool calls over HTTP, {CLIENTS} clients, {language}"
        told = f"{floor.rate:.0f} /s (FastMCP's code mode)"
        yield name, f"{one.rate:.0f} /s", told, f"{one.rate / floor.rate:.2f} ×", "≥ 2.0 ×"
        mine = f"server {one.host:.1f}, type checker {one.checkers:.1f}, fresh jailed process {one.sandboxes:.1f} ms"
        told = f"server and worker {floor.host + floor.sandboxes:.1f} ms"
        yield f"processor time of one of them, {language}", mine, told, "", ""


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this module."""
    found = [await added(rounds, "typescript", TYPESCRIPT), await added(rounds, "python", PYTHON)]
    try:
        return [*found, *[row async for row in throughput()]]
    except PeerError as error:
        return [*found, ("runs a second over HTTP", "", f"FastMCP's code mode {error}", "", "≥ 2.0 ×")]


if __name__ == "__main__":
    for line in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 20)):
        print(" | ".join(line))
