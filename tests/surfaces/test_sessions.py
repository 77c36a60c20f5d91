"""Sessions on every surface: the command line, HTTP and the tools of an agent. Each agent has its own (S16, M11)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.agents.tools import AgentTools
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.command import gloveport

pytestmark = pytest.mark.integration

COUNT = "import os\nopen('log', 'a').write('x')\nstate['n'] = state.get('n', 0) + 1\n[state['n'], os.path.getsize('log')]"


def test_the_command_line_keeps_files_between_its_runs(folder: Path) -> None:
    (folder.parent / "XDG_CONFIG_HOME" / "gloveport").mkdir(parents=True)
    (folder.parent / "XDG_CONFIG_HOME" / "gloveport" / "gloveport.toml").write_text("[agents.other]\n")
    (folder / "count.py").write_text(COUNT)
    for n in (1, 2):
        ran = gloveport("run", "count.py", "--session", "s", "--json")
        assert ran.document["value"] == [n, n], ran
    (folder / "data.bin").write_bytes(bytes(range(256)))
    assert gloveport("sessions", "put", "s", "data.bin", "in/data").code == 0
    assert gloveport("sessions", "put", "s", "-", "in/text", stdin="typed").code == 0
    files = gloveport("sessions", "files", "s", "--json").document["files"]
    assert files == [{"path": "in/data", "size": 256}, {"path": "in/text", "size": 5}, {"path": "log", "size": 2}]
    assert "256  in/data" in gloveport("sessions", "files", "s").out
    assert gloveport("sessions", "get", "s", "in/data", "copy.bin").code == 0
    assert (folder / "copy.bin").read_bytes() == bytes(range(256))
    again = gloveport("sessions", "get", "s", "in/data", "copy.bin")
    assert (again.code, "--force" in again.err) == (2, True)
    assert gloveport("sessions", "get", "s", "in/text").out == "typed"
    listed = gloveport("sessions", "list", "--json").document["sessions"]
    assert [(one["agent"], one["session"], one["files"], one["bytes"]) for one in listed] == [("default", "s", 3, 263)]
    assert gloveport("sessions", "list", "--agent", "other").out == ""
    theirs = gloveport("sessions", "files", "s", "--agent", "other", "--json")
    assert theirs.document.get("files") == [], theirs
    assert gloveport("sessions", "files", "s", "--agent", "nobody").code == 2
    assert gloveport("sessions", "remove", "s", "in").code == 0
    assert gloveport("sessions", "get", "s", "in/text").code != 0
    refused = gloveport("sessions", "remove", "s")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert gloveport("sessions", "remove", "s", "--yes").code == 0
    assert gloveport("sessions", "remove", "s", "--yes", "--json").document["error"]["code"] == "not-found"
    assert "there are no sessions" in gloveport("sessions", "list").err


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", ""])
def test_no_path_of_a_command_leaves_the_workspace(folder: Path, path: str) -> None:
    (folder / "x").write_text("x")
    assert gloveport("sessions", "put", "s", "x", path or "a\\b").code != 0
    assert gloveport("sessions", "get", "s", path or "a\\b").code != 0
    assert gloveport("sessions", "list", "--json").document["sessions"] == []


def test_a_link_is_not_written_through(folder: Path) -> None:
    (folder / "precious").write_text("keep")
    (folder / "link").symlink_to(folder / "precious")
    assert gloveport("sessions", "put", "s", "-", "a", stdin="bad").code == 0
    assert gloveport("sessions", "get", "s", "a", "link", "--force").code != 0
    assert (folder / "precious").read_text() == "keep"


# ── HTTP ──


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    folder = tmp_path_factory.mktemp("api")
    settings, store = folder / "gloveport.toml", folder / "store.sqlite"
    await asyncio.to_thread(settings.write_text, "[agents.other]\n[agents.mcp-one]\n[agents.mcp-two]\n")
    port = Gloveport(config=settings, store=store, spare=0)
    with closing(TokenStore(store)) as tokens:
        known = {"other": tokens.add("other", "agent"), "approver": tokens.add("oncall", "approver")}
        known |= {"admin": tokens.add("root", "admin"), "default": TOKEN}
    listening = listen("127.0.0.1", 0, None)
    server = HttpServer(port, ServerNames(), TokenCheck(Secret(TOKEN, "token"), store, port.agent), Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    headers = {name: {"Authorization": f"Bearer {token}"} for name, token in known.items()}
    clients = {
        name: httpx2.AsyncClient(base_url=url_of(listening), headers=each, timeout=60, trust_env=False)
        for name, each in headers.items()
    }
    try:
        yield clients
    finally:
        for client in clients.values():
            await client.aclose()
        server.stop()
        server.stop()
        await serving


async def run(client: httpx2.AsyncClient, code: str = COUNT, **more: Any) -> dict[str, Any]:
    return (await client.post("/v1/runs", json={"code": code, "language": "python", "session": "s", **more})).json()


async def test_a_session_over_http_belongs_to_its_agent(served: dict[str, httpx2.AsyncClient]) -> None:
    mine, other, admin = served["default"], served["other"], served["admin"]
    assert [(await run(mine))["value"] for _ in range(2)] == [[1, 1], [2, 2]]
    assert (await run(other))["value"] == [1, 1]
    content = base64.b64encode(b"\x00\xff").decode()
    put = await mine.post("/v1/sessions/s/file", params={"path": "in/data"}, json={"content": content})
    assert put.json() == {"ok": True, "path": "in/data", "size": 2}
    got = await mine.get("/v1/sessions/s/file", params={"path": "in/data"})
    assert got.json() == {"ok": True, "path": "in/data", "size": 2, "content": content}
    taken = await mine.post("/v1/sessions/s/file", params={"path": "in"}, json={"content": content})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "path-taken")
    assert (await other.get("/v1/sessions/s/file", params={"path": "in/data"})).status_code == 404
    assert (await other.get("/v1/sessions/s/files")).json()["files"] == [{"path": "log", "size": 1}]
    assert (await other.get("/v1/sessions", params={"agent": "default"})).status_code == 403
    assert [one["agent"] for one in (await other.get("/v1/sessions")).json()["sessions"]] == ["other"]
    seen = (await admin.get("/v1/sessions")).json()["sessions"]
    assert [(one["agent"], one["session"], one["files"]) for one in seen] == [("default", "s", 2), ("other", "s", 1)]
    assert (await admin.get("/v1/sessions/s/files", params={"agent": "other"})).json()["files"][0]["size"] == 1
    for method, path in (("GET", "/v1/sessions"), ("GET", "/v1/sessions/s/files"), ("DELETE", "/v1/sessions/s")):
        assert (await served["approver"].request(method, path)).status_code == 403
    assert (await mine.delete("/v1/sessions/s/file", params={"path": "in"})).status_code == 200
    assert (await mine.delete("/v1/sessions/s")).status_code == 200
    assert (await mine.delete("/v1/sessions/s")).status_code == 404
    gone = await mine.get("/v1/sessions/s/files")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not-found")
    assert (await other.get("/v1/sessions/s/files")).json()["files"] == [{"path": "log", "size": 1}]


async def test_a_request_about_a_session_that_is_wrong_is_named(served: dict[str, httpx2.AsyncClient]) -> None:
    client = served["default"]
    assert (await client.post("/v1/sessions/s/file", params={"path": "a"}, json={"content": "é"})).status_code == 400
    reply = await client.post("/v1/sessions/s/file", json={"content": ""})
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "the query parameter `path` is missing")
    document = (await client.get("/v1/openapi.json")).json()
    parameters = document["paths"]["/v1/sessions/{session}/file"]["get"]["parameters"]
    assert {one["name"] for one in parameters if one.get("required")} == {"session", "path"}
    left = await client.post("/v1/sessions/s/file", params={"path": "../a"}, json={"content": ""})
    assert left.status_code == 422, left.text
    assert (await client.get("/v1/sessions/..%2fx/files")).status_code in (400, 404)
    assert (await client.post("/v1/runs", json={"code": "1", "session": "a/b"})).status_code == 400
    assert (await client.post("/v1/runs", json={"code": "1", "session": "s", "onBusy": "mix"})).status_code == 400
    refused = await client.post("/v1/runs", json={"code": "1", "session": "s", "engine": "quickjs"})
    assert (refused.status_code, "keeps no files" in refused.json()["error"]["message"]) == (400, True)


async def test_a_busy_session_is_refused_over_http_where_the_caller_wants_that(tmp_path: Path) -> None:
    going, begun = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        await going.wait()

    async with Gloveport(tools=[wait], store=tmp_path / "store.sqlite", spare=0) as port:
        first = asyncio.create_task(AgentTools(port).call("execute", {"code": "await tools.wait(); 1", "session": "s"}))
        await begun.wait()
        refused = await port.run("1", session="s", on_busy="refuse")
        assert refused.error is not None
        assert refused.error.code == "session-busy"
        going.set()
        assert (await first).data["value"] == 1


# ── agents over MCP ──


async def test_the_session_of_an_agent_over_mcp_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "gloveport.toml").write_text("[agents.one]\n[agents.two]\n")
    async with Gloveport(config=tmp_path / "gloveport.toml", store=tmp_path / "store.sqlite", spare=0) as port:
        values: list[Any] = []
        for agent in ("one", "one", "two"):
            args = {"code": COUNT, "language": "python", "session": "s"}
            values.append((await AgentTools(port, agent=agent).call("execute", args)).data["value"])
        assert values == [[1, 1], [2, 2], [1, 1]]
        assert [one.path for one in await port.session("s", agent="one").files.list()] == ["log"]
        assert await port.session("s").files.list() == ()
