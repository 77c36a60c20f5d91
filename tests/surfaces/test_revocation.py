"""A token that was removed ends what it had opened: a caller's socket with its runs, and streams of events (M8, M11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.http import revocation
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.hosts import HostClient

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.app]

[[rules]]
ask = "local.careful"
"""
JSON = {"Content-Type": "application/json"}


def careful() -> int:
    """Need a person."""
    return 1


class Served:
    """A server whose tokens can be removed."""

    def __init__(self, url: str, store: Path, token: str) -> None:
        self.url, self.store, self.token = url, store, token

    def client(self, token: str) -> httpx2.AsyncClient:
        """Return a client with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=30, headers=headers)

    def remove(self, role: Role) -> None:
        """Remove the token of the agent `app`."""
        with closing(TokenStore(self.store)) as tokens:
            tokens.remove("app", role)


@pytest.fixture(params=["host", "agent"])
def role(request: pytest.FixtureRequest) -> Role:
    return request.param


@pytest.fixture
async def served(role: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(revocation, "CHECK_SECONDS", 0.1)
    settings, store = tmp_path / "gloveport.toml", tmp_path / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(tools=[careful], config=settings, store=store, spare=0)
    with closing(TokenStore(store)) as tokens:
        token = tokens.add("app", role)
    listening = listen("127.0.0.1", 0, None)
    server = HttpServer(port, ServerNames(), TokenCheck(Secret(TOKEN, "token"), store, port.agent), Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield Served(url_of(listening), store, token)
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.mark.parametrize("role", ["host"], indirect=True)
async def test_the_socket_of_a_removed_token_closes_and_its_runs_end(served: Served) -> None:
    called = asyncio.Event()

    async def hang(args: Any) -> None:
        called.set()
        await asyncio.Event().wait()

    caller = await HostClient.open(served.url, served.token)
    await caller.start("cut-1", "await tools.pay({n: 1})", {"pay": hang})
    await called.wait()
    served.remove("host")
    await caller.closed()
    assert caller.close_code == revocation.REVOKED
    with closing(TokenStore(served.store)) as tokens:
        admin = tokens.add("root", "admin")
    async with served.client(admin) as client, asyncio.timeout(30):
        while (found := (await client.get("/v1/runs/cut-1")).json()).get("run", {}).get("status", "running") == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        events = (await client.get("/v1/audit?run=cut-1")).json()["events"]
    assert found["run"]["status"] == "cancelled"
    assert "outcome-unknown" in json.dumps([event["body"] for event in events if event["kind"] == "call-ended"])


async def test_the_events_of_a_run_end_with_the_token_that_asked_for_them(served: Served, role: Role) -> None:
    async with served.client(served.token) as client:
        body = json.dumps({"id": "waits-1", "code": "await tools.careful()"})
        assert (await client.post("/v1/runs", content=body, headers=JSON)).json()["status"] == "waiting"
        async with client.stream("GET", "/v1/runs/waits-1/events") as stream, asyncio.timeout(20):
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("event: ")
            served.remove(role)
            rest = [line async for line in lines]
    assert not any("cancelled" in line for line in rest)
    async with served.client(TOKEN) as other:
        assert (await other.get("/v1/runs")).status_code == 200
