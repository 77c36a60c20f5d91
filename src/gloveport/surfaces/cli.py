"""The command line. Importing this costs click and nothing else: what a command needs is imported when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import gloveport
from gloveport.surfaces.pages import WIDTH, Front, Page

if TYPE_CHECKING:
    from gloveport.errors import GloveportError

JSON = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")
COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    metavar="WHEN",
    help="Colour: auto (on a terminal), always or never.",
)
MINIMUM = click.option(
    "--minimum",
    type=click.Choice(["full", "kernel", "none"]),
    default="kernel",
    metavar="STRENGTH",
    help="Refuse a weaker sandbox than full, kernel (the default) or none.",
)


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
        "cat script.ts | gloveport run - --input '{\"n\": 3}' --json",
    ),
)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("-e", "--code", metavar="CODE", help="The program itself.")
@click.option("--language", metavar="NAME", help="typescript, javascript or python; else by the file's name.")
@click.option("--engine", metavar="NAME", help="deno, cpython or monty; else the one for the language here.")
@click.option("--tools", multiple=True, metavar="MODULE", help="Offer the functions of a module or a .py file; repeatable.")
@click.option("--input", "input_", metavar="JSON", help="What the program finds as `input`: JSON, or @file.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for `process.env`; repeatable.")
@click.option("--timeout", metavar="SECONDS", help="How long the run may take (60).")
@click.option("--cpu", metavar="SECONDS", help="How long the program may compute (30).")
@click.option("--memory", metavar="MB", help="How much memory the program may use (256).")
@MINIMUM
@click.option("--allow-eval", is_flag=True, help="Let the program use eval and new Function.")
@click.option("--allow-wasm", is_flag=True, help="Let the program use WebAssembly.")
@JSON
@click.option("--fields", metavar="NAMES", help="Print only these fields of the JSON: --fields status,value.")
@click.option("--quiet", is_flag=True, help="Show no logs, calls and warnings.")
@COLOR
def run(input_: str | None, **options: Any) -> int:
    """Run a program."""
    from gloveport.surfaces.running import Options, run_command

    return run_command(Options(input=input_, **options))


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
    from gloveport.surfaces.doctor import doctor_command

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
    from gloveport.surfaces.listing import engines_command

    return engines_command(as_json=as_json, color=color)


@cli.command(cls=Page, help="Say which version this is.", examples=("gloveport version", "gloveport version --json"))
@JSON
def version(as_json: bool) -> int:
    """Say which version this is."""
    from gloveport.surfaces.listing import version_command

    return version_command(as_json=as_json)


@cli.command(
    "help",
    cls=Page,
    help="Explain a command, the exit codes, the error codes, or one of them.",
    examples=("gloveport help run", "gloveport help exit-codes", "gloveport help codes", "gloveport help time-limit"),
)
@click.argument("topic", required=False, metavar="[TOPIC]")
@JSON
@click.pass_context
def help_(ctx: click.Context, topic: str | None, as_json: bool) -> int:
    """Explain a topic."""
    from gloveport.surfaces.listing import help_command

    return help_command(_page(ctx, topic), topic, tuple(cli.commands), as_json=as_json)


def _page(ctx: click.Context, topic: str | None) -> str | None:
    front = ctx.parent
    if front is None or topic is None:
        return front.get_help() if front else None
    command = cli.commands.get(topic)
    if command is None:
        return None
    with click.Context(command, info_name=topic, parent=front, max_content_width=WIDTH) as inner:
        return command.get_help(inner)


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
        return _fail(args, GloveportError("cancelled", code="cancelled"))
    except Exception as error:  # the outer edge: a defect of ours is told as one
        import logging

        logging.getLogger("gloveport").error("the command failed", exc_info=error)
        return _fail(args, GloveportError(f"something broke in Gloveport: {type(error).__name__}"))


def _usage(error: click.UsageError) -> GloveportError:
    from gloveport.errors import OptionError
    from gloveport.surfaces.suggestions import did_you_mean

    ctx = error.ctx
    path = ctx.command_path if ctx else "gloveport"
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        known = [name for parameter in ctx.command.get_params(ctx) for name in parameter.opts if name.startswith("--")]
        hint = did_you_mean(error.option_name, known) or f"`{path} --help` lists the options"
        return OptionError(f"there is no option `{error.option_name}`", hint=hint)
    return OptionError(error.format_message(), hint=f"`{path} --help` shows how it is used")


def _fail(args: list[str], error: GloveportError) -> int:
    from gloveport.errors import exit_code
    from gloveport.surfaces.report import problem_document, write_problem
    from gloveport.surfaces.terminal import stdout, stream

    if any(arg == "--json" or arg.partition("=")[0] == "--fields" for arg in args):
        from gloveport.surfaces.outcome_json import write_document

        write_document(stream(stdout()), problem_document(error))
    else:
        write_problem(stream(sys.stderr), error)
    return exit_code(error.code)


if __name__ == "__main__":
    main()
