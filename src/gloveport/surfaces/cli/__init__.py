"""The command line `gloveport`, in the order of a command's way through it.

main         the entry point: runs a command, and turns errors into exit codes
commands     all commands with their arguments and help texts; `options` has what several of them share
help         `gloveport help`, and how help pages look
run          `gloveport run`; `arguments` reads its program and options, `run_view` shows the run while it happens,
             `outcome_report` prints its outcome
add, remove  change gloveport.toml
sources      lists the sources and their states
tools        `gloveport tools …`: search, list, describe, call, changes, accept, trust
config       `gloveport config …`: show, trust
connect      adds Gloveport to the configuration of an MCP client
serve        starts the HTTP server (`gloveport mcp` is in surfaces/mcp/stdio.py)
doctor       checks this machine, and tries to break out of the sandbox
engines      `gloveport engines` and `gloveport version`
"""
