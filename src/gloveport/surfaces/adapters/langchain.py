"""The code tool for LangChain and LangGraph: `create_agent(model, tools=[langchain.adapt(code_tool(port))])`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gloveport.surfaces.adapters import not_installed
from gloveport.surfaces.agents.code_tool import CodeTool

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool


def adapt(tool: CodeTool) -> StructuredTool:
    """Return a LangChain tool: the model gets the text, `artifact` is the data, and a failure has the status `error`."""
    try:
        from langchain_core.messages import ToolMessage
        from langchain_core.tools import StructuredTool
    except ModuleNotFoundError:
        raise not_installed("LangChain", "langchain") from None

    def marked(message: Any) -> Any:
        if isinstance(message, ToolMessage) and message.artifact["status"] == "failed":
            message.status = "error"
        return message

    class ExecuteTool(StructuredTool):
        """Gives a failed program the status `error`. LangChain's own way, an exception, would lose the artifact."""

        def run(self, *args: Any, **options: Any) -> Any:
            return marked(super().run(*args, **options))

        async def arun(self, *args: Any, **options: Any) -> Any:
            return marked(await super().arun(*args, **options))

    async def execute(**args: Any) -> tuple[str, Mapping[str, Any]]:
        answer = await tool.call(args)
        return answer.text, answer.data

    def execute_sync(**args: Any) -> tuple[str, Mapping[str, Any]]:
        answer = tool.call_sync(args)
        return answer.text, answer.data

    return ExecuteTool.from_function(
        execute_sync,
        execute,
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        infer_schema=False,
        response_format="content_and_artifact",
    )
