"""A tool call through an OpenAPI source and egress, beside the same request by a bare HTTP client to one local server."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import msgspec

from gloveport.config import SourceConfig
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.context import SourceContext
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi.operation import CompiledOperation, MediaContent, Operation, Parameter, RequestBody
from gloveport.sources.openapi.source import OpenApiSource

Row = tuple[str, str, str, str, str]
Call = Callable[[], Awaitable[object]]

BODY = b'{"id":17,"title":"A thing","labels":["one","two"],"owner":{"login":"ada","admin":false}}'
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
OPERATIONS = {
    "read": Operation(
        "GET",
        "/repos/{owner}/{name}/issues/{number}",
        parameters=(
            *(Parameter(name, name, "path", style="simple", explode=False) for name in ("owner", "name", "number")),
            Parameter("labels", "labels", "query"),
        ),
        produces=("application/json",),
    ),
    "write": Operation(
        "POST", "/issues", body=RequestBody((MediaContent("application/json", "json"),)), produces=("application/json",)
    ),
}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request on a keep-alive connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if length:
                await reader.readexactly(int(length))
            writer.write(REPLY)
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        writer.close()


def _source(url: str, folder: Path, egress: Egress) -> OpenApiSource:
    config = SourceConfig("api", "openapi", "api.json", base_url=url, allow_private=True)
    heads = [ToolHead(name, "", (), name) for name in OPERATIONS]
    texts = [(name, msgspec.json.encode(CompiledOperation(operation, {}))) for name, operation in OPERATIONS.items()]
    return OpenApiSource(
        config,
        SourceContext(egress, EnvironmentCredentials({}, {}), folder, DefinitionTasks("kernel")),
        DefinitionCache.build(folder, "bench", heads, texts, [], {}),
    )


async def rows(rounds: int) -> list[Row]:
    """Return a row for a read with parameters and one for a write with a body, each in turn with the bare client."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    egress = Egress()
    with tempfile.TemporaryDirectory() as folder:
        source = _source(url, Path(folder), egress)
        read, write = source.tools()
        issue = {"title": "A thing", "labels": ["one", "two"], "body": "x" * 200}
        async with httpx2.AsyncClient(trust_env=False) as bare:

            async def called_read() -> object:
                return await source.call(read, {"owner": "ada", "name": "engine", "number": 17, "labels": ["one", "two"]})

            async def bare_read() -> object:
                return (await bare.get(f"{url}/repos/ada/engine/issues/17", params={"labels": ["one", "two"]})).json()

            async def called_write() -> object:
                return await source.call(write, issue)

            async def bare_write() -> object:
                return (await bare.post(f"{url}/issues", json=issue)).json()

            out = [
                await _row("OpenAPI call, GET with parameters", called_read, bare_read, rounds),
                await _row("OpenAPI call, POST with JSON", called_write, bare_write, rounds),
            ]
        await source.close()
        await egress.close()
    server.close()
    return out


async def _row(name: str, called: Call, bare: Call, rounds: int) -> Row:
    ours, floor = [], []
    for index in range(rounds + 20):
        for call, times in ((called, ours), (bare, floor)) if index % 2 else ((bare, floor), (called, ours)):
            began = time.perf_counter()
            await call()
            times.append(time.perf_counter() - began)
    mine, theirs = (statistics.median(times[20:]) for times in (ours, floor))
    return name, f"{mine * 1e6:.0f} µs", f"{theirs * 1e6:.0f} µs (httpx2)", f"{mine / theirs:.2f} ×", "≤ 1.5 ×"


if __name__ == "__main__":
    for row in asyncio.run(rows(2000)):
        print(*row, sep=" | ")
