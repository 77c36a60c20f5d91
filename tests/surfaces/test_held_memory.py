"""What a server holds for its callers is bounded in bytes, not only in number (R4, R5)."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from gloveport import GloveportError, OptionError, Outcome
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.host.port import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.sources.caller import MAX_KEPT_BYTES, CallerSources
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.tokens import TokenStore
from gloveport.surfaces import record_documents
from gloveport.surfaces.http import admission as bounds
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api import runs as runs_api
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.hosts import HostClient

JSON = {"Content-Type": "application/json"}
LARGE = "emit('x'.repeat(100_000)); return Array.from({length: 20_000}, (_, i) => i)"


class Served:
    """A server, a client of the role host, and the token of another."""

    def __init__(self, url: str, http: httpx2.AsyncClient, admission: Admission, another: str) -> None:
        self.url, self.http, self.admission, self.another = url, http, admission, another

    async def run(self, code: str, **more: Any) -> httpx2.Response:
        """Run a program."""
        return await self.http.post(
            "/v1/runs", content=json.dumps({"code": code, "language": "javascript"} | more), headers=JSON
        )


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    admission = Admission(2, 20)
    settings = tmp_path / "gloveport.toml"
    await asyncio.to_thread(settings.write_text, "[agents.another]\n")
    port = Gloveport(config=settings, store=tmp_path / "store.sqlite", spare=0)
    listening = listen("127.0.0.1", 0, None)
    with closing(TokenStore(tmp_path / "store.sqlite")) as tokens:
        another = tokens.add("another", "agent")
    check = TokenCheck(Secret(TOKEN, "token"), tmp_path / "store.sqlite", port.agent, own_role="host")
    server = HttpServer(port, ServerNames(), check, admission, 30)
    serving = asyncio.create_task(server.serve(listening))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with httpx2.AsyncClient(base_url=url_of(listening), trust_env=False, timeout=60, headers=headers) as http:
            yield Served(url_of(listening), http, admission, another)
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.mark.integration
async def test_large_outcomes_are_left_to_the_store_and_can_be_asked_for_again(served: Served) -> None:
    names = [f"large-{n}" for n in range(8)]
    for name in names:
        assert (await served.run(LARGE, id=name)).json()["status"] == "completed"
    gc.collect()
    assert sum(type(each) is Outcome for each in gc.get_objects()) <= 3
    again = (await served.run(LARGE, id=names[0])).json()
    shown = (await served.http.get(f"/v1/runs/{names[0]}")).json()["outcome"]
    for outcome in (again, shown):
        assert (outcome["status"], len(outcome["value"]), len(outcome["emitted"][0])) == ("completed", 20_000, 100_000)


@pytest.mark.integration
async def test_requests_and_runs_that_hold_too_much_together_are_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_HELD_BYTES", 500_000)
    large = "x" * 200_000
    assert (
        await served.run("await new Promise(() => setTimeout(() => 1, 60_000))", input=large, wait=False)
    ).status_code == 202
    refused = await served.run("return 1", input=large + large)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
    assert refused.json()["error"]["code"] == "busy"
    assert (await served.run("return 1")).json()["value"] == 1
    caller = await HostClient.open(served.url, TOKEN)
    assert (await caller.run("large-1", "return 1", input=large + large))["code"] == "busy"
    await caller.close()


@pytest.mark.integration
async def test_a_caller_that_fills_the_server_leaves_a_place_to_another(served: Served) -> None:
    endless = "await new Promise(() => setTimeout(() => 1, 60_000))"
    replies = [(await served.run(endless, wait=False)).status_code for _ in range(22)]
    assert replies == [202] * 21 + [429]
    headers = {"Authorization": f"Bearer {served.another}"}
    accepted = await served.http.post("/v1/runs", json={"code": "1", "wait": False}, headers=headers)
    assert accepted.status_code == 202


@pytest.mark.integration
async def test_a_burst_of_runs_on_one_socket_is_admitted_one_by_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling, most = 0, 0
    compile_tools = CallerSources.source

    async def counted(sources: CallerSources, caller: str, tools: Any) -> Any:
        nonlocal compiling, most
        compiling += 1
        most = max(most, compiling)
        try:
            return await compile_tools(sources, caller, tools)
        finally:
            compiling -= 1

    monkeypatch.setattr(CallerSources, "source", counted)
    caller = await HostClient.open(served.url, TOKEN)
    names = [f"burst-{n}" for n in range(100)]
    for name in names:
        await caller.start(name, "return 1", listed=[{"name": name.replace("-", "_")}], unnamed=True)
    ends = [await caller.end(name) for name in names]
    refused = [end for end in ends if end.get("code") == "busy"]
    assert [end.get("value") for end in ends if end not in refused] == [1] * (len(names) - len(refused))
    assert 0 < most <= served.admission.max_runs
    assert (await caller.run("later", "return 2"))["value"] == 2
    await caller.close()


async def test_the_tools_of_the_latest_callers_are_kept_within_a_number_of_bytes() -> None:
    sources = CallerSources(DefinitionTasks("kernel"))
    made = [
        await sources.source("far", [{"name": f"tool{n}", "description": "d" * (MAX_KEPT_BYTES // 4)}]) for n in range(6)
    ]
    assert await sources.source("far", [{"name": "tool5", "description": "d" * (MAX_KEPT_BYTES // 4)}]) is made[5]
    assert await sources.source("far", [{"name": "tool0", "description": "d" * (MAX_KEPT_BYTES // 4)}]) is not made[0]


@pytest.mark.integration
async def test_hostile_schemas_of_a_caller_are_read_where_they_keep_nobody_waiting() -> None:
    # In the thread for large values, which serves all runs, each of these took seconds.
    entangled = {"not": {"oneOf": [{"pattern": "("}, {"not": {"$ref": "#"}}]}}
    schema = {"type": "object", "properties": {f"p{n}": entangled for n in range(2000)}}
    plain = {"name": "pay", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$"}}}}
    tasks = DefinitionTasks("kernel")
    try:
        sources = CallerSources(tasks)
        hostile = sources.source("evil", [{"name": f"t{n}", "inputSchema": schema} for n in range(10)])
        refused, honest = await asyncio.gather(hostile, sources.source("far", [plain]), return_exceptions=True)
        assert isinstance(refused, OptionError), refused
        assert "takes too much CPU time" in refused.message
        assert not isinstance(honest, BaseException), honest
        [tool] = honest.tools()
        assert tool.input_schema["properties"] == plain["inputSchema"]["properties"]
        assert await sources.source("evil", [plain]) is honest
    finally:
        await tasks.close()


@pytest.mark.parametrize(
    "made", [[], [b"{}", b"{}"], [b"null"], [b"7"], [b"{"], [b"[" * 3000], [b'"' + b"x" * 300_000 + b'"']]
)
async def test_what_read_the_schemas_of_a_caller_may_be_hostile(made: list[bytes]) -> None:
    class TakenOver:
        async def run(self, *_: Any, **__: Any) -> list[bytes]:
            return made

    with pytest.raises(OptionError, match="schema"):
        await CallerSources(TakenOver()).source("far", [{"name": "pay", "inputSchema": {"type": "object"}}])


def test_held_bytes_are_given_back() -> None:
    admission = Admission()
    with pytest.raises(GloveportError, match="too large together"), admission.memory() as hold:
        hold(bounds.MAX_HELD_BYTES)
        hold(1)
    with admission.memory() as hold:
        hold(bounds.MAX_HELD_BYTES)


@pytest.mark.integration
async def test_a_run_that_is_slow_to_end_keeps_nobody_else_from_the_store(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_api, "CANCEL_SECONDS", 3.0)
    monkeypatch.setattr(record_documents, "CANCEL_SECONDS", 3.0)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(StoredRuns, "ask_to_cancel", lambda *_: loop.call_soon_threadsafe(asked.set))  # and nobody heeds it
    assert (
        await served.run("await new Promise(() => setTimeout(() => 1, 9_000))", id="slow-1", wait=False)
    ).status_code == 202
    cancelling = asyncio.create_task(served.http.post("/v1/runs/slow-1/cancel", headers=JSON))
    await asked.wait()
    began = time.monotonic()
    assert (await served.http.get("/v1/runs")).status_code == 200
    assert time.monotonic() - began < 2
    assert not cancelling.done()
    assert "has not ended it yet" in (await cancelling).json()["error"]["message"]


@pytest.mark.integration
@pytest.mark.parametrize("number", [2**63, -(2**63), 2**64 - 1])
async def test_a_cursor_beyond_what_the_store_holds_is_none(served: Served, number: int) -> None:
    cursor = base64.urlsafe_b64encode(orjson.dumps([number, "x"])).decode()
    reply = await served.http.get("/v1/runs", params={"cursor": cursor})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not-found")
