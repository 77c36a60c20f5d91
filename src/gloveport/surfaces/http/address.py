"""Where `gloveport serve` is found when nobody says otherwise. It imports nothing: the command line reads it at once."""

from __future__ import annotations

HOST = "127.0.0.1"
PORT = 8484
MCP = "/mcp"
SERVED = f"http://{HOST}:{PORT}{MCP}"
