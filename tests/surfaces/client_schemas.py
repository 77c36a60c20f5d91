"""The documented configuration of each client as JSON Schema: strict about servers, open about the rest of the file."""

from typing import Any

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_ARGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_URL: dict[str, Any] = {"type": "string", "pattern": "^https?://"}


def _server(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _file(servers: str, *kinds: dict[str, Any]) -> dict[str, Any]:
    listed = {"type": "object", "additionalProperties": {"oneOf": list(kinds)}}
    return {"type": "object", "properties": {servers: listed}, "required": [servers]}


SCHEMAS: dict[str, dict[str, Any]] = {
    "claude-code": _file(
        "mcpServers",
        _server(["command"], type={"const": "stdio"}, command=_TEXT, args=_ARGS, env=_TEXTS),
        _server(["type", "url"], type={"enum": ["http", "sse"]}, url=_URL, headers=_TEXTS),
    ),
    "cursor": _file(
        "mcpServers",
        _server(["type", "command"], type={"const": "stdio"}, command=_TEXT, args=_ARGS, env=_TEXTS, envFile=_TEXT),
        _server(["url"], url=_URL, headers=_TEXTS, auth={"type": "object"}),
    ),
    "vscode": _file(
        "servers",
        _server(["type", "command"], type={"const": "stdio"}, command=_TEXT, args=_ARGS, env=_TEXTS, envFile=_TEXT, cwd=_TEXT),
        _server(["type", "url"], type={"enum": ["http", "sse"]}, url=_URL, headers=_TEXTS),
    ),
    "codex": _file(
        "mcp_servers",
        _server(["command"], command=_TEXT, args=_ARGS, env=_TEXTS, env_vars=_ARGS, cwd=_TEXT, startup_timeout_sec={"type": "number"}, tool_timeout_sec={"type": "number"}, enabled={"type": "boolean"}, enabled_tools=_ARGS, disabled_tools=_ARGS),
        _server(["url"], url=_URL, bearer_token_env_var={"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}, http_headers=_TEXTS, env_http_headers=_TEXTS, startup_timeout_sec={"type": "number"}, tool_timeout_sec={"type": "number"}, enabled={"type": "boolean"}, enabled_tools=_ARGS, disabled_tools=_ARGS),
    ),
    "gemini": _file(
        "mcpServers",
        _server(["command"], command=_TEXT, args=_ARGS, env=_TEXTS, cwd=_TEXT, timeout={"type": "number"}, trust={"type": "boolean"}, includeTools=_ARGS, excludeTools=_ARGS),
        _server(["httpUrl"], httpUrl=_URL, headers=_TEXTS, timeout={"type": "number"}, trust={"type": "boolean"}, includeTools=_ARGS, excludeTools=_ARGS),
    ),
    "zed": _file(
        "context_servers",
        _server(["command", "args"], command=_TEXT, args=_ARGS, env=_TEXTS, enabled={"type": "boolean"}, remote={"type": "boolean"}, timeout={"type": "number"}),
        _server(["url"], url=_URL, headers=_TEXTS, enabled={"type": "boolean"}, timeout={"type": "number"}),
    ),
}  # fmt: skip
