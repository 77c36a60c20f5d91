"""Metrics at /metrics: what they count, who may read them, and that no program makes series."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import closing

import httpx2
import pytest

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.metrics import BUCKET_SECONDS, Counter, Histogram, exposition
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? ([0-9.e+-]+)')


@tool(writes=True)
def pay(amount: int) -> int:
    """Pay somebody."""
    return amount


def half(n: int) -> float:
    """Return the half of an even number."""
    if n % 2:
        raise ValueError("odd")
    return n / 2


@pytest.fixture(scope="module")
async def clients(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    store = tmp_path_factory.mktemp("metrics") / "store.sqlite"
    port = Gloveport(tools=[pay, half], store=store, spare=1)
    with closing(TokenStore(store)) as tokens:
        known = {"monitor": tokens.add("prometheus", "monitor"), "approver": tokens.add("oncall", "approver")}
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    made = {
        role: httpx2.AsyncClient(base_url=url_of(listening), headers=headers, timeout=60, trust_env=False)
        for role, headers in {
            **{role: {"Authorization": f"Bearer {token}"} for role, token in (known | {"agent": TOKEN}).items()},
            "nobody": {},
        }.items()
    }
    try:
        yield made
    finally:
        for client in made.values():
            await client.aclose()
        server.stop()
        server.stop()
        await serving


async def samples(client: httpx2.AsyncClient) -> dict[str, float]:
    """Return the samples by name and labels, after checking every line against the format."""
    reply = await client.get("/metrics")
    assert (reply.status_code, reply.headers["content-type"].partition(" charset")[0]) == (
        200,
        "text/plain; version=0.0.4;",
    )
    found: dict[str, float] = {}
    for line in reply.text.splitlines():
        if not line.startswith(("# HELP ", "# TYPE ")):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
    return found


@pytest.mark.integration
async def test_runs_calls_durations_and_what_waits_are_counted(clients: dict[str, httpx2.AsyncClient]) -> None:
    async def run(code: str, **more: str) -> str:
        return (await clients["agent"].post("/v1/runs", json={"code": code, **more})).json()["status"]

    assert await run("await tools.half({n: 2}); await tools.half({n: 3}).catch(() => 0)") == "completed"
    assert await run("1 +", language="python") == "failed"
    assert await run("await tools.pay({amount: 1})") == "waiting"
    found = await samples(clients["monitor"])
    assert found['gloveport_runs_total{status="completed",engine="deno",language="typescript"}'] == 1
    assert found['gloveport_runs_total{status="failed",engine="cpython",language="python"}'] == 1
    assert found['gloveport_run_errors_total{code="syntax-error"}'] == 1
    assert found['gloveport_calls_total{source="local",status="ok"}'] == 1
    assert found['gloveport_calls_total{source="local",status="failed"}'] == 1
    assert found['gloveport_call_duration_seconds_count{source="local"}'] == 2
    assert found['gloveport_run_duration_seconds_bucket{engine="deno",le="+Inf"}'] == 1
    assert 0 < found['gloveport_run_duration_seconds_sum{engine="deno"}'] < 60
    assert found['gloveport_run_cpu_seconds_total{engine="deno"}'] > 0
    assert (found["gloveport_approvals_waiting"], found["gloveport_sources_broken"]) == (1, 0)
    assert 'gloveport_sandboxes{engine="deno",state="ready"}' in found
    assert 0 <= found["gloveport_event_loop_lag_seconds"] < 10
    assert any(name.startswith("gloveport_build_info{version=") for name in found)


@pytest.mark.integration
async def test_a_hostile_program_makes_no_series(clients: dict[str, httpx2.AsyncClient]) -> None:
    async def series() -> set[str]:
        return {name for name in await samples(clients["monitor"]) if "_bucket" not in name}

    async def attack(number: int) -> None:
        code = (
            f"for (const name of ['n{number}', 'x.y{number}', 'local.z{number}', 'caller.q{number}'])"
            f" {{ try {{ await tools[name]({{}}) }} catch {{ }} }}"
            f" const e = new Error('m{number}'); e.code = 'code-{number}'; e.name = 'N{number}'; throw e"
        )
        await clients["agent"].post("/v1/runs", json={"code": code})

    await attack(0)
    before = await series()
    for number in range(1, 4):
        await attack(number)
    assert await series() == before
    assert not [name for name in before if re.search(r"[a-z]0\b|code-0", name)]


@pytest.mark.integration
async def test_metrics_take_the_token_of_a_monitor_and_that_token_opens_nothing_else(
    clients: dict[str, httpx2.AsyncClient],
) -> None:
    found = {role: (await client.get("/metrics")).status_code for role, client in clients.items()}
    assert found == {"monitor": 200, "approver": 200, "agent": 403, "nobody": 401}
    for path in ("/v1/runs", "/v1/tools", "/v1/engines", "/v1/agents", "/v1/openapi.json", "/v1/approvals"):
        assert (await clients["monitor"].get(path)).status_code == 403, path
    assert (await clients["monitor"].post("/v1/runs", json={"code": "1"})).status_code == 403
    assert (await clients["monitor"].post("/mcp", json={})).status_code == 403
    assert (await clients["monitor"].post("/metrics", json={})).status_code == 405


def test_a_duration_is_in_its_bucket_and_all_larger_ones_and_labels_are_escaped() -> None:
    seconds, odd = Histogram("t", "T.", "a"), Counter("c", "C.", "a")
    for each in (0.005, 0.02, 1000):
        seconds.observe(each, "x")
    odd.add(2, 'a"b\\c\nd')
    text = exposition([seconds, odd])
    counts = [int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("t_bucket")]
    assert counts == [1, 1, *[2] * (len(BUCKET_SECONDS) - 2), 3]
    assert 't_count{a="x"} 3' in text
    assert 'c{a="a\\"b\\\\c\\nd"} 2' in text
