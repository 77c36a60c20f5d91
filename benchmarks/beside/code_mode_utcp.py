"""UTCP's `code-mode` with the tools of shop.py in the same process: its cheapest kind of call."""

from collections.abc import AsyncGenerator
from typing import Any

import shop  # pyright: ignore[reportMissingImports]
from utcp.data.call_template import CallTemplate, CallTemplateSerializer  # pyright: ignore[reportMissingImports]
from utcp.data.register_manual_response import RegisterManualResult  # pyright: ignore[reportMissingImports]
from utcp.data.tool import JsonSchema, Tool  # pyright: ignore[reportMissingImports]
from utcp.data.utcp_manual import UtcpManual  # pyright: ignore[reportMissingImports]
from utcp.interfaces.communication_protocol import CommunicationProtocol  # pyright: ignore[reportMissingImports]
from utcp.interfaces.serializer import Serializer  # pyright: ignore[reportMissingImports]
from utcp_code_mode import CodeModeUtcpClient  # pyright: ignore[reportMissingImports]

TEMPLATE = CallTemplate(name="shop", call_template_type="here")


class Here(CommunicationProtocol):
    """Calls functions of this process."""

    async def register_manual(self, caller: Any, manual_call_template: Any) -> RegisterManualResult:
        schema = JsonSchema(type="object")
        tools = [
            Tool(name=name, description=name, inputs=schema, outputs=schema, tool_call_template=TEMPLATE)
            for name in ("add", "double", "label")
        ]
        return RegisterManualResult(manual_call_template=manual_call_template, manual=UtcpManual(tools=tools), success=True)

    async def deregister_manual(self, caller: Any, manual_call_template: Any) -> None: ...

    async def call_tool(self, caller: Any, tool_name: str, tool_args: Any, tool_call_template: Any) -> Any:
        return await getattr(shop, tool_name.rpartition(".")[2])(**tool_args)

    async def call_tool_streaming(self, *given: Any) -> AsyncGenerator[Any, None]:
        yield await self.call_tool(*given)


class Plain(Serializer[CallTemplate]):
    """Return the template unchanged."""

    def to_dict(self, obj: Any) -> Any:
        return obj.model_dump()

    def validate_dict(self, obj: Any) -> Any:
        return CallTemplate.model_validate(obj)


class UtcpCodeMode:
    """One client with a new context per program."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._seconds = options["seconds"]

    async def start(self) -> None:
        """Register the tools."""
        self._client = await CodeModeUtcpClient.create()
        CallTemplateSerializer.call_template_serializers["here"] = Plain()
        CommunicationProtocol.communication_protocols["here"] = Here()
        await self._client.register_manual(TEMPLATE)

    async def run(self, code: str) -> Any:
        """Run the program and return its value. Errors are a line of its log."""
        answer = await self._client.call_tool_chain(code, timeout=self._seconds)
        errors = [line for line in answer["logs"] if line.startswith("[ERROR]")]
        if errors:
            raise RuntimeError(errors[0])
        return answer["result"]

    async def close(self) -> None:
        """Do nothing."""


make = UtcpCodeMode
