"""The code tool for pydantic-ai: `Agent(model, tools=[pydantic_ai.adapt(code_tool(port))])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gloveport.surfaces.adapters import not_installed
from gloveport.surfaces.agents.code_tool import CodeTool

if TYPE_CHECKING:
    from pydantic_ai import Tool


def adapt(tool: CodeTool) -> Tool:
    """Return a pydantic-ai tool: the model gets the text; the data is in the return part's `metadata`."""
    try:
        from pydantic_ai import Tool, ToolReturn
    except ModuleNotFoundError:
        raise not_installed("pydantic-ai", "pydantic-ai") from None

    async def execute(**args: Any) -> ToolReturn:
        answer = await tool.call(args)
        return ToolReturn(answer.text, metadata=answer.data)

    return Tool.from_schema(execute, tool.name, tool.description, tool.input_schema)
