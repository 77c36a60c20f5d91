"""The HTTP API at /v1: runs, tools, approvals and the record, each for the roles that may use it (B8, M10, M11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api.runs import shown_outcome
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import Caller, TokenCheck
from gloveport.types import Failure, Outcome
from tests.surfaces.agents import TOKEN, Lingering, url_of

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.reader]
tools = ["local.read"]
limits = {wall_seconds = 20}
"""
paid: list[int] = []


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    paid.append(amount)
    return f"paid {amount}"


def read(text: str = "") -> str:
    """Read a text."""
    return text or "a text"


class Served:
    """A server, and a client for each role."""

    def __init__(self, url: str, tokens: dict[str, str], lingering: Lingering) -> None:
        self.lingering = lingering
        self._clients = {
            name: httpx2.AsyncClient(
                base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
            )
            for name, token in tokens.items()
        }

    def __getattr__(self, name: str) -> httpx2.AsyncClient:
        return self._clients[name]

    async def close(self) -> None:
        """Close the clients."""
        for client in self._clients.values():
            await client.aclose()


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("api")
    settings, store = folder / "gloveport.toml", folder / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    lingering = Lingering()
    port = Gloveport(tools=[pay, read, lingering.linger], config=settings, store=store, spare=1)
    with closing(TokenStore(store)) as tokens:
        known = {"reader": tokens.add("reader", "agent"), "approver": tokens.add("oncall", "approver")}
        known |= {"admin": tokens.add("root", "admin"), "default": TOKEN}
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    served = Served(url_of(listening), known, lingering)
    try:
        yield served
    finally:
        await served.close()
        server.stop()
        server.stop()
        await serving


async def _run(client: httpx2.AsyncClient, code: str, **more: Any) -> tuple[int, dict[str, Any]]:
    reply = await client.post("/v1/runs", json={"code": code, **more})
    return reply.status_code, reply.json()


async def _until(client: httpx2.AsyncClient, run: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (found := (await client.get(f"/v1/runs/{run}")).json()).get("run", {}).get("status") != status:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.02)
    return found


async def test_a_program_runs_and_is_kept_with_its_calls(served: Served) -> None:
    status, outcome = await _run(served.default, "console.log('hi'); await tools.read({text: input})", input="é")
    assert (status, outcome["status"], outcome["value"]) == (200, "completed", "é")
    kept = (await served.default.get(f"/v1/runs/{outcome['run']}")).json()
    assert kept["outcome"]["logs"] == [{"level": "log", "text": "hi"}]
    assert [call["tool"] for call in kept["outcome"]["calls"]] == ["read"]
    assert kept["run"]["status"] == "completed"
    status, failed = await _run(served.default, "undefined.x", language="javascript")
    assert (status, failed["error"]["code"], failed["error"]["line"]) == (200, "program-failed", 1)
    assert "setting" not in failed["error"]


async def test_a_run_that_was_just_accepted_is_there_with_its_program(served: Served) -> None:
    for n in range(5):
        _, accepted = await _run(served.default, f"{n}", wait=False, input={"n": n}, id=f"begun-{n}")
        reply = await served.default.get(f"/v1/runs/{accepted['run']}")
        assert (reply.status_code, reply.json().get("code")) == (200, f"{n}"), reply.text
        assert (await served.reader.get(f"/v1/runs/{accepted['run']}")).status_code == 404
    kept = await _until(served.default, "begun-4", "completed")
    assert kept["input"] == {"n": 4}
    _, without = await _run(served.default, "1")
    assert "input" not in (await served.default.get(f"/v1/runs/{without['run']}")).json()


async def test_a_run_that_goes_on_has_an_outcome_that_waits_for_nobody(served: Served) -> None:
    code = "await new Promise((done) => setTimeout(done, 60000))"
    run = (await served.default.post("/v1/runs", json={"code": code, "wait": False})).json()["run"]
    found = (await served.default.get(f"/v1/runs/{run}")).json()
    assert (found["run"]["status"], found["outcome"]["status"], found["outcome"]["waiting"]) == ("running", "running", [])
    assert (await served.default.post(f"/v1/runs/{run}/cancel", json={})).json()["status"] == "cancelled"


async def test_the_same_id_starts_a_program_once(served: Served) -> None:
    both = await asyncio.gather(*(_run(served.default, "Math.random()", id="once-1") for _ in range(2)))
    again = await _run(served.default, "Math.random()", id="once-1")
    values = {outcome["value"] for status, outcome in (*both, again)}
    assert len(values) == 1, (both, again)
    status, other = await _run(served.default, "1 + 1", id="once-1")
    assert (status, other["error"]["code"]) == (409, "run-id-taken")
    status, foreign = await _run(served.reader, "Math.random()", id="once-1")
    assert (status, foreign["error"]["code"]) == (409, "run-id-taken")


async def test_the_same_id_is_refused_for_another_request(served: Served) -> None:
    asked: dict[str, Any] = {"code": "input.n + 1", "input": {"n": 1, "m": 2}, "limits": {"max_calls": 5}}
    status, first = await _run(served.default, **asked, id="asked-1")
    assert (status, first["value"]) == (200, 2)
    same = {"input": {"m": 2, "n": 1}, "language": "typescript", "mode": "run", "wait": False}
    assert (await _run(served.default, **{**asked, **same}, id="asked-1"))[1]["value"] == 2
    others: list[dict[str, Any]] = [{"input": {"n": 2, "m": 2}}, {"limits": {}}, {"env": {"A": "1"}}, {"session": "s"}]
    for other in (*others, {"language": "javascript"}, {"mode": "plan"}):
        status, refused = await _run(served.default, **{**asked, **other}, id="asked-1")
        assert (status, refused["error"]["code"]) == (409, "run-id-taken"), other


async def test_the_store_knows_what_was_asked_for(served: Served) -> None:
    code = "emit('x'.repeat(200_000)); input"  # its outcome is left to the store
    assert (await _run(served.default, code, input=1, id="asked-2"))[0] == 200
    assert (await _run(served.default, code, input=1, id="asked-2"))[1]["value"] == 1
    status, refused = await _run(served.default, code, input=2, id="asked-2")
    assert (status, refused["error"]["code"]) == (409, "run-id-taken")


async def test_a_run_is_followed_from_any_event_on_and_cancelled(served: Served) -> None:
    code = "console.log('one'); await tools.read({text: 'x'}); emit({a: 1}); await tools.linger()"
    status, begun = await _run(served.default, code, wait=False)
    assert (status, begun["status"]) == (202, "running")
    await served.lingering.started.wait()
    events: list[tuple[str, str, dict[str, Any]]] = []
    async with asyncio.timeout(60):
        async for event in _events(served.default, begun["run"], ""):
            events.append(event)
            if event[0] == "emit":
                break
    assert [kind for kind, _, _ in events] == ["log", "call", "call-ended", "emit"]
    assert events[1][2]["args"] == [{"text": "x"}]
    assert events[2][2]["value"] == "x"
    reply = await served.default.post(f"/v1/runs/{begun['run']}/cancel", json={})
    assert reply.json()["status"] == "cancelled", reply.text
    rest = [event async for event in _events(served.default, begun["run"], events[2][1])]
    assert [kind for kind, _, _ in rest] == ["emit", "call", "status"]
    assert rest[-1][2]["status"] == "cancelled"
    reply = await served.default.post(f"/v1/runs/{begun['run']}/cancel", json={})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "run-ended")


async def _events(client: httpx2.AsyncClient, run: str, last: str) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    async with client.stream("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": last}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        async for line in reply.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif event:
                yield event["event"], event["id"], json.loads(event["data"])
                event = {}


async def test_a_person_answers_over_http_and_no_agent_can(served: Served) -> None:
    paid.clear()
    status, outcome = await _run(served.default, "await tools.pay({amount: 7})")
    assert (status, outcome["status"], len(outcome["waiting"])) == (202, "waiting", 1)
    listed = (await served.approver.get("/v1/approvals")).json()["approvals"]
    (request,) = [one for one in listed if one["run"] == outcome["run"]]
    assert (request["tool"], request["args"]) == ("local.pay", {"amount": 7})
    early = await served.admin.post(f"/v1/runs/{outcome['run']}/rollback", json={})
    assert (early.status_code, early.json()["error"]["code"]) == (409, "run-unfinished")
    unplanned = await served.admin.post(f"/v1/runs/{outcome['run']}/apply", json={})
    assert (unplanned.status_code, unplanned.json()["error"]["code"]) == (404, "not-found")
    answer = {"approve": True, "requests": {request["id"]: request["digest"]}}
    for agent in (served.default, served.reader):
        for reply in (await agent.get("/v1/approvals"), await agent.post("/v1/approvals/answer", json=answer)):
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden")
    wrong = {"approve": True, "requests": {request["id"]: "0" * 64}}
    assert (await served.approver.post("/v1/approvals/answer", json=wrong)).status_code == 409
    assert paid == []
    assert (await served.approver.post("/v1/approvals/answer", json=answer)).status_code == 200
    assert (await served.approver.post("/v1/approvals/answer", json=answer)).status_code == 409, "an answer counts once"
    ended = await _until(served.default, outcome["run"], "completed")
    assert ended["outcome"]["value"] == "paid 7"
    assert paid == [7]


async def test_a_list_of_what_waits_is_sent_again_only_when_it_has_changed(served: Served) -> None:
    listed = await served.approver.get("/v1/approvals")
    known = {"If-None-Match": listed.headers["ETag"]}
    same = await served.approver.get("/v1/approvals", headers=known)
    assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", listed.headers["ETag"])
    for agent in (served.default, served.reader):
        assert (await agent.get("/v1/approvals", headers=known)).status_code == 403
    _, outcome = await _run(served.default, "await tools.pay({amount: 7})")
    (id,) = outcome["waiting"]
    other = await served.approver.get("/v1/approvals", headers=known)
    assert (other.status_code, [one["id"] for one in other.json()["approvals"]]) == (200, [id])
    answer = {"approve": False, "requests": {id: other.json()["approvals"][0]["digest"]}}
    assert (await served.approver.post("/v1/approvals/answer", json=answer)).status_code == 200


async def test_an_agent_is_told_the_command_that_signs_in_and_no_other_setting() -> None:
    setting = "run `gloveport auth login shop` or set GLOVEPORT_SHOP_TOKEN"
    error = Failure("auth-required", "ToolError", "not signed in", hint="Ask.", setting=setting, origin="gloveport")
    shown = (await shown_outcome(Outcome("run", "failed", error=error), Caller("default", "agent")))["error"]
    assert shown["hint"] == "Ask the user to run `gloveport auth login shop`."
    assert "GLOVEPORT_SHOP_TOKEN" not in str(shown)
    outcome = Outcome("run", "failed", error=replace(error, origin="tool"))
    lied = (await shown_outcome(outcome, Caller("default", "agent")))["error"]
    assert lied["hint"] == "Ask.", "no tool names a command for the user"


async def test_an_agent_sees_its_own_runs_and_tools_only(served: Served) -> None:
    _, outcome = await _run(served.default, "'secret of default'")
    for path in ("", "/events"):
        assert (await served.reader.get(f"/v1/runs/{outcome['run']}{path}")).status_code == 404
    for act in ("cancel", "resume"):
        assert (await served.reader.post(f"/v1/runs/{outcome['run']}/{act}", json={})).status_code == 404
    listed = (await served.reader.get("/v1/runs", params={"agent": "default"})).json()["runs"]
    assert {run["agent"] for run in listed} <= {"reader"}
    assert [row["path"] for row in (await served.reader.get("/v1/tools")).json()["tools"]] == ["read"]
    assert (await served.reader.get("/v1/tools/local.pay")).status_code == 404
    found = (await served.reader.post("/v1/search", json={"query": "pay", "limit": 5.0})).json()
    assert "pay" not in json.dumps(found["tools"])
    assert (await served.admin.get(f"/v1/runs/{outcome['run']}")).json()["outcome"]["value"] == "secret of default"
    for path in ("/v1/agents", "/v1/audit"):
        assert (await served.reader.get(path)).status_code == 403
    for role, code in (("approver", 403), ("admin", 403)):
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await getattr(served, role).post("/mcp", json=mcp)).status_code == code


async def test_runs_are_found_by_what_lists_show_of_them(served: Served) -> None:
    code = "import x from 'y'\n\n/* Pays what is due */\nawait tools.nothing()"
    _, failed = await _run(served.default, code, id="Found-1")
    await _run(served.reader, "1", id="found-2")

    async def found(client: Any, search: str) -> list[str]:
        reply = await client.get("/v1/runs", params={"search": search})
        return [run["run"] for run in reply.json()["runs"]]

    assert await found(served.admin, "found-") == ["found-2", "Found-1"]
    assert await found(served.admin, "ound-") == []
    assert await found(served.admin, "READER") != []
    assert "Found-1" in await found(served.admin, failed["error"]["code"][1:])
    assert await found(served.reader, "found-") == ["found-2"]  # what belongs to others is not there (M11)
    [run] = (await served.admin.get("/v1/runs", params={"search": "Found-1"})).json()["runs"]
    assert run["title"] == "Pays what is due"
    assert (await served.admin.get("/v1/runs/Found-1")).json()["run"] == run


async def test_pages_of_runs_follow_each_other_and_miss_none(served: Served) -> None:
    made = [(await _run(served.reader, "1", id=f"page-{n}"))[1]["run"] for n in range(5)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await served.reader.get("/v1/runs", params={"limit": "2", **cursor})).json()
        seen += [run["run"] for run in page["runs"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert [run for run in seen if run.startswith("page-")] == made[::-1]
    assert len(set(seen)) == len(seen)
    assert (await served.reader.get("/v1/runs", params={"cursor": "x"})).status_code == 404


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"timeoutMs": "90s"}, "timeoutMs"),
        ({"timeoutMs": -1}, "timeoutMs"),
        ({"timeoutMs": 0}, "timeoutMs"),
        ({"timeoutMs": 10**9}, "wall_seconds"),
        ({"limits": {"memory_mb": 10**6}}, "memory_mb"),
        ({"limits": {"memory": 1}}, "memory"),
        ({"unknown": 1}, "unknown"),
        ({"code": 5}, "code"),
        ({"agent": "reader"}, "agent"),
        ({"id": "../x"}, "id"),
        ({"packages": ["zod"]}, "does not say where the package comes from"),
        ({"packages": ["npm:../x"]}, "is not the name of a package"),
        ({"engine": "nope"}, "engine"),
    ],
)
async def test_a_wrong_request_is_refused_and_says_what_is_wrong(served: Served, body: dict[str, Any], text: str) -> None:
    reply = await served.default.post("/v1/runs", json={"code": "1", **body})
    assert reply.status_code in (400, 403), reply.text
    assert text in reply.json()["error"]["message"]


async def test_an_unknown_number_is_no_timeout(served: Served) -> None:
    headers = {"Content-Type": "application/json"}
    reply = await served.default.post("/v1/runs", content=b'{"code": "1", "timeoutMs": NaN}', headers=headers)
    assert reply.status_code == 400


async def test_the_given_timeout_is_the_one_that_counts(served: Served) -> None:
    status, outcome = await _run(served.reader, "await new Promise(() => setTimeout(() => {}, 1e6))", timeoutMs=300)
    assert (status, outcome["error"]["code"]) == (200, "time-limit")


async def test_admins_make_tokens_and_see_the_record(served: Served) -> None:
    made = await served.admin.post("/v1/agents", json={"name": "new", "role": "approver"})
    assert made.status_code == 201
    assert made.json()["token"].startswith("gp_")
    assert ("new", "approver") in {
        (one["name"], one["role"]) for one in (await served.admin.get("/v1/agents")).json()["agents"]
    }
    assert (await served.admin.delete("/v1/agents/approver/new")).status_code == 200
    assert (await served.admin.delete("/v1/agents/approver/new")).status_code == 404
    page = (await served.admin.get("/v1/audit", params={"limit": "20"})).json()  # other runs may have ended just now
    before = (await served.admin.get("/v1/audit", params={"limit": "3", "cursor": page["next"]})).json()
    assert "token-removed" in [event["kind"] for event in page["events"]]
    assert not {event["hash"] for event in page["events"]} & {event["hash"] for event in before["events"]}
    assert (await served.admin.get("/v1/audit/verification")).json()["intact"] is True


async def test_agents_are_listed_with_what_they_see_also_those_without_a_token(served: Served) -> None:
    await served.admin.post("/v1/agents", json={"name": "stranger"})
    found = {
        (one["name"], one["role"]): (one["created"] is not None, one["configured"], one["tools"], one["limits"])
        for one in (await served.admin.get("/v1/agents")).json()["agents"]
    }
    assert found["default", "agent"] == (False, True, ["*"], {})
    assert found["reader", "agent"] == (True, True, ["local.read"], {"wall_seconds": 20})
    assert found["stranger", "agent"] == (True, False, [], {})
    assert found["root", "admin"] == (True, False, [], {})
    await served.admin.delete("/v1/agents/agent/stranger")


async def test_the_record_is_filtered_by_kind_and_names_the_tool_of_each_call(served: Served) -> None:
    _, outcome = await _run(served.default, "await tools.read()")
    about = {"run": outcome["run"]}
    events = (await served.approver.get("/v1/audit", params={**about, "kind": "call-*"})).json()["events"]
    assert [(one["kind"], one["tool"]) for one in events] == [("call-started", "local.read"), ("call-ended", "local.read")]
    events = (await served.approver.get("/v1/audit", params={**about, "kind": "run-ended"})).json()["events"]
    assert [(one["kind"], one["tool"]) for one in events] == [("run-ended", None)]


async def test_what_is_not_there_is_said_in_one_shape(served: Served) -> None:
    for method, path, status, code in (
        ("GET", "/v1/nothing", 404, "not-found"),
        ("GET", "/v1/runs/none", 404, "not-found"),
        ("PUT", "/v1/runs", 405, "wrong-method"),
        ("GET", "/v1/runs?limit=0", 400, "bad-request"),
        ("GET", "/v1/runs?limits=1", 400, "bad-request"),
    ):
        reply = await served.default.request(method, path)
        document = reply.json()
        assert (reply.status_code, document["ok"], document["error"]["code"]) == (status, False, code), path
    assert (await served.default.get("/v1/runs", headers={"Authorization": "Bearer x"})).status_code == 401
    for path, body in (
        ("/v1/runs", {"code": "1", "engine": "remote-quickjs"}),
        ("/v1/changes/accept", {"source": "none", "digest": ""}),
        ("/v1/sources/none/remove", {}),
        ("/v1/sources", {"what": "x", "kind": "none"}),
    ):
        reply = await served.admin.post(path, json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not-found"), reply.text


async def test_the_document_of_the_api_names_every_endpoint_and_its_answers_fit(served: Served) -> None:
    import jsonschema_rs

    document = (await served.default.get("/v1/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    for path in ("/v1/runs", "/v1/tools", "/v1/sources", "/v1/engines", "/v1/snippets", "/v1/openapi.json"):
        reply = await served.admin.get(path)
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**schema, "components": document["components"]}, reply.json())
    posted = {path: operations["post"] for path, operations in document["paths"].items() if "post" in operations}
    optional = [path for path, one in posted.items() if "requestBody" in one and not one["requestBody"]["required"]]
    assert {"/v1/sign-in", "/v1/sign-out", "/v1/runs/{run}/replay"} <= set(optional)
    assert "/v1/runs" not in optional
    (part,) = [one for one in document["paths"]["/v1/sessions/{session}"]["delete"]["parameters"] if one["in"] == "path"]
    assert not jsonschema_rs.is_valid(part["schema"], "no name")
    assert (await served.default.post("/v1/sign-out")).status_code == 200


async def test_an_admin_saves_a_run_as_a_snippet_that_programs_call(served: Served) -> None:
    _, ran = await _run(served.default, "(await tools.read({text: input.text})).toUpperCase()", input={"text": "ab"})
    body = {"run": ran["run"], "name": "shout", "description": "Read it loudly."}
    for client in (served.default, served.reader, served.approver):
        assert (await client.post("/v1/snippets", json=body)).status_code == 403
    saved = await served.admin.post("/v1/snippets", json=body)
    assert (saved.status_code, saved.json()["snippet"]["name"]) == (201, "shout")
    _, called = await _run(served.default, "await tools.snippets.shout({text: 'cd'})")
    assert called["value"] == "CD", called
    again = await served.admin.post("/v1/snippets", json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "snippet-exists")
    gone = await served.admin.post("/v1/snippets", json={**body, "run": ran["run"][:8]})
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not-found")
    _, failed = await _run(served.default, "throw new Error('no')")
    _, listed = await _run(served.default, "input[0]", input=["no object"])
    for unfit in (failed, listed):
        refused = await served.admin.post("/v1/snippets", json={"run": unfit["run"], "name": "other"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not-savable")
    assert (await served.admin.delete("/v1/snippets/shout")).status_code == 200
