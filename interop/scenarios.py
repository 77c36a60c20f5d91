"""What both clients do in every scenario of the client suite: list everything, call everything, with these arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
# Scenarios in which the server asks a person, or looks at what a client that has one declares.
ASKING = frozenset({"elicitation-sep1034-client-defaults", "sep-2322-client-request-state", "request-metadata"})
asks = os.environ.get("MCP_CONFORMANCE_SCENARIO") in ASKING

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}, "valid_tool": {"region": "us-west1"}}
ECHO, ECHOED = "json_schema_echo", "json_schema_2020_12_tool"


def arguments(tool: str, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The arguments for a tool: the suite's, ours, or for the tool that echoes a schema, the other one's."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    given = {call["name"]: call["arguments"] for call in context.get("toolCalls", [])}
    if tool == ECHO:
        return {"schema": schemas[ECHOED]}
    return dict(given.get(tool) or ARGUMENTS.get(tool, {}))


def filled_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a person answers who sends a form as it is shown: its defaults, and yes."""
    fields = schema.get("properties", {}).items()
    defaults = {name: field["default"] for name, field in fields if "default" in field}
    return defaults | {name: True for name, field in fields if field == {"type": "boolean", "description": "Confirm?"}}
