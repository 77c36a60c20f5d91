"""GitHub's GraphQL schema, compiled cold from its JSON, and calls to a local server beside the bare client.

The schema is npm's `@octokit/graphql-schema`, fetched by `npm pack` into a temporary folder.
"""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from graphql import build_client_schema, parse, validate

from gloveport.config import SourceConfig
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.graphql.opening import open_graphql
from gloveport.sources.graphql.source import GraphQLSource

Row = tuple[str, str, str, str, str]
PACKAGE = "@octokit/graphql-schema@15.26.1"
CALLS = 200


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this module."""
    return await _measured(rounds)


async def _measured(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        file = _fetched(Path(folder))
        outside = SourceContext(Egress(), EnvironmentCredentials({}, {}), Path(folder), DefinitionTasks("kernel"))
        config = SourceConfig("github", "graphql", str(file), base_url="https://api.github.com/graphql")
        opening, cached, source = await _loads(config, outside, max(3, rounds // 8))
        found = [opening, cached, _valid(file, source)]
        found.append(await _calls(outside, max(3, rounds // 8)))
        await outside.egress.close()
        return found


def _fetched(folder: Path) -> Path:
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True)
    (packed,) = folder.glob("*.tgz")
    with tarfile.open(fileobj=io.BytesIO(packed.read_bytes())) as archive:
        member = archive.extractfile("package/schema.json")
        assert member is not None
        (folder / "schema.json").write_bytes(member.read())
    return folder / "schema.json"


async def _loads(config: SourceConfig, outside: SourceContext, rounds: int) -> tuple[Row, Row, GraphQLSource]:
    """Open the schema without and with its compiled form in the cache."""
    cold, cached = [], []
    for _ in range(rounds):
        for file in outside.cache.glob("*.sqlite"):
            file.unlink()
        for times in (cold, cached):
            began = time.perf_counter()
            source = await open_graphql(config, outside)
            times.append(time.perf_counter() - began)
    tools = len(source.tools())
    first = f"GitHub's GraphQL schema, cold, to {tools} tools, best", f"{min(cold):.2f} s", "", "", "≤ 1.0 s"
    second = "the same from the cache, best", f"{min(cached) * 1e3:.0f} ms", "", "", ""
    return first, second, source


def _valid(file: Path, source: GraphQLSource) -> Row:
    """Validate the default document of every tool against the schema."""
    schema = build_client_schema(json.loads(file.read_bytes()), assume_valid=True)  # it breaks minor rules of GraphQL
    began = time.perf_counter()
    texts = [
        source._documents.document(address, tuple(source._schema.tool(address).arguments), paged=paged)
        for tool in source.tools()
        for address in [tool.address.removeprefix("github.")]
        for paged in {False, tool.pages}
    ]
    seconds = time.perf_counter() - began
    wrong = [text for text in texts if validate(schema, parse(text))]
    assert not wrong, wrong[0]
    return f"{len(texts)} default documents for GitHub, all valid", f"{seconds * 1e3:.0f} ms", "", "", ""


@contextmanager
def _server() -> Iterator[str]:
    """Run a server in another process and yield its endpoint."""
    command = [sys.executable, "-m", "tests.sources.graphql.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdin
        yield f"{server.stdout.readline().strip()}/graphql"
        server.stdin.close()


async def _calls(outside: SourceContext, rounds: int) -> Row:
    """Measure sequential calls, ours and the bare client's in turn."""
    ours, bare = [], []
    with _server() as url:
        source = await open_graphql(SourceConfig("lib", "graphql", url, allow_private=True), outside)
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(rounds):
                ours.append(await _ours(source))
                bare.append(await _bare(client, url))
    mine, floor = statistics.median(ours), statistics.median(bare)
    shown = f"{mine * 1e3:.2f} ms", f"{floor * 1e3:.2f} ms", f"{mine / floor:.2f} ×"
    return "one GraphQL call, local server, p50", *shown, "≤ 1.5 ×"


async def _ours(source: GraphQLSource) -> float:
    tool = next(tool for tool in source.tools() if tool.address == "lib.book")
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await source.call(tool, {"id": "b1", "select": "title author { name }"})
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def _bare(client: httpx2.AsyncClient, url: str) -> float:
    asked = {"query": "query book($id: ID!) { book(id: $id) { title author { name } } }", "variables": {"id": "b1"}}
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        (await client.post(url, json=asked)).json()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    for row in rows(40):
        print(" | ".join(row))
