"""Five hundred runs at once on a real server: none is lost, none is mixed up with another, and memory is bounded (M10, R4)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport.types import MIB
from tests.sandbox_hosts import served_sandbox_host
from tests.surfaces.hosts import HostClient

pytestmark = pytest.mark.integration

CALLERS, RUNS_OF_EACH = 10, 25
HTTP_RUNS = 250
MAX_GROWTH_BYTES = 300 * MIB  # measured: 140
CODE = """
const got = await tools.whose({ n: input });
console.log(`log of ${input}`);
emit(`emitted by ${input}`);
return [input, got];
"""
ALONE = "console.log(`log of ${input}`); await new Promise((done) => setTimeout(done, 50)); return input"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    with served_sandbox_host(tmp_path) as found:
        yield found


@pytest.mark.timeout(300)
async def test_five_hundred_runs_at_once_lose_nothing_and_mix_nothing_in_bounded_memory(served: tuple[str, str]) -> None:
    url, token = served
    server = _listener(int(url.rpartition(":")[2]))
    callers = [await HostClient.open(url, token) for _ in range(CALLERS)]
    limits = httpx2.Limits(max_connections=HTTP_RUNS)
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=280, limits=limits) as http:
        http.headers["Authorization"] = f"Bearer {token}"
        assert (await _posted(http, 0))["value"] == 0
        before = _peak_bytes(server)
        hosted = [_hosted(caller, number) for number, caller in enumerate(callers)]
        found, posted = await asyncio.gather(
            asyncio.gather(*hosted), asyncio.gather(*(_posted(http, n) for n in range(HTTP_RUNS)))
        )
    grown = _peak_bytes(server) - before
    print(f"the server grew by {grown / MIB:.0f} MiB")
    for caller in callers:
        await caller.close()
    assert sum(found) == CALLERS * RUNS_OF_EACH
    for n, outcome in enumerate(posted):
        assert (outcome["value"], [log["text"] for log in outcome["logs"]]) == (n, [f"log of {n}"]), outcome
    assert grown < MAX_GROWTH_BYTES


async def _hosted(caller: HostClient, number: int) -> int:
    """Run programs on one socket, and return how many told it their own calls, output and results, and nothing else."""
    names = {f"{number}-{each}": number * 1000 + each for each in range(RUNS_OF_EACH)}
    for name, n in names.items():
        tools = {"whose": lambda args, name=name: [name, args["n"]]}
        await caller.start(name, CODE, tools, input=n, unnamed=n % 2 == 0)
    for name, n in names.items():
        outcome = await caller.end(name)
        assert outcome.get("value") == [n, [name, n]], outcome
        heard = [message for message in caller.of(name) if message["type"] in ("call", "log", "emit")]
        said = [message.get("args", message.get("text", message.get("value"))) for message in heard]
        assert said == [{"n": n}, f"log of {n}", f"emitted by {n}"]
    assert {message["run"] for message in caller.heard} == set(names)
    return len(names)


async def _posted(http: httpx2.AsyncClient, n: int) -> dict[str, Any]:
    body = json.dumps({"code": ALONE, "language": "javascript", "input": n})
    return (await http.post("/v1/runs", content=body, headers={"Content-Type": "application/json"})).json()


def _listener(port: int) -> int:
    """Return the id of the process that listens on a port of loopback."""
    own = {f"socket:[{inode}]" for inode in _inodes(port)}
    for entry in Path("/proc").glob("[0-9]*/fd"):
        try:
            if own & {os.readlink(link) for link in entry.iterdir()}:
                return int(entry.parent.name)
        except OSError:
            continue
    raise AssertionError(f"nobody listens on {port}")


def _inodes(port: int) -> list[str]:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]


def _peak_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
