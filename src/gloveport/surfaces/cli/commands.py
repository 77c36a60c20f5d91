"""All commands but those of groups: their arguments and help texts. A command imports what it needs when it runs."""

from __future__ import annotations

import sys
from typing import Any

import click

import gloveport
from gloveport.surfaces.cli.agents.group import agents
from gloveport.surfaces.cli.approvals.group import approvals
from gloveport.surfaces.cli.audit.group import audit
from gloveport.surfaces.cli.auth.group import auth
from gloveport.surfaces.cli.groups import config, tools
from gloveport.surfaces.cli.help import PageCommand, PageGroup, RareOption, help_command, page_of
from gloveport.surfaces.cli.options import (
    COLOR,
    CONFIG,
    DIRECT,
    JSON,
    NO_INPUT,
    PAGER,
    PRIVATE,
    SOURCES,
    TRUST_ANNOTATIONS,
    WRITES,
    YES,
    OneOf,
    complete_files,
    complete_sources,
    minimum_option,
    page_options,
    view_options,
)
from gloveport.surfaces.cli.packages.group import packages
from gloveport.surfaces.cli.policy.group import policy
from gloveport.surfaces.cli.runs.group import runs
from gloveport.surfaces.cli.sessions.group import sessions
from gloveport.surfaces.cli.snippets.group import snippets
from gloveport.surfaces.cli.store.group import store
from gloveport.surfaces.http import DEFAULT_HOST, DEFAULT_PORT


class _AllCommands(PageGroup):
    """The commands of Gloveport, and behind them those of plugins, which are looked for when a name is none of ours."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name.isidentifier():
            from gloveport.surfaces.cli.plugins import plugin_command

            return plugin_command(cmd_name)
        return found


@click.group(
    cls=_AllCommands,
    help="Run programs written by AI agents in a sealed sandbox; their tool calls come out through one port.",
)
@click.version_option(gloveport.__version__, message="gloveport %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Show the front page when no command is given: in a terminal, with what is configured here."""
    if ctx.invoked_subcommand is None and sys.stdout is not None and sys.stdout.isatty():
        from gloveport.surfaces.cli.start.front_page import show_front_page

        show_front_page()
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command(
    cls=PageCommand,
    help="Run a program. Its result goes to stdout, everything else to stderr.",
    examples=("gloveport run -e '[1, 2, 3].map((n) => n * n)'",),
)
@click.argument("file", required=False, metavar="[FILE|-]", shell_complete=complete_files)
@click.option("-e", "--code", metavar="CODE", help="Run this text.")
@click.option("--language", metavar="NAME", help="typescript, javascript or python; by default from the file's name.")
@click.option("--engine", metavar="NAME", help="deno, quickjs, cpython, monty or auto; by default the language's own.")
@click.option("--tools", multiple=True, metavar="MODULE", help="Offer the functions of a module or .py file; repeatable.")
@click.option("--input", "input_", metavar="JSON", help="The program's variable `input`: JSON, or @file.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set a variable of `process.env`; repeatable.")
@click.option("--id", cls=RareOption, metavar="ID", help="its id")
@click.option("--session", metavar="NAME", help="Keep /workspace and `state` between the runs of this session.")
@click.option("--timeout", metavar="SECONDS", help="End the run after this time (60).")
@click.option("--cpu", cls=RareOption, metavar="SECONDS", help="its CPU seconds (30)")
@click.option("--memory", metavar="MB", help="Memory that the program may use (256).")
@CONFIG
@minimum_option(default=None)
@click.option("--allow-eval", cls=RareOption, is_flag=True, help="eval")
@click.option("--allow-wasm", cls=RareOption, is_flag=True, help="WebAssembly")
@click.option("--plan", is_flag=True, help="Hold writes back, list them, and ask whether to make exactly those.")
@NO_INPUT
@JSON
@click.option("--fields", metavar="NAMES", help="Print only these fields of the JSON: --fields status,value.")
@click.option("--quiet", is_flag=True, help="Hide logs, calls and warnings.")
@COLOR
def run(input_: str | None, **options: Any) -> int:
    """Run a program."""
    from gloveport.sandbox.server_process import start_early

    start_early(2)  # one for the process that reads the program, and one for the sandbox
    from gloveport.surfaces.cli.run.command import RunOptions, run_command

    return run_command(RunOptions(input=input_, **options))


@cli.command(
    cls=PageCommand,
    help="Write a gloveport.toml with comments into this folder; an existing one is left alone.",
    examples=("gloveport init --example", "gloveport init"),
)
@click.option("--example", is_flag=True, help="Add a source to try: shop.py, which the examples of all commands use.")
@YES
@JSON
@COLOR
def init(**options: Any) -> int:
    """Write a settings file."""
    from gloveport.surfaces.cli.start.init import init_command

    return init_command(**options)


@cli.command(
    cls=PageCommand,
    help="Add a source: shows its tools, asks, and writes it into gloveport.toml.",
    examples=(
        "gloveport add https://api.example.com/openapi.json",
        "gloveport add schema.graphql --name shop --base-url https://shop.example.com/graphql",
        "gloveport add -- npx -y @modelcontextprotocol/server-memory",
    ),
)
@click.argument("what", nargs=-1, required=True, metavar="URL|FILE|COMMAND…", shell_complete=complete_files)
@click.option("--name", metavar="NAME", help="The source's name: programs call tools.NAME.")
@click.option(
    "--kind",
    metavar="KIND",
    help="openapi, graphql, mcp, functions, or a plugin's; detected by default.",
)
@click.option("--base-url", metavar="URL", help="Send calls here instead of where the definition says.")
@click.option("--private", is_flag=True, help="Let the source reach loopback and private addresses.")
@WRITES
@TRUST_ANNOTATIONS
@click.option(
    "--scope",
    type=OneOf(["project", "user"]),
    default="project",
    metavar="SCOPE",
    help="Write the project's file (the default) or the user's own.",
)
@YES
@JSON
@COLOR
def add(**options: Any) -> int:
    """Add a source."""
    from gloveport.surfaces.cli.add import AddOptions, add_command

    return add_command(AddOptions(**options))


@cli.command(
    cls=PageCommand,
    help="Remove a source: shows the change to gloveport.toml, asks, and writes it.",
    rare=True,
    examples=("gloveport remove shop", "gloveport remove shop --scope project --yes"),
)
@click.argument("name", metavar="NAME", shell_complete=complete_sources)
@click.option(
    "--scope",
    type=OneOf(["project", "user"]),
    metavar="SCOPE",
    help="Change the project's file or the user's own; by default the one with the source.",
)
@YES
@JSON
@COLOR
def remove(**options: Any) -> int:
    """Remove a source."""
    from gloveport.surfaces.cli.remove import RemoveOptions, remove_command

    return remove_command(RemoveOptions(**options))


@cli.command(
    cls=PageCommand,
    help="List the configured sources, the state of each and the number of its tools.",
    examples=("gloveport sources", "gloveport sources --json"),
)
@view_options
def sources(**view: Any) -> int:
    """List the sources."""
    from gloveport.surfaces.cli.sources import sources_command
    from gloveport.surfaces.cli.view import ViewOptions

    return sources_command(ViewOptions(**view))


cli.add_command(tools)
cli.add_command(config)
cli.add_command(policy)
cli.add_command(approvals)
cli.add_command(auth)
cli.add_command(agents)
cli.add_command(store)
cli.add_command(packages)
cli.add_command(audit)
cli.add_command(runs)
cli.add_command(snippets)
cli.add_command(sessions)


@cli.command(
    cls=PageCommand,
    help="Connect an agent to Gloveport: adds it to the client's configuration file.",
    examples=(
        "gloveport connect claude-code",
        "gloveport connect cursor --scope project",
        "gloveport connect codex --http --print",
    ),
)
@click.argument(
    "client",
    type=OneOf(["claude-code", "cursor", "vscode", "codex", "gemini", "zed"], "client"),
    metavar="claude-code|cursor|vscode|codex|gemini|zed",
)
@SOURCES
@click.option(
    "--scope",
    type=OneOf(["user", "project"]),
    default="user",
    metavar="SCOPE",
    help="Write the user's own file (the default) or the one of the project in this folder.",
)
@click.option("--http", is_flag=True, help="Use a running `gloveport serve` instead of starting a server.")
@click.option("--url", metavar="URL", help="Use the running server at this address.")
@click.option("--env", multiple=True, metavar="NAME", help="Pass this environment variable on, too; repeatable.")
@click.option("--print", "only_print", is_flag=True, help="Print the configuration and write nothing.")
@click.option("--yes", is_flag=True, help="Replace an existing entry without asking.")
@JSON
@COLOR
def connect(**options: Any) -> int:
    """Connect a client."""
    from gloveport.surfaces.cli.connect.command import ConnectOptions, connect_command

    return connect_command(ConnectOptions(**options))


@cli.command(
    cls=PageCommand,
    help="Serve over HTTP: MCP at /mcp for clients that have the token, and pages for you.",
    examples=("gloveport serve https://api.example.com/openapi.json other_tools.py",),
)
@SOURCES
@click.option("--host", default=DEFAULT_HOST, metavar="ADDRESS", help=f"Listen on this address ({DEFAULT_HOST}).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    metavar="N",
    help=f"The port ({DEFAULT_PORT}); 0 for any.",
)
@click.option("--token-file", metavar="FILE", help="Read the token from this file instead of creating one.")
@click.option(
    "--role",
    type=OneOf(["agent", "host"]),
    default="agent",
    metavar="ROLE",
    help="What the token allows: agent (the default), or host: also to bring tools.",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Accept this name in the Host header; repeatable.")
@click.option("--at-once", type=click.IntRange(1, 10_000), metavar="N", help="Run at most N programs at the same time.")
@click.option("--waiting", type=click.IntRange(0, 10_000), metavar="N", help="Let at most N wait; others get status 429.")
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=30,
    metavar="SECONDS",
    help="Let running programs finish for this long when it stops (30).",
)
@click.option("--until-eof", cls=RareOption, is_flag=True, help="stop when input ends")
@click.option("--examples", is_flag=True, hidden=True)  # for `make run`: its help would not fit one screen
@PRIVATE
@WRITES
@TRUST_ANNOTATIONS
@DIRECT
@CONFIG
@minimum_option(default=None)
@click.option("--quiet", is_flag=True, help="Print no line for each run and call.")
@click.option(
    "--log-format",
    type=OneOf(["text", "json"]),
    default="text",
    metavar="FORMAT",
    help="Print the lines for runs and calls as text (the default) or json.",
)
@JSON
@COLOR
def serve(**options: Any) -> int:
    """Serve over HTTP."""
    from gloveport.surfaces.cli.serve import ServeOptions, serve_command
    from gloveport.surfaces.mcp.stdio import SERVED_OPTIONS, ServedSources

    what = ServedSources(**{name: options.pop(name) for name in SERVED_OPTIONS})
    return serve_command(ServeOptions(what, **options))


@cli.command(
    "open",
    cls=PageCommand,
    help="Open the pages of a running `gloveport serve` in the browser, signed in by a link that works once.",
    rare=True,
    examples=("gloveport open", "gloveport open --role approver"),
)
@click.option(
    "--role",
    type=OneOf(["admin", "approver", "agent"]),
    default="admin",
    metavar="ROLE",
    help="Sign in as admin (the default), approver or agent.",
)
@click.option("--agent", default="default", metavar="NAME", help="With --role agent: which one.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="The server at this port, where several run.")
@click.option("--print", "only_print", is_flag=True, help="Print the link and open no browser.")
@JSON
@COLOR
def open_(**options: Any) -> int:
    """Open the pages."""
    from gloveport.surfaces.cli.open import OpenOptions, open_command

    return open_command(OpenOptions(**options))


@cli.command(
    cls=PageCommand,
    help="Serve search, describe and execute to an MCP client, on standard input and output.",
    examples=("gloveport mcp", "gloveport mcp https://api.example.com/openapi.json other_tools.py"),
)
@SOURCES
@PRIVATE
@WRITES
@TRUST_ANNOTATIONS
@DIRECT
@CONFIG
@minimum_option(default=None)
@click.option("--agent", default="default", metavar="NAME", help="Serve the agent of [agents.NAME]: its tools and rules.")
def mcp(**options: Any) -> int:
    """Serve MCP on standard input and output."""
    from gloveport.surfaces.mcp.stdio import ServedSources, mcp_command

    return mcp_command(ServedSources(**options))


@cli.command(
    cls=PageCommand,
    help="Check this machine, and try to break out of the sandbox from inside.",
    examples=("gloveport doctor", "gloveport doctor --json", "gloveport doctor --minimum full"),
)
@minimum_option(default="kernel")
@JSON
@COLOR
def doctor(minimum: Any, as_json: bool, color: str) -> int:
    """Check this machine."""
    from gloveport.surfaces.cli.start.doctor import doctor_command

    return doctor_command(minimum, as_json=as_json, color=color)


@cli.command(
    cls=PageCommand,
    help="List the engines that run programs, and what each can do.",
    rare=True,
    examples=("gloveport engines", "gloveport engines --json"),
)
@view_options
def engines(**view: Any) -> int:
    """List the engines."""
    from gloveport.surfaces.cli.engines import ViewOptions, engines_command

    return engines_command(ViewOptions(**view))


@cli.command(
    cls=PageCommand,
    help="List the plugins: which are on, with their hooks, and which are not, and why.",
    rare=True,
    examples=("gloveport plugins", "gloveport plugins --json"),
)
@page_options
def plugins(**view: Any) -> int:
    """List the plugins."""
    from gloveport.surfaces.cli.plugins import ViewOptions, plugins_command

    return plugins_command(ViewOptions(**view))


@cli.command(
    cls=PageCommand,
    help="Print the version of Gloveport and of what it uses.",
    rare=True,
    examples=("gloveport version", "gloveport version --json"),
)
@JSON
def version(as_json: bool) -> int:
    """Print the version."""
    from gloveport.surfaces.cli.engines import version_command

    return version_command(as_json=as_json)


@cli.command(
    cls=PageCommand,
    help="Print the script with which your shell completes commands, options, sources and tools.",
    rare=True,
    examples=("gloveport completion bash >> ~/.bashrc", "gloveport completion fish | source"),
)
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"], "shell"), metavar="bash|zsh|fish")
def completion(shell: str) -> int:
    """Print a completion script."""
    from gloveport.surfaces.cli.start.completion import completion_command

    return completion_command(shell, cli)


@cli.command(
    "help",
    cls=PageCommand,
    help="Explain a command, the exit codes, the error codes or one error code.",
    rare=True,
    examples=("gloveport help run", "gloveport help exit-codes", "gloveport help codes", "gloveport help time-limit"),
)
@click.argument("topic", nargs=-1, metavar="[TOPIC]")
@JSON
@PAGER
@click.pass_context
def help_(ctx: click.Context, topic: tuple[str, ...], as_json: bool, pages: bool) -> int:
    """Explain a topic."""
    page, name = page_of(ctx.parent, topic), " ".join(topic) or None
    return help_command(page, name, cli.list_commands(ctx), as_json=as_json, pages=pages)
