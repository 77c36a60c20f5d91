"""Direct mode: chosen tools as ordinary MCP tools, for clients of both revisions of the protocol."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from gloveport import Answer, Gloveport, Rule, tool
from gloveport.store.reading import events as stored_events
from gloveport.store.reading import open_for_reading
from gloveport.surfaces.mcp.direct import mcp_names
from gloveport.types import Tool
from tests.conftest import TOOLS
from tests.surfaces.agents import WAYS, client_of
from tests.surfaces.command import COMMAND, environment

PAID: list[int] = []


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


def many() -> str:
    return "x" * 100_001


@pytest.mark.integration
@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_client_gets_the_chosen_tools_and_no_other(way: str, mode: str) -> None:
    port = Gloveport(tools=[*TOOLS, pay, many], spare=1)
    async with client_of(port, way, mode, direct=("local.get_*", "local.fail", "local.many")) as client:
        assert client.instructions is None
        listed = {one.name: one for one in (await client.list_tools()).tools}
        assert set(listed) == {"get_weather", "fail", "many"}
        weather = listed["get_weather"]
        assert weather.description == "The weather in a city."
        assert weather.input_schema["required"] == ["city"]
        assert weather.annotations
        assert weather.annotations.read_only_hint is True
        found = await client.call_tool("get_weather", {"city": "Oslo"})
        assert (found.is_error, found.structured_content["value"]["temp_f"]) == (False, 50)
        wrong = await client.call_tool("get_weather", {"city": 5})
        assert wrong.is_error
        assert wrong.content[0].text.startswith("bad-arguments: ")
        assert "line 1" not in wrong.content[0].text, "the client has not seen the program"
        assert "it takes city: string" in wrong.content[0].text
        assert "tools.describe" not in wrong.content[0].text, "the client can't call it"
        failed = await client.call_tool("fail", {})
        assert (failed.is_error, "no luck" in failed.content[0].text) == (True, True)
        cut = await client.call_tool("many", {})
        assert cut.content[0].text.endswith("x\n[cut: the whole has 100,001 characters; ask for less]")
        for other in ("add", "pay", "execute", "search"):
            with pytest.raises(MCPError, match=f"there is no tool '{other}'"):
                await client.call_tool(other, {"code": "await tools.add(1, 2)", "query": ""})


@pytest.mark.integration
@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_call_that_asks_waits_and_goes_on_after_the_answer(way: str, mode: str, tmp_path: Path) -> None:
    PAID.clear()
    store = tmp_path / "store.sqlite"
    port = Gloveport(tools=[pay, *TOOLS], store=store, rules=[Rule("local.add", "deny")], spare=1)
    async with client_of(port, way, mode, direct=("local.pay", "local.add")) as client:
        assert {one.name for one in (await client.list_tools()).tools} == {"pay", "add", "resume"}
        denied = await client.call_tool("add", {"a": 1, "b": 2})
        assert (denied.is_error, denied.content[0].text.startswith("denied: ")) == (True, True)
        asked = await client.call_tool("pay", {"amount": 5})
        assert (asked.is_error, asked.structured_content["status"], PAID) == (False, "waiting", [])
        run = asked.structured_content["run"]
        assert f'resume({{run: "{run}"}})' in asked.content[0].text
        again = await client.call_tool("pay", {"amount": 5})  # the client's retry
        assert again.structured_content["run"] == run
        (request,) = port.approvals.waiting
        port.approvals.answer(request.id, request.digest, Answer(True, "ada"))
        done = await client.call_tool("resume", {"run": run})
        assert (done.structured_content["status"], done.structured_content["value"]) == ("completed", "paid 5")
    assert PAID == [5]
    with contextlib.closing(open_for_reading(store)) as connection:
        recorded = [event for event in stored_events(connection, run=run) if event.tool == "local.pay"]
    assert [event.kind for event in recorded].count("call-started") == 1


@pytest.mark.integration
async def test_an_agent_that_the_settings_name_gets_those_that_it_sees(tmp_path: Path) -> None:
    settings = tmp_path / "gloveport.toml"
    settings.write_text(
        '[agents.default]\ntools = ["local.add", "local.echo"]\ndirect = ["local.a*", "local.get_weather"]\n'
    )
    async with client_of(Gloveport(tools=TOOLS, config=settings, spare=0), "memory", "legacy") as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["add"]


@pytest.mark.integration
async def test_the_command_offers_them_to_a_client_that_starts_it(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def stock(item: str) -> int:\n    return len(item)\n\n\ndef close() -> None: ...\n")
    args = [*COMMAND[1:], "mcp", str(tmp_path / "shop.py"), "--direct", "shop.st*"]
    start = StdioServerParameters(command=COMMAND[0], args=args, env=environment())
    async with Client(start) as client:
        assert [one.name for one in (await client.list_tools()).tools if one.name != "resume"] == ["shop_stock"]
        assert (await client.call_tool("shop_stock", {"item": "pear"})).structured_content["value"] == 4


def test_names_that_mcp_would_not_tell_apart_get_a_digest() -> None:
    addresses = ["a.b_c", "a_b.c", "a.b.c", "local.execute", "local.add", f"s.{'x' * 70}"]
    names = mcp_names(Tool(address, "", {}) for address in addresses)
    assert [one.address for one in names.values()] == addresses
    assert "add" in names
    assert "execute" not in names
    assert all(len(name) <= 64 for name in names)
    assert len({name.lower() for name in names}) == len(addresses)
