"""The sandbox host at /v1/host: programs run here, their calls go to the caller (M1, M10, M11, M13, R4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
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
