"""Callbacks: the calls of a run are posted to its caller, within the settings' origins (B4, M10, N1, N2, N5, R4)."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport
from gloveport.config import ServeConfig
from gloveport.errors import GloveportError, ToolError
from gloveport.policy.credentials import Secret
from gloveport.policy.egress import Egress
from gloveport.sources.caller import CallerSource, CallerTool
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api.callback import Callbacks
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from gloveport.urls import origin_of
from tests.policy.servers import Dialled
from tests.policy.test_egress_spellings import FORBIDDEN, OTHERS, UNREADABLE
from tests.surfaces.agents import TOKEN, url_of

CALLBACK_TOKEN = "callback-canary-5b1f0c7e"
TOOLS = [{"name": "pay"}, {"name": "read", "readOnly": True}]
TOOL = CallerSource([CallerTool("pay")]).tools()[0]


class CallerServer:
    """A caller's HTTP server. The path of the URL says how it answers a call."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.tokens: set[str] = set()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                call = json.loads(await reader.readexactly(int(headers["content-length"])))
                self.tokens.add(headers["authorization"])
                self.calls.append(call)
                if lines[0].startswith("POST /hang"):
                    await reader.read()  # until the other side gives up
                    return
                if not await self._answer(lines[0].split(" ")[1], call, headers, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, path: str, call: Any, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        if path == "/gone":
            writer.transport.abort()
            return False
        status, more = {"/moved": ("307 Moved", f"Location: {self.url}/\r\n"), "/broken": ("500 Broken", "")}.get(
            path, ("200 OK", "")
        )
        answer: Any = {"value": [call["tool"], call["args"]]}
        if path == "/echo":
            answer = {"value": headers["authorization"]}
        elif path == "/error":
            answer = {"error": {"message": "tool error", "code": "mine"}}
        elif path == "/nonsense":
            answer = {"values": 1}
        body = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True

    def of(self, run: str) -> list[dict[str, Any]]:
        """Return the calls of a run that have arrived."""
        return [call for call in self.calls if call["run"] == run]


class Served:
    """A server that may call the caller's server, and a client for each role."""

    def __init__(self, url: str, tokens: dict[str, str], caller: CallerServer, port: Gloveport, store: Path) -> None:
        self.caller, self.port, self.store = caller, port, store
        self.clients = {
            role: httpx2.AsyncClient(
                base_url=url, trust_env=False, timeout=60, headers={"Authorization": f"Bearer {token}"}
            )
            for role, token in tokens.items()
        }

    async def run(self, id: str, code: str, path: str = "/", *, role: str = "host", **more: Any) -> httpx2.Response:
        """Start a run whose calls go to a path of the caller."""
        callback = {"url": self.caller.url + path, "token": CALLBACK_TOKEN}
        body = {"id": id, "code": code, "tools": TOOLS, "callback": callback, **more}
        return await self.clients[role].post("/v1/runs", content=json.dumps(body), headers=JSON)


JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    caller = CallerServer()
    callbacks = await asyncio.start_server(caller.serve, "127.0.0.1", 0)
    caller.url = f"http://127.0.0.1:{callbacks.sockets[0].getsockname()[1]}"
    store = tmp_path_factory.mktemp("callback") / "store.sqlite"
    port = Gloveport(store=store, spare=1, limits={"wall_seconds": 20})
    with closing(TokenStore(store)) as tokens:
        known = {"host": tokens.add("default", "host"), "admin": tokens.add("root", "admin"), "agent": TOKEN}
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    settings = ServeConfig(callbacks_private=frozenset({caller.url}))
    server = HttpServer(port, ServerNames(), check, Admission(), 30, settings=settings)
    serving = asyncio.create_task(server.serve(listening))
    served = Served(url_of(listening), known, caller, port, store)
    try:
        yield served
    finally:
        for client in served.clients.values():
            await client.aclose()
        server.stop()
        server.stop()
        await serving
        callbacks.close()


@pytest.mark.integration
async def test_a_programs_calls_are_posted_to_its_caller_with_the_token_of_the_run(served: Served) -> None:
    code = "console.log('begun'); emit(1); [await tools.pay({n: 1}), await tools.caller.read()]"
    outcome = (await served.run("post-1", code)).json()
    assert outcome["value"] == [["pay", {"n": 1}], ["read", {}]], outcome
    assert served.caller.of("post-1") == [
        {"type": "call", "run": "post-1", "call": 1, "tool": "pay", "args": {"n": 1}},
        {"type": "call", "run": "post-1", "call": 2, "tool": "read", "args": {}},
    ]
    assert served.caller.tokens == {f"Bearer {CALLBACK_TOKEN}"}
    events = (await served.clients["host"].get("/v1/runs/post-1/events")).text
    assert [line[7:] for line in events.splitlines() if line.startswith("event: ")] == [
        *("log", "emit", "call", "call-ended", "call", "call-ended", "status")
    ]
    failed = (await served.run("post-2", "await tools.read()", "/error")).json()["error"]
    assert (failed["message"], failed["code"], failed["origin"]) == ("tool error", "mine", "tool")


@pytest.mark.integration
async def test_the_credential_of_a_run_is_in_no_sandbox_store_audit_or_log_and_dies_with_the_run(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    outcome = await served.run(
        "secret-1", "[await tools.read(), process.env, input]", "/echo", input={"a": 1}, logCode=True
    )
    assert outcome.json()["status"] == "completed", outcome.text
    assert CALLBACK_TOKEN not in outcome.text  # what the caller echoed is redacted before the sandbox gets it
    await served.run("secret-2", "await tools.pay()", "/gone")
    await served.run("secret-3", "1 +")
    await served.port.flush()
    shown = [
        (await served.clients["admin"].get(path)).text
        for path in ("/v1/runs/secret-1", "/v1/runs/secret-1/events", "/v1/audit?run=secret-1", "/v1/audit?run=secret-2")
    ]
    kept = [file.read_bytes() for file in served.store.parent.iterdir()]
    assert all(CALLBACK_TOKEN not in text for text in [*shown, caplog.text])
    assert kept
    assert all(CALLBACK_TOKEN.encode() not in data for data in kept)
    gc.collect()
    alive = [one for one in gc.get_objects() if isinstance(one, Secret) and one.label == "callback.token"]
    assert alive == []


@pytest.mark.integration
async def test_a_caller_that_is_gone_in_mid_call_leaves_a_write_unknown_and_gets_it_once(served: Served) -> None:
    code = "const ended = await Promise.allSettled([tools.pay(), tools.read()]); ended.map((e) => e.reason.code)"
    assert (await served.run("gone-1", code, "/gone")).json()["value"] == ["outcome-unknown", "caller-gone"]
    assert (await served.run("gone-2", code, "/broken")).json()["value"] == ["outcome-unknown", "http-error"]
    assert (await served.run("gone-3", code, "/nonsense")).json()["value"] == ["outcome-unknown", "bad-value"]
    for run in ("gone-1", "gone-2", "gone-3"):
        assert sorted(call["tool"] for call in served.caller.of(run)) == ["pay", "read"]


@pytest.mark.integration
async def test_a_redirect_of_a_callback_is_not_followed(served: Served) -> None:
    outcome = (await served.run("moved-1", "await tools.pay()", "/moved")).json()
    assert (outcome["error"]["code"], len(served.caller.of("moved-1"))) == ("http-error", 1)


@pytest.mark.integration
async def test_a_callback_run_counts_as_running_only_after_its_whole_configuration_is_valid(served: Served) -> None:
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"timeoutMs": "90s"}, 400),
        ({"timeoutMs": float("nan")}, 400),
        ({"timeoutMs": -1}, 400),
        ({"timeoutMs": 3_600_000}, 403),
        ({"callback": {"url": served.caller.url}}, 400),  # a missing secret means refuse
        ({"callback": {"url": served.caller.url, "token": ""}}, 400),
        ({"callback": {"url": served.caller.url, "token": "a\r\nb: c"}}, 400),
        ({"callback": {"url": "https://elsewhere.example", "token": CALLBACK_TOKEN}}, 403),
        ({"tools": [{"name": "constructor"}]}, 400),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, 400),
        ({"role": "agent"}, 403),
    ]
    for at, (options, status) in enumerate(wrong):
        for wait in (True, False):
            answer = await served.run(f"wrong-{at}", "await tools.read()", **{"wait": wait, **options})
            assert answer.status_code == status, (options, answer.text)
            assert CALLBACK_TOKEN not in answer.text
        assert (await served.clients["admin"].get(f"/v1/runs/wrong-{at}")).status_code == 404
        assert served.caller.of(f"wrong-{at}") == []


@pytest.mark.integration
async def test_the_given_timeout_counts_for_a_callback_too_and_a_call_of_a_run_that_is_over_is_refused(
    served: Served,
) -> None:
    began = time.monotonic()
    outcome = (await served.run("late-1", "await tools.pay()", "/hang", timeoutMs=700)).json()
    assert outcome["error"]["code"] == "time-limit"
    assert 0.7 <= time.monotonic() - began < 5
    assert len(served.caller.of("late-1")) == 1
    again = (await served.run("late-1", "await tools.pay()", "/hang", timeoutMs=700)).json()  # the same request
    assert (again["error"]["code"], len(served.caller.of("late-1"))) == ("time-limit", 1)


def test_there_are_many_spellings_for_callbacks() -> None:
    assert len(set(FORBIDDEN + OTHERS + UNREADABLE)) > 400


async def test_no_spelling_of_a_forbidden_address_passes_as_a_callback() -> None:
    dialled = Dialled()
    egress = Egress(connect_address=dialled)
    strict = Callbacks(ServeConfig(callbacks=frozenset({"https://app.example"})), egress)
    passed: list[str] = []
    for host in sorted({*FORBIDDEN, *OTHERS, *UNREADABLE}):
        callback = {"url": f"http://{host}/", "token": CALLBACK_TOKEN}
        # Even where somebody lists its origin among the public ones.
        careless = Callbacks(ServeConfig(callbacks=frozenset({origin_of(callback["url"])})), egress)
        for callbacks in (strict, careless):
            try:
                await callbacks.caller("run", callback).call(TOOL, 1, {})
            except ToolError as error:
                passed += [host] if error.code != "egress-denied" else []
            except GloveportError as error:
                assert error.code == "forbidden"
            else:
                passed.append(host)
    await egress.close()
    assert (passed, dialled.addresses) == ([], [])
