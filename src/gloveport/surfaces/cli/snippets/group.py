"""The commands of `gloveport snippets`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import NO_INPUT, YES, view_options

NAME = click.argument("name", metavar="NAME")

snippets = PageGroup(
    "snippets", rare=True, help="Save the program of a run that worked, and call it as tools.snippets.NAME."
)


@snippets.command(
    "save",
    cls=PageCommand,
    help="Save the program of a run. It shows what it saves, and asks: only a person can save one.",
    examples=("gloveport snippets save 3f2a --name refund_all --description 'Refund the open orders of a city'",),
)
@click.argument("run", metavar="RUN")
@click.option("--name", required=True, metavar="NAME", help="Programs call it as tools.snippets.NAME.")
@click.option("--description", default="", metavar="TEXT", help="What it does, for those who search for it.")
@click.option("--tools", multiple=True, metavar="FILE", help="A Python file or module with functions that the run called.")
@YES
@view_options
def save_snippet(run: str, name: str, description: str, tools: tuple[str, ...], *, yes: bool, **view: Any) -> int:
    """Save a snippet."""
    from gloveport.surfaces.cli.snippets.command import save_command
    from gloveport.surfaces.cli.view import ViewOptions

    return save_command(ViewOptions(**view), run, (name, description), tools, yes=yes)


@snippets.command("list", cls=PageCommand, help="List the snippets.")
@view_options
def list_snippets(**view: Any) -> int:
    """List snippets."""
    from gloveport.surfaces.cli.snippets.command import list_command
    from gloveport.surfaces.cli.view import ViewOptions

    return list_command(ViewOptions(**view))


@snippets.command("show", cls=PageCommand, help="Show a snippet: its program, and the tools that it needs.")
@NAME
@view_options
def show_snippet(name: str, **view: Any) -> int:
    """Show a snippet."""
    from gloveport.surfaces.cli.snippets.command import show_command
    from gloveport.surfaces.cli.view import ViewOptions

    return show_command(ViewOptions(**view), name)


@snippets.command("remove", cls=PageCommand, help="Delete a snippet. Only a person can.")
@NAME
@view_options
def remove_snippet(name: str, **view: Any) -> int:
    """Delete a snippet."""
    from gloveport.surfaces.cli.snippets.command import remove_command
    from gloveport.surfaces.cli.view import ViewOptions

    return remove_command(ViewOptions(**view), name)


@snippets.command(
    "run",
    cls=PageCommand,
    help="Run a snippet and print its result. Its calls are decided on as always.",
    examples=("""gloveport snippets run refund_all --input '{"city": "Oslo"}'""",),
)
@NAME
@click.option("--input", "given", default="{}", metavar="JSON", help="Its input: an object, or @FILE.")
@NO_INPUT
@view_options
def run_snippet(name: str, given: str, *, no_input: bool, **view: Any) -> int:
    """Run a snippet."""
    from gloveport.surfaces.cli.tools.command import call_command
    from gloveport.surfaces.cli.view import ViewOptions

    return call_command(ViewOptions(**view), f"snippets.{name.removeprefix('snippets.')}", (given,), no_input=no_input)
