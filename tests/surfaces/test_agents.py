"""Named agents over HTTP: known by their token, each with its own tools, results and waiting runs (M11, M12)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store import database
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import Caller, TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.command import gloveport as command

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.reader]
tools = ["local.read"]
[agents.clerk]
tools = ["local.*"]
"""


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


def read() -> str:
    """Read a long text."""
    return "text " * 10_000


class Served:
    """A server, and the tokens of its agents."""

    def __init__(self, url: str, store: Path) -> None:
        self.url = url
        with closing(TokenStore(store)) as tokens:
            self.tokens = {name: tokens.add(name, "agent") for name in ("reader", "clerk", "stranger")} | {"default": TOKEN}

    @contextlib.asynccontextmanager
    async def client(self, agent: str) -> AsyncIterator[Client]:
        """Yield a client with the token of an agent."""
        headers = {"Authorization": f"Bearer {self.tokens[agent]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
            async with Client(streamable_http_client(f"{self.url}/mcp", http_client=http), mode="legacy") as opened:
                yield opened


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    settings, store = tmp_path / "gloveport.toml", tmp_path / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(tools=[pay, read], config=settings, store=store, spare=1)
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield Served(url_of(listening), store)
    finally:
        server.stop()
        server.stop()
        await serving


async def test_an_agent_sees_its_tools_and_nothing_tells_of_the_others(served: Served) -> None:
    async with served.client("reader") as reader, served.client("clerk") as clerk:
        description = str((await reader.list_tools()).tools[0].description)
        found = await reader.call_tool("search", {"query": ""})
        missing = await reader.call_tool("describe", {"paths": ["pay", "local.pay"]})
        failed = await reader.call_tool("execute", {"code": "await tools.pay({amount: 1})"})
        for answer in (description, found.structured_content, missing.structured_content):
            assert "Pay somebody" not in str(answer)
        assert found.structured_content is not None
        assert [row["path"] for row in found.structured_content["tools"]] == ["read"]
        assert failed.is_error
        seen = (await clerk.call_tool("search", {"query": ""})).structured_content
        assert seen is not None
        assert seen["total"] == 2


async def test_results_and_waiting_runs_belong_to_the_agent_that_made_them(served: Served) -> None:
    async with served.client("clerk") as clerk, served.client("reader") as reader, served.client("default") as default:
        long = (await clerk.call_tool("execute", {"code": "return await tools.read()"})).structured_content
        told = (await clerk.call_tool("execute", {"code": "return await tools.pay({amount: 1})"})).structured_content
        assert long is not None
        assert told is not None
        assert told["status"] == "waiting"
        for other in (reader, default):
            assert (await other.call_tool("resume", {"run": told["run"]})).is_error
            assert (await other.call_tool("execute", {"result_id": long["result_id"], "offset": 0})).is_error
        assert not (await clerk.call_tool("resume", {"run": told["run"]})).is_error


async def test_an_agent_whose_programs_wait_starts_no_end_of_them(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gloveport.surfaces.agents.tools.MAX_WAITING_RUNS", 2)
    async with served.client("clerk") as clerk, served.client("default") as default:
        codes = [f"return await tools.pay({{amount: {amount}}})" for amount in range(3)]
        answers = [await clerk.call_tool("execute", {"code": code}) for code in codes]
        assert [answer.is_error for answer in answers] == [False, False, True]
        assert "busy: 2 programs wait for a person already" in str(answers[2].content)
        assert not (await default.call_tool("execute", {"code": codes[2]})).is_error


async def test_a_session_belongs_to_the_agent_that_opened_it(served: Served) -> None:
    """Whoever posts into a session could answer what its client was asked, and whoever reads it gets its messages."""
    accepts = {"Accept": "application/json, text/event-stream"}

    async def send(agent: str, method: str, body: object = None, **headers: str) -> httpx2.Response:
        token = {"Authorization": f"Bearer {served.tokens[agent]}"}
        async with httpx2.AsyncClient(headers=accepts | token | headers, trust_env=False) as http:
            return await http.request(method, f"{served.url}/mcp", json=body)

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    opened = await send("clerk", "POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    answer = {"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"decision": "approve"}}}
    for agent in ("reader", "default"):
        assert (await send(agent, "POST", answer, **session)).status_code == 404
        assert (await send(agent, "GET", **session)).status_code == 404
        assert (await send(agent, "DELETE", **session)).status_code == 404
    assert (await send("clerk", "POST", answer, **session)).status_code == 202


@pytest.mark.parametrize(
    "path", ["/approvals", "/v1/approvals/../approvals", "/mcp/approvals", "/mcp/../approvals", "/mcp%2fapprovals"]
)
async def test_an_agent_has_no_way_to_answer_over_http(served: Served, path: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        for agent in ("x", *served.tokens.values()):
            for method in ("GET", "POST", "PUT"):
                headers = {"Authorization": f"Bearer {agent}"}
                answer = await http.request(method, f"{served.url}{path}", json={"approve": True}, headers=headers)
                # `/approvals` is the address of a page, too: the document that everybody gets.
                is_page = method == "GET" and _without_nonce(answer) == _without_nonce(await http.get(f"{served.url}/"))
                assert is_page or answer.status_code in (401, 403, 404, 405)


def _without_nonce(answer: httpx2.Response) -> str:
    found = re.search("'nonce-([^']+)'", answer.headers.get("content-security-policy", ""))
    return answer.text if found is None else answer.text.replace(found[1], "")


async def test_a_token_counts_only_for_a_configured_agent_and_until_it_is_removed(served: Served, tmp_path: Path) -> None:
    async def ping(token: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            return await http.post(f"{served.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})

    async def status(token: str) -> int:
        return (await ping(token)).status_code

    refused = await ping(served.tokens["stranger"])
    assert (refused.status_code, refused.json()["error"]["hint"]) == (401, "add [agents.stranger] to gloveport.toml")
    assert await status("gp_" + "x" * 43) == 401
    assert await status(served.tokens["reader"]) != 401
    with closing(TokenStore(tmp_path / "store.sqlite")) as tokens:
        tokens.remove("reader", "agent")
    async with asyncio.timeout(30):
        while await status(served.tokens["reader"]) != 401:  # noqa: ASYNC110 - it counts from the next second on
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Bearer  ", "Bearer \0", f"Basic {TOKEN}", f"Bearer{TOKEN}", TOKEN]
)
async def test_a_token_that_is_empty_or_sent_otherwise_is_nobodys(sent: str, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with closing(TokenStore(store)) as tokens:
        tokens.add("clerk", "agent")
        approver = tokens.add("ada", "approver")
    check = TokenCheck(Secret(TOKEN, "token"), store)
    assert await check.caller_of(f"Bearer {TOKEN}") == Caller("default", "agent")
    assert await check.caller_of(sent) is None
    assert await check.caller_of(f"Bearer {approver}") == Caller("ada", "approver")


async def test_a_token_that_this_server_has_made_or_removed_counts_at_once(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    check = TokenCheck(Secret(TOKEN, "token"), store)
    assert await check.caller_of(f"Bearer {TOKEN}") == Caller("default", "agent")  # from now on, it reads once a second
    with closing(TokenStore(store)) as tokens:
        made = tokens.add("clerk", "agent")
        check.look_again()
        assert await check.caller_of(f"Bearer {made}") == Caller("clerk", "agent")
        reading = asyncio.create_task(check.caller_of(f"Bearer {made}"))
        tokens.remove("clerk", "agent")
        check.look_again()
        assert await check.caller_of(f"Bearer {made}") is None
        await reading


async def test_a_locked_store_keeps_the_loop_turning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store.sqlite"
    with closing(TokenStore(store)) as tokens:
        tokens.add("clerk", "agent")
    monkeypatch.setattr(database, "LOCK_TIMEOUT_SECONDS", 0.5)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        asked = asyncio.create_task(TokenCheck(Secret(TOKEN, "token"), store).caller_of(f"Bearer {TOKEN}"))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.01)
            turns += 1
    assert await asked == Caller("default")
    assert turns > 5


def test_tokens_are_made_listed_and_removed(tmp_path: Path) -> None:
    home = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "CACHE")}
    made = command("agents", "add", "reviewer", "--json", cwd=tmp_path, **home)
    assert made.document["token"].startswith("gp_")
    assert command("agents", "add", "reviewer", cwd=tmp_path, **home).code == 2
    assert command("agents", "add", "default", cwd=tmp_path, **home).code == 2
    assert command("agents", "add", "a b", cwd=tmp_path, **home).code == 2
    listed = command("agents", "list", "--json", cwd=tmp_path, **home).document["agents"]
    assert [(row["name"], row["configured"]) for row in listed] == [("reviewer", False)]
    assert made.document["token"] not in command("agents", "list", cwd=tmp_path, **home).out
    assert command("agents", "remove", "reviewer", cwd=tmp_path, **home).code == 0
    recorded = command("audit", "show", "--json", cwd=tmp_path, **home).document["events"]
    acts = [(event["kind"], event["body"]["name"]) for event in recorded if event["kind"].startswith("token-")]
    assert acts == [("token-added", "reviewer"), ("token-removed", "reviewer")]
    assert command("agents", "remove", "reviewer", cwd=tmp_path, **home).code == 2
    refused = command("mcp", "--agent", "nobody", cwd=tmp_path, **home)
    assert "there is no agent 'nobody'" in refused.err
