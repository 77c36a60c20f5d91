"""The code tool for LangChain and LangGraph: `create_agent(model, tools=[langchain.adapt(code_tool(port))])`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gloveport.surfaces.adapters import missing
from gloveport.surfaces.agents.code_tool import CodeTool
from gloveport.surfaces.agents.tools import AgentAnswer

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool


def adapt(tool: CodeTool) -> StructuredTool:
    """A LangChain tool: the model gets the text; the data is the message's `artifact`; a failure has status `error`."""
    try:
        from langchain_core.tools import StructuredTool, ToolException
    except ModuleNotFoundError:
        raise missing("LangChain", "langchain") from None

    def told(answer: AgentAnswer) -> tuple[str, Mapping[str, Any]]:
        if answer.failed:
            raise ToolException(answer.text)
        return answer.text, answer.data

    async def execute(**args: Any) -> tuple[str, Mapping[str, Any]]:
        return told(await tool.call(args))

    def execute_sync(**args: Any) -> tuple[str, Mapping[str, Any]]:
        return told(tool.call_sync(args))

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
