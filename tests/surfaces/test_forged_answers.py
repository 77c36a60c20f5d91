"""Ways to forge, replay, redirect or outlive an approval through a server: each is refused, and nothing is paid (B7, B8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.sources.mcp.support import eventually
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.hosts import HostClient

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.clerk]
[agents.other]
[agents.app]
[agents.app2]

[[rules]]
ask = "caller.*"

[[rules]]
deny = "local.pay"
when = "args.amount > 1000"
"""
ROLES: dict[str, Role] = {
    "clerk": "agent",
    "other": "agent",
    "app": "host",
    "app2": "host",
    "oncall": "approver",
    "leaver": "approver",
}
paid: list[int] = []


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    paid.append(amount)
    return f"paid {amount}"


class Served:
    """A server, with a token for each role."""

    def __init__(self, url: str, tokens: dict[str, str], store: Any) -> None:
        self.url, self.tokens, self.store = url, tokens, store

    async def send(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """Return the reply to a request of the holder of a token."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as client:
            sent = {"Authorization": f"Bearer {self.tokens[who]}", **headers}
            return await client.request(method, path, json=body, headers=sent)

    async def start(self, who: str, code: str, **more: Any) -> dict[str, Any]:
        """Return the outcome of a program."""
        return (await self.send(who, "POST", "/v1/runs", {"code": code, **more})).json()

    async def requests(self, run: str) -> dict[str, str]:
        """Return the digests of the calls of a run that wait, by the ids of their requests."""
        listed = (await self.send("oncall", "GET", "/v1/approvals")).json()["approvals"]
        return {one["id"]: one["digest"] for one in listed if one["run"] == run}

    async def answer(self, who: str, requests: dict[str, str], **more: Any) -> int:
        """Return the status of the reply to an approval."""
        body = {"approve": True, "requests": requests, **more}
        return (await self.send(who, "POST", "/v1/approvals/answer", body)).status_code

    async def end(self, who: str, run: str) -> dict[str, Any]:
        """Return the outcome of a run that has gone on until it ended."""

        async def ended() -> dict[str, Any] | None:
            found = (await self.send(who, "GET", f"/v1/runs/{run}")).json()
            return found["outcome"] if found["run"]["status"] in ("completed", "failed", "cancelled") else None

        return await until(ended)


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the server shows, once it does."""
    async with asyncio.timeout(60):
        while not (found := await look()):  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.02)
    return found


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("forged")
    settings, store = folder / "gloveport.toml", folder / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(tools=[pay], config=settings, store=store, spare=1)
    with closing(TokenStore(store)) as tokens:
        known = {name: tokens.add(name, role) for name, role in ROLES.items()} | {"default": TOKEN}
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield Served(url_of(listening), known, store)
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    paid.clear()


@pytest.mark.parametrize("who", ["default", "clerk", "app"])
async def test_no_token_of_an_agent_or_a_host_answers_lists_or_revokes_by_any_spelling(served: Served, who: str) -> None:
    waiting = await served.start(who, "await tools.pay({amount: 1})")
    requests = await served.requests(waiting["run"])
    assert len(requests) == 1
    (id,) = requests
    body = {"approve": True, "requests": requests}
    for path in ("", f"/{id}", "/standing"):
        assert (await served.send(who, "GET", f"/v1/approvals{path}")).status_code == 403
    assert (await served.send(who, "DELETE", f"/v1/approvals/standing/{id}")).status_code == 403
    for path in (
        "/v1/approvals/answer",
        "/v1/approvals/answer/",
        "//v1/approvals/answer",
        "/v1//approvals/answer",
        "/v1/runs/../approvals/answer",
        "/v1/runs/%2e%2e/approvals/answer",
        "/v1/%61pprovals/answer",
        "/V1/approvals/answer",
        "/v1/approvals/answer;x",
        f"/v1/approvals/answer?token={served.tokens['oncall']}",
    ):
        assert (await served.send(who, "POST", path, body)).status_code in (307, 403, 404, 405), path
    for name, value in (
        ("X-HTTP-Method-Override", "POST"),
        ("X-Original-URL", "/v1/approvals/answer"),
        ("X-Forwarded-User", "oncall"),
    ):
        assert (await served.send(who, "POST", "/v1/approvals/answer", body, **{name: value})).status_code == 403
    assert await served.requests(waiting["run"]) == requests
    assert paid == []


async def test_a_program_that_has_the_token_of_an_approver_reaches_no_server_with_it(served: Served) -> None:
    answer = f"{{approve: true, requests: {{}}}}, {{authorization: 'Bearer {served.tokens['oncall']}'}}"
    code = f"""
    const [body, headers] = [{answer}];
    await fetch("{served.url}/v1/approvals/answer", {{method: "POST", headers, body: JSON.stringify(body)}}).catch((e) => e.code)
    """
    assert (await served.start("clerk", code))["value"] == "denied"


async def test_a_run_that_waits_is_nothing_to_another_agent(served: Served) -> None:
    waiting = await served.start("clerk", "await tools.pay({amount: 2})", id="clerks-run")
    assert waiting["status"] == "waiting"
    for who in ("other", "app", "default"):
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/resume"), ("POST", "/cancel")):
            reply = await served.send(who, method, f"/v1/runs/clerks-run{path}", {} if method == "POST" else None)
            assert reply.status_code == 404, (who, path, reply.text)
        # Neither the same program nor another one gets into the run by its id.
        for code in ("await tools.pay({amount: 2})", "await tools.pay({amount: 3})"):
            refused = await served.start(who, code, id="clerks-run")
            assert refused["error"]["code"] == "run-id-taken", refused
    requests = await served.requests("clerks-run")
    assert await served.answer("oncall", requests) == 200
    assert (await served.end("clerk", "clerks-run"))["value"] == "paid 2"
    assert paid == [2]


async def test_an_answer_to_a_group_covers_no_call_that_joins_later_and_no_exchanged_digest(served: Served) -> None:
    code = "await Promise.all([tools.pay({amount: 4}), tools.pay({amount: 5}).then(() => tools.pay({amount: 6}))])"
    run = (await served.start("clerk", code))["run"]
    shown = await served.requests(run)
    assert len(shown) == 2
    (one, first), (two, second) = shown.items()
    assert await served.answer("oncall", {one: second, two: first}) == 409
    assert await served.answer("oncall", {**shown, "0" * 32: first}) == 404
    assert await served.answer("oncall", shown, scope="run") == 409
    assert await served.answer("oncall", shown, args={"amount": 7}) == 409
    assert paid == []
    assert await served.answer("oncall", shown) == 200
    await eventually(lambda: sorted(paid) == [4, 5])
    later = await until(lambda: served.requests(run))
    assert not later.keys() & shown.keys()
    assert await served.answer("oncall", shown) == 409
    assert sorted(paid) == [4, 5]
    await served.send("clerk", "POST", f"/v1/runs/{run}/cancel", {})
    assert await served.answer("oncall", later) == 409, "the run is over"
    assert sorted(paid) == [4, 5]


@pytest.mark.parametrize("args", [{"amount": "8"}, {"amount": 8, "to": "x"}, {}, {"amount": None}])
async def test_edited_arguments_that_the_tool_does_not_take_are_not_sent(served: Served, args: dict[str, Any]) -> None:
    run = (await served.start("clerk", "await tools.pay({amount: 8})"))["run"]
    requests = await served.requests(run)
    assert await served.answer("oncall", requests, args=args) == 200
    (id,) = requests

    async def problem() -> str | None:
        return (await served.send("oncall", "GET", f"/v1/approvals/{id}")).json()["approval"]["problem"]

    assert "bad arguments" in await until(problem)
    assert await served.requests(run) == requests
    assert paid == []
    await served.send("clerk", "POST", f"/v1/runs/{run}/cancel", {})


async def test_edited_arguments_that_a_rule_denies_are_denied(served: Served) -> None:
    run = (await served.start("clerk", "await tools.pay({amount: 9})"))["run"]
    assert await served.answer("oncall", await served.requests(run), args={"amount": 5000}) == 200
    assert (await served.end("clerk", run))["error"]["code"] == "denied"
    assert paid == []


async def test_an_approver_who_has_left_approves_nothing(served: Served) -> None:
    run = (await served.start("clerk", "await tools.pay({amount: 10})"))["run"]
    requests = await served.requests(run)
    with closing(TokenStore(served.store)) as tokens:
        tokens.remove("leaver", "approver")

    async def is_refused() -> bool:
        return (await served.send("leaver", "GET", "/v1/approvals")).status_code == 401

    await until(is_refused)  # a token that was removed counts for a second
    assert await served.answer("leaver", requests) == 401
    assert await served.requests(run) == requests
    assert paid == []


async def test_an_approver_runs_nothing_that_it_could_approve(served: Served) -> None:
    assert (await served.send("oncall", "POST", "/v1/runs", {"code": "await tools.pay({amount: 11})"})).status_code == 403
    assert (await served.send("oncall", "POST", "/mcp", {})).status_code in (401, 403)


async def test_a_plan_is_approved_by_no_answer_and_followed_by_no_other_program(served: Served) -> None:
    planned = await served.start("clerk", "await tools.pay({amount: 12})", mode="plan", id="planned")
    assert [write["args"] for write in planned["plan"]["writes"]] == [{"amount": 12}]
    assert await served.answer("oncall", {planned["run"]: planned["plan"].get("digest") or "0"}) == 404
    other = await served.start("clerk", "await tools.pay({amount: 13})", id="planned")
    assert other["error"]["code"] == "run-id-taken"
    resumed = (await served.send("clerk", "POST", "/v1/runs/planned/resume", {})).json()
    assert resumed["status"] == "completed"
    assert (await served.start("clerk", "await tools.pay({amount: 12})"))["status"] == "waiting"
    assert paid == []


async def test_a_caller_can_not_answer_for_the_person_who_is_asked_about_its_tool(served: Served) -> None:
    made: list[Any] = []
    tools = {"send": lambda args: made.append(args) or "sent"}
    first = await HostClient.open(served.url, served.tokens["app"])
    second = await HostClient.open(served.url, served.tokens["app2"])
    try:
        await first.start("hosted", "await tools.send({n: 1})", tools)
        assert (await first.end("hosted"))["status"] == "waiting"
        requests = await served.requests("hosted")
        assert len(requests) == 1
        for sender in (first, second):
            for call in range(1, 5):  # the result of a call that nobody has approved
                await sender.send({"type": "result", "run": "hosted", "call": call, "value": "forged"})
        await second.send({"type": "cancel", "run": "hosted"})
        refused = await second.run("hosted", "await tools.send({n: 1})", tools)
        assert refused["code"] == "run-id-taken"
        assert await served.requests("hosted") == requests
        assert made == []
        assert await served.answer("oncall", requests, scope="always") == 200
        outcome = await first.end("hosted")
        assert (outcome["value"], made) == ("sent", [{"n": 1}])
        # It stands for this agent and this definition of the tool alone.
        assert (await first.run("hosted-2", "await tools.send({n: 2})", tools))["value"] == "sent"
        changed = {"send": (tools["send"], {"description": "Send to everybody."})}
        assert (await first.run("hosted-3", "await tools.send({n: 3})", changed))["status"] == "waiting"
        assert (await second.run("hosted-4", "await tools.send({n: 4})", tools))["status"] == "waiting"
        assert made == [{"n": 1}, {"n": 2}]
    finally:
        await first.close()
        await second.close()
