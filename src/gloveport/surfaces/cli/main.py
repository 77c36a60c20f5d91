"""The command line. Importing this costs click and nothing else: what a command needs is imported when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import gloveport
from gloveport.surfaces.cli.help import WIDTH, Front, OneOf, Page
from gloveport.surfaces.http import DEFAULT_HOST, DEFAULT_PORT

if TYPE_CHECKING:
    from gloveport.errors import GloveportError

JSON = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")
COLOR = click.option(
    "--color",
    type=OneOf(["auto", "always", "never"]),
    default="auto",
    metavar="WHEN",
    help="Colour: auto (on a terminal), always or never.",
)
CONFIG = click.option("--config", metavar="FILE", help="Read this gloveport.toml, not the nearest one.")
YES = click.option("--yes", is_flag=True, help="Don't ask.")
MINIMUM = click.option(
    "--minimum",
    type=OneOf(["full", "kernel", "none"]),
    default="kernel",
    metavar="STRENGTH",
    help="Refuse a weaker sandbox than full, kernel (the default) or none.",
)
LEAST = click.option(  # where the settings may say it too
    "--minimum",
    type=OneOf(["full", "kernel", "none"]),
    metavar="STRENGTH",
    help="Refuse a weaker sandbox than full, kernel (the default) or none.",
)
SOURCES = click.argument("sources", nargs=-1, metavar="[URL|FILE|COMMAND]…")
PRIVATE = click.option("--private", is_flag=True, help="Let the sources named here reach loopback and private addresses.")


@click.group(
    "tools",
    cls=Front,
    help="See and call what the configured sources offer.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
    invoke_without_command=True,
)
@click.pass_context
def tools(ctx: click.Context) -> None:
    """Show the page of the group when there is no command."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@tools.command("search", cls=Page, help="Find tools by what they do.", examples=("gloveport tools search create issue",))
@click.argument("query", nargs=-1, required=True, metavar="WORDS…")
@click.option("--source", metavar="NAME", help="Only of this source.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="At most this many (10).")
@CONFIG
@JSON
@COLOR
def tools_search(query: tuple[str, ...], source: str | None, limit: int, **view: Any) -> int:
    """Find tools."""
    from gloveport.surfaces.cli.tools import View, search_command

    return search_command(View(**view), " ".join(query), source, limit)


@tools.command("list", cls=Page, help="List all tools, or those of a source.", examples=("gloveport tools list github",))
@click.argument("source", required=False, metavar="[SOURCE]")
@CONFIG
@JSON
@COLOR
def tools_list(source: str | None, **view: Any) -> int:
    """List tools."""
    from gloveport.surfaces.cli.tools import View, list_command

    return list_command(View(**view), source)


@tools.command(
    "describe", cls=Page, help="Show how a tool is called.", examples=("gloveport tools describe github.issues.create",)
)
@click.argument("path", metavar="TOOL")
@CONFIG
@JSON
@COLOR
def tools_describe(path: str, **view: Any) -> int:
    """Show a tool."""
    from gloveport.surfaces.cli.tools import View, describe_command

    return describe_command(View(**view), path)


@tools.command(
    "call",
    cls=Page,
    help="Call one tool and print its answer.",
    examples=("""gloveport tools call github.issues.get '{"owner": "a", "repo": "b", "issue_number": 1}'""",),
)
@click.argument("path", metavar="TOOL")
@click.argument("args", required=False, metavar="[JSON]")
@CONFIG
@JSON
@COLOR
def tools_call(path: str, args: str | None, **view: Any) -> int:
    """Call a tool."""
    from gloveport.surfaces.cli.tools import View, call_command

    return call_command(View(**view), path, args)


@tools.command(
    "changes", cls=Page, help="Show what has changed since it was accepted.", examples=("gloveport tools changes github",)
)
@click.argument("source", required=False, metavar="[SOURCE]")
@CONFIG
@JSON
@COLOR
def tools_changes(source: str | None, **view: Any) -> int:
    """Show changes."""
    from gloveport.surfaces.cli.tools import View, changes_command

    return changes_command(View(**view), source)


@tools.command(
    "accept",
    cls=Page,
    help="Accept a source's definition as it is now: shows what has changed, and asks.",
    examples=("gloveport tools accept github",),
)
@click.argument("source", metavar="SOURCE")
@YES
@CONFIG
@JSON
@COLOR
def tools_accept(source: str, yes: bool, **view: Any) -> int:
    """Accept changes."""
    from gloveport.surfaces.cli.tools import View, accept_command

    return accept_command(View(**view), source, yes=yes)


@tools.command(
    "approve", cls=Page, help="Let a source of a project's file be opened.", examples=("gloveport tools approve memory",)
)
@click.argument("source", metavar="SOURCE")
@YES
@CONFIG
@JSON
@COLOR
def tools_approve(source: str, yes: bool, **view: Any) -> int:
    """Approve a source."""
    from gloveport.surfaces.cli.tools import View, approve_command

    return approve_command(View(**view), source, yes=yes)


@click.group(
    cls=Front,
    help="Run programs that AI agents wrote in a sealed sandbox; their tool calls come out through one port.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
    invoke_without_command=True,
)
@click.version_option(gloveport.__version__, message="gloveport %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Show the front page when there is no command."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command(
    cls=Page,
    help="Run a program; its result goes to stdout, everything else to stderr.",
    examples=(
        "gloveport run script.ts --tools tools.py",
        "gloveport run -e 'await tools.get_weather({city: \"Oslo\"})' --tools tools.py",
    ),
)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("-e", "--code", metavar="CODE", help="The program itself.")
@click.option("--language", metavar="NAME", help="typescript, javascript or python; else by the file's name.")
@click.option("--engine", metavar="NAME", help="deno, quickjs, cpython or monty; else the one for the language here.")
@click.option("--tools", multiple=True, metavar="MODULE", help="Offer the functions of a module or a .py file; repeatable.")
@click.option("--input", "input_", metavar="JSON", help="What the program finds as `input`: JSON, or @file.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for `process.env`; repeatable.")
@click.option("--timeout", metavar="SECONDS", help="How long the run may take (60).")
@click.option("--cpu", metavar="SECONDS", help="How long the program may compute (30).")
@click.option("--memory", metavar="MB", help="How much memory the program may use (256).")
@CONFIG
@LEAST
@click.option("--allow-eval", is_flag=True, help="Let the program use eval and new Function.")
@click.option("--allow-wasm", is_flag=True, help="Let the program use WebAssembly.")
@JSON
@click.option("--fields", metavar="NAMES", help="Print only these fields of the JSON: --fields status,value.")
@click.option("--quiet", is_flag=True, help="Show no logs, calls and warnings.")
@COLOR
def run(input_: str | None, **options: Any) -> int:
    """Run a program."""
    from gloveport.surfaces.cli.run import Options, run_command

    return run_command(Options(input=input_, **options))


@cli.command(
    cls=Page,
    help="Add a source: shows what it would bring, asks, and writes it into gloveport.toml.",
    examples=(
        "gloveport add https://api.example.com/openapi.json",
        "gloveport add schema.graphql --name shop --base-url https://shop.example.com/graphql",
        "gloveport add -- npx -y @modelcontextprotocol/server-memory",
    ),
)
@click.argument("what", nargs=-1, required=True, metavar="URL|FILE|COMMAND…")
@click.option("--name", metavar="NAME", help="What programs call it: tools.NAME.")
@click.option(
    "--kind",
    type=OneOf(["openapi", "graphql", "mcp", "functions"]),
    metavar="KIND",
    help="openapi, graphql, mcp or functions; else it is found out.",
)
@click.option("--base-url", metavar="URL", help="Where its calls go, if not where its definition says.")
@click.option("--private", is_flag=True, help="Let it reach loopback and private addresses.")
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
    from gloveport.surfaces.cli.add import Adding, add_command

    return add_command(Adding(**options))


@cli.command(
    cls=Page,
    help="Remove a source: shows the change to gloveport.toml, asks, and makes it.",
    examples=("gloveport remove github", "gloveport remove github --scope user --yes"),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    type=OneOf(["project", "user"]),
    metavar="SCOPE",
    help="Out of the project's file or the user's own; else the one that has it.",
)
@YES
@JSON
@COLOR
def remove(**options: Any) -> int:
    """Remove a source."""
    from gloveport.surfaces.cli.sources import Removing, remove_command

    return remove_command(Removing(**options))


@cli.command(
    cls=Page,
    help="List the configured sources: whether each is open, and how many tools it has.",
    examples=("gloveport sources", "gloveport sources --json"),
)
@CONFIG
@JSON
@COLOR
def sources(**view: Any) -> int:
    """List the sources."""
    from gloveport.surfaces.cli.sources import sources_command
    from gloveport.surfaces.cli.tools import View

    return sources_command(View(**view))


cli.add_command(tools)


@cli.command(
    cls=Page,
    help="Let an agent use Gloveport: writes it into the client's own configuration.",
    examples=(
        "gloveport connect claude-code",
        "gloveport connect cursor --scope project",
        "gloveport connect codex --http --print",
    ),
)
@click.argument(
    "client",
    type=OneOf(["claude-code", "cursor", "vscode", "codex", "gemini"], "client"),
    metavar="claude-code|cursor|vscode|codex|gemini",
)
@click.option(
    "--scope",
    type=OneOf(["user", "project"]),
    default="user",
    metavar="SCOPE",
    help="Write the user's own file (the default) or that of the project in this folder.",
)
@click.option("--http", is_flag=True, help="Let it talk to `gloveport serve`, not start a server of its own.")
@click.option("--url", metavar="URL", help="The same, with a server at this address.")
@click.option("--env", multiple=True, metavar="NAME", help="Hand on this variable of the environment too; repeatable.")
@click.option("--print", "only_print", is_flag=True, help="Print the configuration, and write nothing.")
@click.option("--yes", is_flag=True, help="Replace an entry that is there already, without asking.")
@JSON
@COLOR
def connect(**options: Any) -> int:
    """Connect a client."""
    from gloveport.surfaces.cli.connect import Connecting, connect_command

    return connect_command(Connecting(**options))


@cli.command(
    cls=Page,
    help="Serve search, describe and execute over HTTP: MCP at /mcp, for clients that have the token.",
    examples=("gloveport serve tools.py", "gloveport serve openapi.json https://shop.example.com/graphql"),
)
@SOURCES
@click.option("--host", default=DEFAULT_HOST, metavar="ADDRESS", help=f"Where to listen ({DEFAULT_HOST}).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    metavar="N",
    help=f"The port ({DEFAULT_PORT}); 0 for any.",
)
@click.option("--token-file", metavar="FILE", help="Take the token from this file, not the one made on first start.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that requests may call it by; repeatable.")
@click.option("--at-once", type=click.IntRange(1, 10_000), metavar="N", help="How many programs run at a time.")
@click.option("--waiting", type=click.IntRange(0, 10_000), metavar="N", help="How many may wait; others get 429.")
@click.option("--grace", type=click.FloatRange(0, 3600), default=30, metavar="SECONDS", help="How long it stops for (30).")
@PRIVATE
@CONFIG
@LEAST
@JSON
@COLOR
def serve(sources: tuple[str, ...], config: str | None, minimum: Any, private: bool, **options: Any) -> int:
    """Serve over HTTP."""
    from gloveport.surfaces.cli.serve import Options, serve_command
    from gloveport.surfaces.mcp.stdio import ServedSources

    return serve_command(Options(ServedSources(sources, config, minimum, private), **options))


@cli.command(
    cls=Page,
    help="Serve search, describe and execute to an MCP client, on standard input and output.",
    examples=("gloveport mcp", "gloveport mcp tools.py https://api.example.com/openapi.json"),
)
@SOURCES
@PRIVATE
@CONFIG
@LEAST
def mcp(**options: Any) -> int:
    """Serve MCP on standard input and output."""
    from gloveport.surfaces.mcp.stdio import ServedSources, mcp_command

    return mcp_command(ServedSources(**options))


@cli.command(
    cls=Page,
    help="Check this machine, and try to break out of the sandbox from inside.",
    examples=("gloveport doctor", "gloveport doctor --json", "gloveport doctor --minimum full"),
)
@MINIMUM
@JSON
@COLOR
def doctor(minimum: Any, as_json: bool, color: str) -> int:
    """Check this machine."""
    from gloveport.surfaces.cli.doctor import doctor_command

    return doctor_command(minimum, as_json=as_json, color=color)


@cli.command(
    cls=Page,
    help="List the engines that run programs, and what each can do.",
    examples=("gloveport engines", "gloveport engines --json"),
)
@JSON
@COLOR
def engines(as_json: bool, color: str) -> int:
    """List the engines."""
    from gloveport.surfaces.cli.info import engines_command

    return engines_command(as_json=as_json, color=color)


@cli.command(cls=Page, help="Say which version this is.", examples=("gloveport version", "gloveport version --json"))
@JSON
def version(as_json: bool) -> int:
    """Say which version this is."""
    from gloveport.surfaces.cli.info import version_command

    return version_command(as_json=as_json)


@cli.command(
    "help",
    cls=Page,
    help="Explain a command, the exit codes, the error codes, or one of them.",
    examples=("gloveport help run", "gloveport help exit-codes", "gloveport help codes", "gloveport help time-limit"),
)
@click.argument("topic", nargs=-1, metavar="[TOPIC]")
@JSON
@click.pass_context
def help_(ctx: click.Context, topic: tuple[str, ...], as_json: bool) -> int:
    """Explain a topic."""
    from gloveport.surfaces.cli.info import help_command

    return help_command(_page(ctx.parent, topic), " ".join(topic) or None, tuple(cli.commands), as_json=as_json)


def _page(ctx: click.Context | None, words: tuple[str, ...]) -> str | None:
    """The page of a command, or of one below it; None when there is none of these words."""
    for word in words:
        command = ctx.command.commands.get(word) if ctx and isinstance(ctx.command, click.Group) else None
        ctx = click.Context(command, info_name=word, parent=ctx, max_content_width=WIDTH) if command else None
    return ctx.get_help() if ctx else None


# The outer edge: every way for a command to fail becomes an exit code and, with --json, a document.


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    args = list(sys.argv[1:] if argv is None else argv)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from gloveport.surfaces.terminal import fill_closed_descriptors

        fill_closed_descriptors()
    sys.exit(_main(args))


def _main(args: list[str]) -> int:
    from gloveport.errors import GloveportError

    try:
        return cli.main(args, prog_name="gloveport", standalone_mode=False) or 0
    except click.UsageError as error:
        return _fail(args, _usage(error))
    except GloveportError as error:
        return _fail(args, error)
    except (KeyboardInterrupt, click.Abort):
        return _fail(args, GloveportError("it was interrupted", code="cancelled"))
    except Exception as error:  # the outer edge: a defect of ours is told as one
        import logging

        logging.getLogger("gloveport").error("the command failed", exc_info=error)
        return _fail(args, GloveportError(f"something broke in Gloveport: {type(error).__name__}"))


def _usage(error: click.UsageError) -> GloveportError:
    from gloveport.errors import OptionError
    from gloveport.surfaces.did_you_mean import did_you_mean

    ctx = error.ctx
    path = ctx.command_path if ctx else "gloveport"
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        known = [name for parameter in ctx.command.get_params(ctx) for name in parameter.opts if name.startswith("--")]
        hint = did_you_mean(error.option_name, known) or f"`{path} --help` lists the options"
        return OptionError(f"there is no option `{error.option_name}`", hint=hint)
    if isinstance(error, click.MissingParameter) and error.param is not None and ctx is not None:
        return OptionError(f"`{path}` needs {error.param.make_metavar(ctx)}", hint=f"`{path} --help` shows how it is used")
    return OptionError(error.format_message(), hint=f"`{path} --help` shows how it is used")


def _fail(args: list[str], error: GloveportError) -> int:
    from gloveport.errors import exit_code
    from gloveport.surfaces.cli.report import problem_document, write_problem
    from gloveport.surfaces.terminal import stdout, stream

    if any(arg == "--json" or arg.partition("=")[0] == "--fields" for arg in args):
        from gloveport.surfaces.documents import write_document

        write_document(stream(stdout()), problem_document(error))
    else:
        write_problem(stream(sys.stderr), error)
    return exit_code(error.code)


if __name__ == "__main__":
    main()
