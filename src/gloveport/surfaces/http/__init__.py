"""The HTTP server: MCP at `/mcp` and the API at `/v1` behind a guard, and health checks.

`server` runs the application · `guard` checks each request before anything parses it · `token` makes, reads and compares
bearer tokens · `revocation` ends what a removed token had opened · `admission` limits runs and the memory of requests ·
`connections` closes silent connections.

The default address is defined here, without imports, because the command line needs it for `--help`.
"""

from __future__ import annotations

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8484
AGENT_SCOPE_KEY = "gloveport.agent"
"""Where the guard notes, in the scope of a request, the agent whose token it has."""
CALLER_SCOPE_KEY = "gloveport.caller"
"""Where the guard notes the caller whose token a request has."""
MCP_PATH = "/mcp"
API_PATH = "/v1"
METRICS_PATH = "/metrics"
HOST_PATH = "/v1/host"
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}{MCP_PATH}"
