"""Tools of agent frameworks as functions: of LangChain, pydantic-ai and the OpenAI Agents SDK.

They are recognised by their attributes, so that no framework is imported. Name, description and schema are the framework's
own. A tool that its framework asks a person about is a write here: the rules ask about those.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.errors import OptionError
from gloveport.sources.schemas.normaliser import normalise

AsyncCall = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class FrameworkTool:
    """A tool of a framework: what a `Tool` is made of, and how it is called with the arguments as keywords."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    call: AsyncCall
    output_schema: Mapping[str, Any] | None = None
    asks: bool = False


def framework_tool(given: Any) -> FrameworkTool | None:
    """Return a framework's tool as one of ours; None for anything else. Raise OptionError for one that can't work here."""
    if isinstance(given, type):
        return None
    if hasattr(given, "tool_call_schema") and hasattr(given, "arun"):
        return _from_langchain(given)
    if hasattr(given, "function_schema") and hasattr(given, "tool_def"):
        return _from_pydantic_ai(given)
    if hasattr(given, "params_json_schema") and hasattr(given, "on_invoke_tool"):
        return _from_openai_agents(given)
    return None


def _from_langchain(given: Any) -> FrameworkTool:
    schema = given.tool_call_schema
    schema = dict(schema if isinstance(schema, dict) else schema.model_json_schema())

    async def call(**args: Any) -> Any:
        return await given.arun(args)

    # The schema leaves injected arguments out: closed, so that no program can set them (B2).
    return FrameworkTool(given.name, given.description, _closed(schema), call)


def _from_pydantic_ai(given: Any) -> FrameworkTool:
    if given.takes_ctx:
        hint = "wrap it in a function of your own that has what it takes from the context"
        raise OptionError(f"the tool {given.name} takes a RunContext, which exists only in an agent's run", hint=hint)
    function = given.function_schema

    async def call(**args: Any) -> Any:
        result = await function.call(function.validator.validate_python(args), None)
        return result.return_value if type(result).__name__ == "ToolReturn" else result

    schema, returned = _closed(given.tool_def.parameters_json_schema), getattr(function, "return_schema", None)
    output = normalise(dict(returned)).schema if returned else None
    return FrameworkTool(given.name, given.description or "", schema, call, output, asks=bool(given.requires_approval))


def _from_openai_agents(given: Any) -> FrameworkTool:
    if given.is_enabled is False:
        raise OptionError(f"the tool {given.name} is not enabled")
    if given.tool_input_guardrails or given.tool_output_guardrails:
        hint = "put the check into the function itself, or into a rule"
        raise OptionError(f"the tool {given.name} has guardrails, which only the Agents SDK applies", hint=hint)

    async def call(**args: Any) -> Any:
        from agents.tool_context import ToolContext

        text = json.dumps(args)
        context = ToolContext(None, tool_name=given.name, tool_call_id="gloveport", tool_arguments=text)
        return await given.on_invoke_tool(context, text)

    schema = _closed(given.params_json_schema)
    return FrameworkTool(given.name, given.description, schema, call, asks=given.needs_approval is not False)


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in the normal form; it takes no other arguments, unless it says so."""
    closed = {"type": "object", "properties": {}, "additionalProperties": False} | dict(schema)
    return normalise(closed).schema
