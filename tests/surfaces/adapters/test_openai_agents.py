"""OpenAI Agents: a scripted model calls the code tool through a whole agent loop, in the real sandbox."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.items import ToolCallOutputItem
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from gloveport import Gloveport, code_tool
from gloveport.surfaces.adapters import openai_agents

pytestmark = pytest.mark.integration


class Scripted(Model):
    """A model with a list of answers: arguments for the tool, then a final text."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = list(arguments)
        self.offered: list[Any] = []

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **options: Any
    ) -> ModelResponse:
        self.offered = tools
        if self._arguments:
            number = len(self._arguments)
            call = ResponseFunctionToolCall(
                arguments=self._arguments.pop(0), call_id=f"call-{number}", name="execute", type="function_call"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(text="It is 42.", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        pytest.fail("nothing here streams")


async def test_the_model_writes_a_program_learns_from_its_failures_and_ends(port: Gloveport) -> None:
    programs = ("return await tools.ad({a: input, b: 2})", "return await tools.add({a: input, b: 2})")
    model = Scripted("{broken", *(json.dumps({"code": code, "input": 40}) for code in programs))
    tool = code_tool(port)
    agent = Agent(name="adder", model=model, tools=[openai_agents.adapt(tool)])
    result = await Runner.run(agent, "What is 40 + 2?", run_config=RunConfig(tracing_disabled=True))
    assert result.final_output == "It is 42."
    answers = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert "not a JSON object" in answers[0]
    assert "did you mean `tools.add`?" in answers[1]
    assert answers[2] == "42"
    assert (model.offered[0].name, model.offered[0].description) == ("execute", tool.description)
    assert model.offered[0].params_json_schema == tool.input_schema
