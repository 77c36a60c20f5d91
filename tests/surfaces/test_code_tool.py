"""`code_tool`: its description and its answers."""

import importlib
import sys
from typing import Any

import jsonschema_rs
import pytest

from gloveport import Event, Gloveport, OptionError, code_tool
from gloveport.types import Tool
from tests.surfaces.command import REPOSITORY

pytestmark = pytest.mark.integration


class Large:
    """A source with many tools."""

    name = "large"

    def __init__(self, count: int) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        self._tools = [Tool(f"large.tool_{number}", f"Number {number}", schema) for number in range(count)]

    def tools(self) -> list[Tool]:
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        return tool.address

    async def close(self) -> None:
        pass


async def test_a_program_is_run_and_answered_as_text_and_as_data(port: Gloveport) -> None:
    tool = code_tool(port)
    answer = await tool.call({"code": "console.log('hi'); return await tools.add(input, 2)", "input": 40})
    assert (answer.failed, answer.data["value"], answer.data["status"]) == (False, 42, "completed")
    assert answer.text.startswith("42\n")
    assert "hi" in answer.text
    python = await tool.call('{"code": "await tools.add(a=1, b=2)", "language": "python"}')
    assert python.text == "3"


async def test_a_small_catalog_is_declared_to_the_model(port: Gloveport) -> None:
    tool = code_tool(port)
    assert "declare const tools: {" in tool.description
    assert "The weather in a city." in tool.description
    assert "get_weather(args: {" in tool.description
    jsonschema_rs.validate(tool.input_schema, {"code": "1", "language": "python", "input": [1]})
    assert not jsonschema_rs.is_valid(tool.input_schema, {"code": 1})


@pytest.mark.parametrize("count", [95, 3000])
async def test_a_large_catalog_is_summarised_and_searchable_from_inside(count: int) -> None:
    async with Gloveport(sources=[Large(count)], spare=0) as opened:
        tool = code_tool(opened)
        assert f"large ({count:,})" in tool.description
        assert "declare const" not in tool.description
        assert len(tool.description) < 4000
        looked = await tool.call({"code": "(await tools.search({query: 'number 7', limit: 100}))[0].path"})
        assert looked.text == "large.tool_7"
        described = await tool.call({"code": "(await tools.describe('large.tool_7')).typescript"})
        assert "tool_7(args?: {" in described.text


async def test_without_tools_programs_can_still_compute() -> None:
    async with Gloveport(spare=0) as opened:
        tool = code_tool(opened)
        assert "No tools are connected" in tool.description
        assert (await tool.call({"code": "6 * 7"})).text == "42"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"code": "tools.ad(1, 2)"}, "did you mean `tools.add`?"),
        ({"code": "const x: number = ;"}, "syntax-error"),
        ({"code": "throw new Error('oh no')"}, "oh no"),
        ({}, "`code`"),
        ({"code": "1", "language": "cobol"}, "cobol"),
        ({"result_id": "nothing"}, "nothing"),
        ("{not json", "the arguments are not a JSON object"),
        ("[1]", "the arguments are not a JSON object"),
    ],
)
async def test_errors_are_answers_that_the_model_can_learn_from(args: Any, said: str, port: Gloveport) -> None:
    answer = await code_tool(port).call(args)
    assert answer.failed
    assert said in answer.text


async def test_an_error_looks_as_the_documentation_shows_it(port: Gloveport) -> None:
    page = (REPOSITORY / "docs" / "programs.md").read_text()
    answer = await code_tool(port).call({"code": 'await tools.get_wether({ city: "Oslo" })'})
    assert f"```text\n{answer.text}\n```" in page


async def test_a_long_result_is_read_on(port: Gloveport) -> None:
    tool = code_tool(port)
    first = await tool.call({"code": "'0123456789'.repeat(10_000)"})
    assert len(first.text) < 30_000
    rest = await tool.call({"result_id": first.data["result_id"], "offset": first.data["next_offset"]})
    assert rest.text.startswith("0123456789")


async def test_the_application_receives_the_events_of_a_run(port: Gloveport) -> None:
    heard: list[Event] = []
    await code_tool(port, on_event=heard.append).call({"code": "emit({at: 1}); await tools.add(1, 2)"})
    assert [event.kind for event in heard] == ["emit", "call-started", "call-ended"]


def test_without_an_event_loop_there_is_a_call_that_waits() -> None:
    with Gloveport(spare=0) as opened:
        tool = code_tool(opened)
        assert [tool.call_sync({"code": "1 + 1"}).text, tool.call_sync({"code": "2 + 2"}).text] == ["2", "4"]


@pytest.mark.parametrize(
    ("adapter", "needs", "extra"),
    [
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("langchain", "langchain_core.tools", "langchain"),
        ("openai_agents", "agents", "openai-agents"),
    ],
)
def test_a_framework_that_is_not_installed_is_named_with_the_way_to_get_it(
    adapter: str, needs: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, needs, None)
    module = importlib.import_module(f"gloveport.surfaces.adapters.{adapter}")
    with pytest.raises(OptionError) as caught:
        module.adapt(code_tool(Gloveport()))
    assert "is not installed" in caught.value.message
    assert caught.value.hint == f"pip install 'gloveport[{extra}]'"
