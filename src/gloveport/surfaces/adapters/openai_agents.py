"""The code tool for the OpenAI Agents SDK: `Agent(name=…, tools=[openai_agents.adapt(code_tool(port))])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gloveport.surfaces.adapters import not_installed
from gloveport.surfaces.agents.code_tool import CodeTool

if TYPE_CHECKING:
    from agents import FunctionTool


def adapt(tool: CodeTool) -> FunctionTool:
    """Return a function tool of the Agents SDK; the model gets the text."""
    try:
        from agents import FunctionTool
    except ModuleNotFoundError:
        raise not_installed("the OpenAI Agents SDK", "openai-agents") from None

    async def execute(context: Any, arguments: str) -> str:
        return (await tool.call(arguments)).text

    # The schema is not strict as the SDK defines it: `input` may be any JSON.
    return FunctionTool(tool.name, tool.description, tool.input_schema, execute, strict_json_schema=False)
