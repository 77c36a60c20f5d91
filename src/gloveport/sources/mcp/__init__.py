"""MCP servers as sources: over stdio and streamable HTTP, protocol 2026-07-28 and 2025-11-25.

opening             settings → an open source
stdio, http         the two connections to a server; `connection` is what they have in common
line_splitter       bounded lines from a byte stream, also for our own server on stdio
session             one live session, owned by one task; `dispatcher` is its JSON-RPC layer
compile/            the server's list of tools → tools of ours (pure)
pagination          the pages of any list of the server
source              calls, restarts (`restart_backoff`), changes of the tool list
server_features     resources and prompts, as tools
results             a tool result → the value that a program gets
elicitation         progress, and questions to a person, during a call
"""
