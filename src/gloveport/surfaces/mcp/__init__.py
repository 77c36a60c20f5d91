"""The MCP server: one port's `search`, `describe` and `execute` for any MCP client.

`server` implements the protocol's requests · `stdio` serves it on standard input and output, for `gloveport mcp` ·
`content` turns answers into MCP content · `progress` sends progress and log notifications while a run goes on. Over HTTP it
is served by `surfaces/http/`.
"""
