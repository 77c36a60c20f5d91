"""Ways in: everything that starts runs and shows them.

`cli/` is the command line · `mcp/` and `http/` are the servers · `agents/` implements the tools that models call, and
`adapters/` fits them to agent frameworks · `documents` writes outcomes and errors as JSON · `terminal` writes to terminals.
"""
