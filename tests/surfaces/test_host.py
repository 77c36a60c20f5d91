"""The sandbox host at /v1/host: programs run here, their calls go to the caller (M1, M10, M11, M13, R4)."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import closing
from hmac import compare_digest
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from gloveport import Gloveport, OptionError
from gloveport.approvals.request import Answer
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http import admission
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.hosts import HostClient

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.app]
limits = {wall_seconds = 20}

[[rules]]
deny = "caller.forbidden"

[[rules]]
ask = "caller.careful"
"""


class Served:
    """A server with a store, and what it takes to call it."""

    def __init__(self, url: str, tokens: dict[str, str], port: Gloveport) -> None:
        self.url = url
        self.tokens = tokens
        self.port = port

    async def caller(self, name: str = "host", **options: Any) -> HostClient:
        """Return a new caller."""
        return await HostClient.open(self.url, self.tokens[name], **options)


def own(text: str = "") -> str:
    """Return a text: a tool of the server itself."""
    return f"own {text}"


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    settings, store = folder / "gloveport.toml", folder / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(tools=[own], config=settings, store=store, spare=1)
    with closing(TokenStore(store)) as tokens:
        known = {"host": tokens.add("app", "host"), "admin": tokens.add("root", "admin"), "agent": TOKEN}
        known["approver"] = tokens.add("oncall", "approver")
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield Served(url_of(listening), known, port)
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.fixture
async def caller(served: Served) -> AsyncIterator[HostClient]:
    caller = await served.caller()
    try:
        yield caller
    finally:
        await caller.close()


async def test_a_quiet_run_sends_calls_and_its_outcome_alone(caller: HostClient) -> None:
    code = 'console.log("begun"); emit({a: 1}); await tools.add(3, 4)'
    outcome = await caller.run("quiet-1", code, {"add": (sum, {"positional": True})}, quiet=True)
    assert [message["type"] for message in caller.of("quiet-1")] == ["call", "outcome"]
    assert (outcome["value"], outcome["logs"][0]["text"], outcome["emitted"]) == (7, "begun", [{"a": 1}])


async def test_a_programs_calls_go_to_its_caller_under_every_name(caller: HostClient) -> None:
    asked: list[Any] = []
    tools = {
        "github.issues.list": (lambda args: asked.append(args) or [{"n": 1}], {"readOnly": True}),
        "add": (sum, {"positional": True}),
        "search": lambda args: ["mine"],
    }
    code = """
    console.log("begun"); emit({a: 1});
    const both = [await tools.github.issues.list({state: "open"}), await github.issues.list(), await tools.caller.add(1, 2)];
    [...both, await codemode.add(3, 4), await tools.search("x"), await tools.own({text: "y"})]
    """
    outcome = await caller.run("names-1", code, tools)
    assert outcome["status"] == "completed", outcome["error"]
    assert outcome["value"] == [[{"n": 1}], [{"n": 1}], 3, 7, ["mine"], "own y"]
    assert asked == [{"state": "open"}, {}]
    kinds = [message["type"] for message in caller.of("names-1")]
    assert kinds == ["started", "log", "emit", *["call"] * 5, "outcome"]
    assert [call["tool"] for call in outcome["calls"]] == [
        "github.issues.list",
        "github.issues.list",
        "add",
        "add",
        "search",
        "own",
    ]


async def test_a_callers_error_is_the_programs_to_catch(caller: HostClient) -> None:
    def boom(args: Any) -> None:
        raise ValueError("tool error")

    caught = await caller.run("errors-1", "await tools.boom().catch((e) => e.message)", {"boom": boom})
    assert caught["value"] == "tool error"
    outcome = await caller.run("errors-2", "await tools.boom()", {"boom": boom})
    assert (outcome["status"], outcome["error"]["message"]) == ("failed", "tool error")
    assert outcome["error"]["origin"] == "tool"


@pytest.mark.parametrize(
    ("name", "options", "status"),
    [
        ("nobody", {}, 401),
        ("agent", {}, 403),
        ("approver", {}, 403),
        ("host", {"origin": "https://elsewhere.example"}, 403),
    ],
)
async def test_who_may_not_bring_tools_is_refused_before_the_upgrade(
    served: Served, name: str, options: dict[str, Any], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gloveport")
    token = served.tokens.get(name, "no-token-that-the-server-knows-of")
    headers = {"Authorization": f"Bearer {token}"}
    with pytest.raises(InvalidStatus) as refused:
        await connect(served.url.replace("http", "ws", 1) + "/v1/host", additional_headers=headers, proxy=None, **options)
    assert refused.value.response.status_code == status
    assert b'"ok":false' in (refused.value.response.body or b"")
    logged = [(record.levelname, record.getMessage()) for record in caplog.records if record.name != "websockets.client"]
    assert [level for level, _ in logged if level != "INFO"] == []
    assert any(text.startswith(f"refused WebSocket '/v1/host': {status} ") for _, text in logged), logged


async def test_one_caller_cannot_take_the_sockets_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_SOCKETS", 4)
    settings, store = tmp_path / "gloveport.toml", tmp_path / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(config=settings, store=store, spare=0)
    with closing(TokenStore(store)) as tokens:
        other = tokens.add("app", "host")
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent, own_role="host")
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    url = url_of(listening).replace("http", "ws", 1)

    async def opened(path: str, token: str) -> ClientConnection:
        return await connect(url + path, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None)

    try:
        greedy = [await opened(path, TOKEN) for path in ("/v1/host", "/v1/sandbox", "/v1/host")]
        for path in ("/v1/host", "/v1/sandbox"):
            with pytest.raises(InvalidStatus) as refused:
                await opened(path, TOKEN)
            assert refused.value.response.status_code == 429
            assert "Retry-After" in refused.value.response.headers
        for socket in (*greedy, await opened("/v1/host", other)):
            await socket.close()
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic Og==", "bearer null"])
async def test_a_missing_secret_means_refuse(served: Served, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    with pytest.raises(InvalidStatus) as refused:
        await connect(served.url.replace("http", "ws", 1) + "/v1/host", additional_headers=headers, proxy=None)
    assert refused.value.response.status_code == 401
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False, headers=headers) as client:
        for path in ("/v1/runs", "/v1/engines", "/metrics", "/mcp"):
            assert (await client.get(path)).status_code == 401


@pytest.mark.parametrize("callback", [{}, {"token": ""}, {"token": None}, {"token": " "}])
async def test_a_missing_secret_of_a_callback_means_refuse(served: Served, callback: dict[str, Any]) -> None:
    body = {"id": "no-secret", "code": "1", "tools": [], "callback": {"url": "http://127.0.0.1:9/", **callback}}
    headers = {"Authorization": f"Bearer {served.tokens['host']}"}
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False, headers=headers) as client:
        assert (await client.post("/v1/runs", json=body)).status_code in (400, 403)
        assert (await client.get("/v1/runs/no-secret")).status_code == 404


@pytest.mark.parametrize("given", ['"90s"', "NaN", "-1", "0", "-0.001", "1e999", "null", "true", "[1000]"])
async def test_timeouts_that_are_texts_nan_or_negative_are_refused(served: Served, given: str) -> None:
    for name in ("wall_seconds", "cpu_seconds", "timeoutMs"):
        member = f'"timeoutMs": {given}' if name == "timeoutMs" else f'"limits": {{"{name}": {given}}}'
        headers = {"Authorization": f"Bearer {served.tokens['host']}", "Content-Type": "application/json"}
        async with httpx2.AsyncClient(base_url=served.url, trust_env=False, headers=headers) as client:
            reply = await client.post("/v1/runs", content=f'{{"id": "odd-time", "code": "1", {member}}}')
            assert reply.status_code in (400, 403), reply.text
            assert (await client.get("/v1/runs/odd-time")).status_code == 404


async def test_the_comparison_of_tokens_takes_constant_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the token is, digests of one length are compared with each token that is known, by `compare_digest`."""
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return compare_digest(left, right)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    check = TokenCheck(Secret(TOKEN, "token"), served.port.store_path, served.port.agent)
    counts = set()
    for token in (TOKEN, *served.tokens.values(), "", "x", TOKEN[:-1], TOKEN[:-1] + "x", "x" * 5000):
        compared.clear()
        await check.caller_of(f"Bearer {token}")
        counts.add((len(compared), *set(compared)))
    assert counts == {(4, (32, 32))}


async def test_a_run_counts_as_running_only_after_its_whole_configuration_is_valid(
    served: Served, caller: HostClient
) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"timeoutMs": "90s"}, "bad-request"),
        ({"timeoutMs": -1}, "bad-request"),
        ({"timeoutMs": 3_600_000}, "forbidden"),
        ({"engine": "none"}, "bad-request"),
        ({"allowEval": True}, "forbidden"),
        ({"agent": "somebody"}, "forbidden"),
        ({"env": {"A": 1}}, "bad-request"),
        ({"unknown": 1}, "bad-request"),
        ({"listed": [{"name": "constructor"}]}, "bad-option"),
        ({"listed": [{"name": "a", "inputSchema": {"type": "array"}}]}, "bad-option"),
        ({"listed": [{"name": "a"}, {"name": "a"}]}, "bad-option"),
    ]
    for at, (options, code) in enumerate(wrong):
        run = f"refused-{at}"
        refusal = await caller.run(run, "1", **options)
        assert refusal.get("code") == code, (options, refusal)
        assert [message["type"] for message in caller.of(run)] == ["refused"]
        with pytest.raises(OptionError):
            await served.port.recording(run)
    await caller.send('{"type": "run", "run": "nan", "code": "1", "timeoutMs": NaN}')  # which is no JSON
    await caller.closed()
    assert caller.close_code == 1008


async def test_the_given_timeout_is_the_one_that_counts_from_end_to_end(caller: HostClient) -> None:
    never = asyncio.Event()
    began = time.monotonic()
    outcome = await caller.run("timeout-1", "await tools.wait()", {"wait": lambda args: never.wait()}, timeoutMs=700)
    assert outcome["error"]["code"] == "time-limit", outcome["error"]
    assert 0.7 <= time.monotonic() - began < 5
    assert 0.7 <= outcome["usage"]["wall_seconds"] < 3


async def test_calls_and_output_of_a_run_that_is_over_are_refused(caller: HostClient) -> None:
    release = asyncio.Event()

    async def late(args: Any) -> str:
        await release.wait()
        return "late"

    code = "setInterval(() => console.log('on'), 10); await tools.late()"
    outcome = await caller.run("over-1", code, {"late": late}, timeoutMs=600)
    assert outcome["error"]["code"] == "time-limit"
    heard = len(caller.of("over-1"))
    release.set()
    assert (await caller.run("over-2", "await tools.late()", {"late": late}))["value"] == "late"
    assert len(caller.of("over-1")) == heard
    assert caller.of("over-1")[-1]["type"] == "outcome"


async def test_a_program_that_erases_to_nothing_completes_with_nothing(caller: HostClient) -> None:
    for at, code in enumerate(("interface A { b: string }", "", "// a comment")):
        outcome = await caller.run(f"nothing-{at}", code)
        assert (outcome["status"], outcome["value"], outcome["calls"]) == ("completed", None, [])


async def test_a_caller_that_is_killed_in_mid_call_ends_its_run_and_the_write_is_unknown(served: Served) -> None:
    caller = await served.caller()
    called = asyncio.Semaphore(0)

    async def hang(args: Any) -> None:
        called.release()
        await asyncio.Event().wait()

    tools = {"pay": hang, "read": (hang, {"readOnly": True})}
    await caller.start(
        "gone-1", "await Promise.allSettled([tools.pay({n: 1}), tools.read({n: 2})]); await tools.own({})", tools
    )
    await called.acquire()
    await called.acquire()  # both calls have reached the caller, in any order
    caller.vanish()
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False) as client:
        client.headers["Authorization"] = f"Bearer {served.tokens['host']}"
        async with asyncio.timeout(30):
            while (found := (await client.get("/v1/runs/gone-1")).json())["run"]["status"] == "running":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        audit = await client.get("/v1/audit?run=gone-1", headers={"Authorization": f"Bearer {served.tokens['admin']}"})
    assert found["run"]["status"] == "cancelled", found
    ended = [json.dumps(event["body"]) for event in audit.json()["events"] if event["kind"] == "call-ended"]
    assert sorted("outcome-unknown" in text for text in ended) == [False, True], audit.text
    assert sorted("caller-gone" in text for text in ended) == [False, True]


async def test_rules_hold_for_the_tools_of_a_caller(served: Served, caller: HostClient) -> None:
    tools = {"forbidden": lambda args: 1, "careful": lambda args: 2}
    outcome = await caller.run("rules-1", "await tools.forbidden()", tools)
    assert outcome["error"]["code"] == "denied"
    await caller.start("rules-2", "await tools.careful({a: 1})", tools)
    assert (await caller.end("rules-2"))["status"] == "waiting"
    assert not [message for message in caller.of("rules-2") if message["type"] == "call"]
    (asked,) = (one for one in served.port.approvals.waiting if one.run == "rules-2")
    served.port.approvals.answer(asked.id, asked.digest, Answer(True, "oncall"))
    outcome = await caller.end("rules-2")
    assert (outcome["status"], outcome["value"]) == ("completed", 2)


async def test_an_unnamed_run_gets_an_id_of_the_server(served: Served, caller: HostClient) -> None:
    ids = set()
    for _ in range(2):
        await caller.start("unnamed", "await tools.careful({a: 1})", {"careful": lambda args: 2}, unnamed=True)
        run = (await caller.end("unnamed"))["run"]
        (asked,) = (one for one in served.port.approvals.waiting if one.run == run)
        served.port.approvals.answer(asked.id, asked.digest, Answer(True, "oncall"))
        assert (await caller.end("unnamed"))["value"] == 2
        ids.add(run)
    started = {message["id"] for message in caller.of("unnamed") if message["type"] == "started"}
    assert (started, len(ids)) == (ids, 2)
    await caller.start("unnamed", "await tools.careful({a: 1})", {"careful": lambda args: 2}, unnamed=True)
    await caller.end("unnamed")
    await caller.send({"type": "cancel", "run": "unnamed"})
    assert (await caller.end("unnamed"))["status"] == "cancelled"


async def test_tagged_values_stay_what_they_are(caller: HostClient) -> None:
    code = "const back = await tools.echo(new Uint8Array([1, 2]), undefined); [input, back]"
    tools = {"echo": (lambda args: args[0], {"positional": True})}
    outcome = await caller.run("tagged-1", code, tools, values="tagged", input={"$": "bytes", "v": "AQI="})
    assert outcome["value"] == [{"$": "bytes", "v": "AQI="}] * 2, outcome
