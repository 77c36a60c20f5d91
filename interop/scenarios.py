"""What both clients do in every scenario: list everything, and call every tool with these arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
# Scenarios with elicitation, or that check the capabilities of a client that supports it.
ASKING = frozenset({"elicitation-sep1034-client-defaults", "sep-2322-client-request-state", "request-metadata"})
asks = os.environ.get("MCP_CONFORMANCE_SCENARIO") in ASKING

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}, "valid_tool": {"region": "us-west1"}}
ECHO, ECHOED = "json_schema_echo", "json_schema_2020_12_tool"


def arguments(tool: str, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments for a tool: the suite's, ours, or the other ones for the tool that echoes a schema."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    given = {call["name"]: call["arguments"] for call in context.get("toolCalls", [])}
    if tool == ECHO:
        return {"schema": schemas[ECHOED]}
    return dict(given.get(tool) or ARGUMENTS.get(tool, {}))


def filled_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a form: its defaults, and true."""
    fields = schema.get("properties", {}).items()
    defaults = {name: field["default"] for name, field in fields if "default" in field}
    return defaults | {name: True for name, field in fields if field == {"type": "boolean", "description": "Confirm?"}}
