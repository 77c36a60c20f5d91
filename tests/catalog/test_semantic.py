"""Search by meaning, with and without the package."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.catalog import semantic
from gloveport.catalog.search import SearchIndex
from gloveport.surfaces.agents.tools import AgentTools
from gloveport.types import Tool

TOOLS = [
    Tool("hr.people.dismiss", "Terminate an employee", {}),
    Tool("hr.people.hire", "Employ somebody new", {}),
    Tool("money.invoices.pay", "Settle a bill", {}),
    Tool("weather.forecast", "Rain and sunshine of the coming days", {}),
]


def found(query: str, **options: Any) -> list[str]:
    return [tool.address for tool in SearchIndex(TOOLS).search(query, options.get("source"), 3).tools]


def test_words_that_no_tool_has_find_tools_of_that_meaning() -> None:
    assert found("get rid of a worker, dismissal")[0] == "hr.people.dismiss"
    assert found("purchase payment")[0] == "money.invoices.pay"
    assert found("climate tomorrow")[0] == "weather.forecast"


def test_only_tools_of_the_source_that_was_asked_for_are_found() -> None:
    assert all(address.startswith("weather.") for address in found("purchase payment", source="weather"))


def test_without_the_package_search_uses_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(semantic, "load_model", semantic.load_model.__wrapped__)  # another test may have loaded it
    assert found("purchase payment") == []
    assert found("settle bill") == ["money.invoices.pay"]


@pytest.mark.integration
def test_the_logging_of_the_process_stays_as_it_was() -> None:
    ask = "import logging; print(logging.getLogger().handlers, logging.getLogger().level)"
    find = f"from tests.catalog.test_semantic import found; assert found('climate tomorrow'); {ask}"
    shown = subprocess.run([sys.executable, "-c", find], capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == (f"[] {logging.WARNING}\n", "")


@pytest.mark.integration
@pytest.mark.parametrize("way", ["program", "agent"])
async def test_the_first_search_loads_the_model_outside_the_event_loop(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    embed_tools = semantic.embed_tools

    def observed(tools: Sequence[Tool]) -> semantic.EmbeddingIndex | None:
        threads.append(threading.get_ident())
        return embed_tools(tools)

    monkeypatch.setattr(semantic, "embed_tools", observed)

    def greet(name: str) -> str:
        """Say hello to somebody."""
        return f"hello {name}"

    async with Gloveport(tools=[greet]) as port:
        if way == "program":
            code = "const all = await Promise.all([1, 2, 3].map(() => tools.search('hello'))); return all[2][0].path"
            outcome = await port.run(code)
            assert outcome.value == "greet", outcome.error
        else:
            agent = AgentTools(port)
            assert "tools.greet" in (await agent.call("search", {"query": "hello"})).text
            assert "tools.greet" in (await agent.call("search", {"query": "hello"})).text
    assert threads
    assert threading.get_ident() not in threads


def test_a_source_whose_tools_fit_the_query_comes_before_another() -> None:
    kitchen = [Tool(f"kitchen.{name}", text, {}) for name, text in (("run", "Start."), ("bake", "Bake bread and cakes"))]
    garage = [Tool(f"garage.{name}", text, {}) for name, text in (("run", "Start."), ("repair", "Repair cars and engines"))]
    for tools in ([*kitchen, *garage], [*garage, *kitchen]):
        index = SearchIndex(tools)
        assert index.search("start a pastry", None, 1).tools[0].address == "kitchen.run"
        assert index.search("start a vehicle", None, 1).tools[0].address == "garage.run"


def test_every_text_of_a_tool_has_a_meaning() -> None:
    schema = {"type": "object", "properties": {"x": {"description": "The dog or cat that is ill"}}}
    tools = [
        Tool("a.one", "Do it.", schema),
        Tool("a.two", "Do it.\n\nFor ships on the sea.", {}),
        Tool("a.three", "Do it.", {}),
    ]
    index = SearchIndex(tools)
    assert index.search("pets", None, 1).tools[0].address == "a.one"
    assert index.search("ocean vessels", None, 1).tools[0].address == "a.two"


def test_tools_without_words_are_no_error() -> None:
    assert SearchIndex([]).search("anything", None, 3).tools == ()
    assert len(SearchIndex([Tool("_._", "", {})]).search("anything", None, 3).tools) == 0
