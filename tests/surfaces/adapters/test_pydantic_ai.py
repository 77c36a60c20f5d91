"""pydantic-ai: its own scripted model calls the code tool through a whole agent loop, in the real sandbox."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from gloveport import Gloveport, code_tool
from gloveport.surfaces.adapters import pydantic_ai

pytestmark = pytest.mark.integration


def returned(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


async def test_the_model_writes_a_program_learns_from_its_failure_and_ends(port: Gloveport) -> None:
    programs = ["return await tools.ad({a: input, b: 2})", "return await tools.add({a: input, b: 2})"]
    offered = []

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.append(info.function_tools[0])
        answers = returned(messages)
        if len(answers) < len(programs):
            return ModelResponse(parts=[ToolCallPart("execute", {"code": programs[len(answers)], "input": 40})])
        return ModelResponse(parts=[TextPart(f"It is {answers[-1].content}.")])

    tool = code_tool(port)
    result = await Agent(FunctionModel(script), tools=[pydantic_ai.adapt(tool)]).run("What is 40 + 2?")
    assert result.output == "It is 42."
    first, second = returned(result.all_messages())
    assert "did you mean `tools.add`?" in first.content
    assert second.content == "42"
    assert second.metadata["value"] == 42
    assert (offered[0].name, offered[0].description) == ("execute", tool.description)
    assert offered[0].parameters_json_schema == tool.input_schema


async def test_its_test_model_can_call_the_tool_by_the_schema_alone(port: Gloveport) -> None:
    agent = Agent(TestModel(), tools=[pydantic_ai.adapt(code_tool(port))])
    result = await agent.run("Go.")
    assert len(returned(result.all_messages())) == 1
