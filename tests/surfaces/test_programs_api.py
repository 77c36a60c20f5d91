"""The HTTP API for editors and for the rules: checks, completion, examples, policies and changed definitions (M3, M4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.surfaces.agents import TOKEN, url_of
from tests.surfaces.test_api import Served

pytestmark = pytest.mark.integration

SETTINGS = """\
[[rules]]
ask = "local.pay"
when = 'args.amount > 100'
reason = "large sums"

[agents.reader]
tools = ["local.weather"]
"""


@tool(writes=True)
def pay(amount: int, currency: Literal["EUR", "NOK"] = "EUR") -> str:
    """Pay somebody."""
    return f"paid {amount} {currency}"


def weather(city: str) -> dict:
    """The weather in a city."""
    return {"city": city}


@pytest.fixture(scope="module")
async def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("programs") / "gloveport.toml"
    await asyncio.to_thread(file.write_text, SETTINGS)
    return file


@pytest.fixture(scope="module")
async def served(settings: Path) -> AsyncIterator[Served]:
    store = settings.with_name("store.sqlite")
    port = Gloveport(tools=[pay, weather], config=settings, store=store, spare=0, check_types=True)
    with closing(TokenStore(store)) as tokens:
        known = {"reader": tokens.add("reader", "agent"), "approver": tokens.add("oncall", "approver")}
        known |= {"admin": tokens.add("root", "admin"), "default": TOKEN}
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30)
    serving = asyncio.create_task(server.serve(listening))
    served = Served(url_of(listening), known, None)  # type: ignore[arg-type]
    try:
        yield served
    finally:
        await served.close()
        server.stop()
        server.stop()
        await serving


async def _post(client: httpx2.AsyncClient, path: str, /, **body: Any) -> tuple[int, dict[str, Any]]:
    reply = await client.post(path, json=body)
    return reply.status_code, reply.json()


async def test_a_check_finds_what_a_run_would_be_refused_for(served: Served) -> None:
    status, found = await _post(served.default, "/v1/check", code="1;\nawait tools.wether({city: 'Oslo'})")
    assert status == 200
    [problem] = found["problems"]
    assert (problem["line"], problem["column"], problem["code"], problem["stops"]) == (2, 13, "unknown-tool", True)
    assert "tools.weather" in problem["hint"] + problem["message"]
    _, found = await _post(served.default, "/v1/check", code="const n = [1].length;\nawait tools.weather({city: n})")
    assert [(one["line"], one["code"], one["stops"]) for one in found["problems"]] == [(2, "type-error", True)]
    _, found = await _post(served.default, "/v1/check", code="await tools.weather(city=5)", language="python")
    assert found["problems"][0]["stops"], found
    _, found = await _post(served.default, "/v1/check", code="const a: number = 'x';\nawait tools.weather({city: 'Oslo'})")
    assert [(one["line"], one["stops"]) for one in found["problems"]] == [(1, False)]
    _, found = await _post(served.default, "/v1/check", code="await tools.weather({city: 'Oslo'})")
    assert found["problems"] == []


async def test_an_agent_completes_and_checks_against_its_own_tools(served: Served) -> None:
    code = "await tools."
    _, found = await _post(served.default, "/v1/complete", code=code, offset=len(code))
    assert {"pay", "weather"} <= {one["label"] for one in found["options"]}
    _, found = await _post(served.reader, "/v1/complete", code=code, offset=len(code))
    assert "pay" not in {one["label"] for one in found["options"]}
    _, found = await _post(served.reader, "/v1/check", code="await tools.pay({amount: 1})")
    assert [one["code"] for one in found["problems"]] == ["unknown-tool"]
    status, _ = await _post(served.reader, "/v1/check", code="1", agent="default")
    assert status == 403
    status, _ = await _post(served.approver, "/v1/check", code="1")
    assert status == 403
    _, found = await _post(served.admin, "/v1/check", code="await tools.pay({amount: 1})", agent="reader")
    assert [one["code"] for one in found["problems"]] == ["unknown-tool"]


async def test_the_place_of_a_cursor_counts_as_editors_do(served: Served) -> None:
    code = "'😀'; await tools.pay({cur"
    _, found = await _post(served.default, "/v1/complete", code=code, offset=len(code) + 1.0)  # 😀 has two units
    assert [one["insert"] for one in found["options"]] == ["currency: "]
    assert found["start"] == len(code) + 1 - len("cur")
    status, same = await _post(served.default, "/v1/complete", code=code, offset=1e60)
    assert (status, same["start"]) == (200, found["start"])


async def test_examples_are_programs_that_pass_the_check(served: Served) -> None:
    examples = (await served.default.get("/v1/examples")).json()["examples"]
    assert len(examples) == 3 or {one["language"] for one in examples} == {"typescript", "python"}
    for one in examples:
        assert one["title"] in one["code"]
        _, found = await _post(served.default, "/v1/check", code=one["code"], language=one["language"])
        assert [each for each in found["problems"] if each["stops"]] == [], one["name"]


async def test_rules_are_listed_with_their_place_and_explained(served: Served, settings: Path) -> None:
    found = (await served.approver.get("/v1/policies")).json()
    [rule] = [one for one in found["rules"] if one["pattern"] == "local.pay"]
    assert (rule["verdict"], rule["reason"], rule["place"]) == ("ask", "large sums", f"{settings}:2")
    assert rule["file"] == "project"
    assert found["agents"] == ["default", "reader"]
    status, about = await _post(served.approver, "/v1/policies/explain", tool="pay", args={"amount": 500})
    assert (status, about["decision"]["verdict"], about["matches"][0]["wins"]) == (200, "ask", True)
    _, about = await _post(served.approver, "/v1/policies/explain", tool="pay", agent="reader")
    assert about["hidden"]
    status, wrong = await _post(served.approver, "/v1/policies/explain", tool="pay", args={"amount": "x"})
    assert (status >= 400, wrong["error"]["code"]) == (True, "bad-arguments")
    for unknown in ({"tool": "nothing"}, {"tool": "pay", "agent": "nobody"}):
        status, wrong = await _post(served.approver, "/v1/policies/explain", **unknown)
        assert (status, wrong["error"]["code"]) == (404, "not-found")
    for client in (served.default, served.reader):
        assert (await client.get("/v1/policies")).status_code == 403
        assert (await client.post("/v1/policies/explain", json={"tool": "pay"})).status_code == 403


async def test_rules_are_listed_for_one_agent(served: Served) -> None:
    change = {"verdict": "deny", "pattern": "local.pay", "agent": "rea*"}
    _, shown = await _post(served.admin, "/v1/policies", **change)
    await _post(served.admin, "/v1/policies", **change, digest=shown["digest"])
    counts = {}
    for agent in ("reader", "default"):
        found = (await served.approver.get("/v1/policies", params={"agent": agent})).json()
        counts[agent] = [one["agent"] for one in found["rules"]]
    assert counts == {"reader": ["rea*", "*"], "default": ["*"]}
    _, shown = await _post(served.admin, "/v1/policies", **change, remove=True)
    await _post(served.admin, "/v1/policies", **change, remove=True, digest=shown["digest"])


@pytest.mark.parametrize(
    ("pattern", "covers"), [("local.pay", True), ("egress.write", True), ("egress.*", True), ("local.pey", False)]
)
async def test_a_rule_that_covers_no_tool_warns(served: Served, pattern: str, covers: bool) -> None:
    _, shown = await _post(served.admin, "/v1/policies", verdict="deny", pattern=pattern)
    assert any("no tool" in warning for warning in shown["warnings"]) != covers, shown["warnings"]


async def test_a_rule_is_set_only_as_it_was_shown(served: Served, settings: Path) -> None:
    change = {"verdict": "deny", "pattern": "local.weather", "agent": "reader"}
    status, shown = await _post(served.admin, "/v1/policies", **change)
    assert (status, shown["made"], shown["changes"]) == (200, False, True)
    assert '+deny = "local.weather"' in shown["diff"]
    assert await asyncio.to_thread(settings.read_text) == SETTINGS
    status, refused = await _post(served.admin, "/v1/policies", **change, digest="0" * 64)
    assert (status, refused["error"]["code"]) == (409, "out-of-date")
    assert (await _post(served.approver, "/v1/policies", **change))[0] == 403
    _, made = await _post(served.admin, "/v1/policies", **change, digest=shown["digest"])
    assert made["made"]
    _, about = await _post(served.admin, "/v1/policies/explain", tool="weather", agent="reader")
    assert about["decision"]["verdict"] == "deny"  # in force at once
    _, shown = await _post(served.admin, "/v1/policies", **change, remove=True)
    await _post(served.admin, "/v1/policies", **change, remove=True, digest=shown["digest"])
    assert await asyncio.to_thread(settings.read_text) == SETTINGS
    status, wrong = await _post(served.admin, "/v1/policies", verdict="ask", pattern="local.pay", when="args.amount >")
    assert (status, "column" in wrong["error"]["message"]) == (400, True)


async def test_names_below_a_namespace_are_those_that_the_caller_sees(served: Served) -> None:
    found = (await served.approver.get("/v1/namespaces")).json()
    assert [(one["path"], one["is_tool"], one["tools"]) for one in found["names"]] == [
        ("pay", True, 1),
        ("weather", True, 1),
    ]
    found = (await served.reader.get("/v1/namespaces")).json()
    assert [one["name"] for one in found["names"]] == ["weather"]


async def test_only_people_see_changed_definitions(served: Served) -> None:
    assert (await served.approver.get("/v1/changes")).json() == {"ok": True, "changes": []}
    assert (await served.default.get("/v1/changes")).status_code == 403
    assert (await _post(served.approver, "/v1/changes/accept", source="local", digest=""))[0] == 403
    status, wrong = await _post(served.admin, "/v1/changes/accept", source="local", digest="")
    assert (status, "no definition" in wrong["error"]["message"]) == (404, True)
