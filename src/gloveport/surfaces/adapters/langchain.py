"""The code tool for LangChain and LangGraph: `create_agent(model, tools=[langchain.adapt(code_tool(port))])`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gloveport.surfaces.adapters import not_installed
from gloveport.surfaces.agents.code_tool import CodeTool
from gloveport.surfaces.agents.tools import AgentAnswer

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool


def adapt(tool: CodeTool) -> StructuredTool:
    """Return a LangChain tool: the model gets the text, `artifact` is the data, and a failure has the status `error`."""
    try:
        from langchain_core.tools import StructuredTool, ToolException
    except ModuleNotFoundError:
        raise not_installed("LangChain", "langchain") from None

    def to_result(answer: AgentAnswer) -> tuple[str, Mapping[str, Any]]:
        if answer.failed:
            raise ToolException(answer.text)
        return answer.text, answer.data

    async def execute(**args: Any) -> tuple[str, Mapping[str, Any]]:
        return to_result(await tool.call(args))

    def execute_sync(**args: Any) -> tuple[str, Mapping[str, Any]]:
        return to_result(tool.call_sync(args))

    return StructuredTool.from_function(
        execute_sync,
        execute,
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
