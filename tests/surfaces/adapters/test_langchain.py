"""LangChain: its own scripted chat model calls the code tool through a whole agent loop, in the real sandbox."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from gloveport import Gloveport, code_tool
from gloveport.surfaces.adapters import langchain

pytestmark = pytest.mark.integration


class Scripted(FakeMessagesListChatModel):
    """The framework's model with a list of answers; it accepts tools, as real models do."""

    offered: list[dict[str, Any]] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[BaseTool], **_: Any) -> Any:
        self.offered.extend(convert_to_openai_tool(tool)["function"] for tool in tools)
        return self


def calls(code: str, name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "execute", "args": {"code": code, "input": 40}, "id": name}])


def script() -> Scripted:
    wrong, right = "return await tools.ad({a: input, b: 2})", "return await tools.add({a: input, b: 2})"
    return Scripted(responses=[calls(wrong, "1"), calls(right, "2"), AIMessage("It is 42.")])


def check(messages: list[Any]) -> None:
    first, second = (message for message in messages if isinstance(message, ToolMessage))
    assert first.status == "error"
    assert "did you mean `tools.add`?" in first.content
    assert (first.artifact["status"], first.artifact["error"]["code"]) == ("failed", "unknown-tool")
    assert (second.status, second.content) == ("success", "42")
    assert second.artifact["value"] == 42
    assert messages[-1].content == "It is 42."


async def test_the_model_writes_a_program_learns_from_its_failure_and_ends(port: Gloveport) -> None:
    model, tool = script(), code_tool(port)
    agent = create_agent(model, tools=[langchain.adapt(tool)])
    result = await agent.ainvoke({"messages": [("user", "What is 40 + 2?")]})
    check(result["messages"])
    assert (model.offered[0]["name"], model.offered[0]["description"]) == ("execute", tool.description)
    assert model.offered[0]["parameters"]["properties"].keys() == tool.input_schema["properties"].keys()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_the_same_loop_works_without_an_event_loop() -> None:
    with Gloveport(tools=[add], spare=0) as port:
        agent = create_agent(script(), tools=[langchain.adapt(code_tool(port))])
        check(agent.invoke({"messages": [("user", "What is 40 + 2?")]})["messages"])
