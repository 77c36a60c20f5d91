"""The commands of `gloveport tools` and `gloveport config`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import (
    COLOR,
    JSON,
    NO_INPUT,
    YES,
    complete_sources,
    complete_tools,
    page_options,
    view_options,
)

tools = PageGroup("tools", help="Find, inspect and call the tools of the configured sources.")


@tools.command(
    "search",
    cls=PageCommand,
    help="Find tools by what they do.",
    examples=("gloveport tools search open orders",),
)
@click.argument("query", nargs=-1, required=True, metavar="WORDS…")
@click.option("--source", metavar="NAME", help="Search this source only.", shell_complete=complete_sources)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="Show at most N tools (10).")
@page_options
def tools_search(query: tuple[str, ...], source: str | None, limit: int, **view: Any) -> int:
    """Find tools."""
    from gloveport.surfaces.cli.tools.listing import search_command
    from gloveport.surfaces.cli.view import ViewOptions

    return search_command(ViewOptions(**view), " ".join(query), source, limit)


@tools.command(
    "list",
    cls=PageCommand,
    help="List the tools of all sources, or of one.",
    examples=("gloveport tools list shop",),
)
@click.argument("source", required=False, metavar="[SOURCE]", shell_complete=complete_sources)
@page_options
def tools_list(source: str | None, **view: Any) -> int:
    """List tools."""
    from gloveport.surfaces.cli.tools.listing import list_command
    from gloveport.surfaces.cli.view import ViewOptions

    return list_command(ViewOptions(**view), source)


@tools.command(
    "describe",
    cls=PageCommand,
    help="Show a tool's parameters and result as types.",
    examples=("gloveport tools describe shop.refund",),
)
@click.argument("path", metavar="TOOL", shell_complete=complete_tools)
@click.option("--at", metavar="PLACE", help="Show only a part of the result's type, such as 'items[].spec'.")
@page_options
def tools_describe(path: str, at: str | None, **view: Any) -> int:
    """Show a tool."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, describe_command

    return describe_command(ViewOptions(**view), path, at)


@tools.command(
    "call",
    cls=PageCommand,
    help="Call one tool and print its result.",
    examples=(
        "gloveport tools call shop.orders status=open",
        """gloveport tools call shop.orders '{"status": "open"}'""",
        """echo '{"status": "open"}' | gloveport tools call shop.orders -""",
    ),
)
@click.argument("path", metavar="TOOL", shell_complete=complete_tools)
@click.argument("args", nargs=-1, metavar="[JSON|@FILE|-|KEY=VALUE]…")
@NO_INPUT
@view_options
def tools_call(path: str, args: tuple[str, ...], no_input: bool, **view: Any) -> int:
    """Call a tool."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, call_command

    return call_command(ViewOptions(**view), path, args, no_input=no_input)


@tools.command(
    "changes",
    cls=PageCommand,
    help="Show the tools whose definition has changed since you accepted it.",
    examples=("gloveport tools changes",),
)
@click.argument("source", required=False, metavar="[SOURCE]", shell_complete=complete_sources)
@page_options
def tools_changes(source: str | None, **view: Any) -> int:
    """Show changes."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, changes_command

    return changes_command(ViewOptions(**view), source)


@tools.command(
    "accept",
    cls=PageCommand,
    help="Accept the current definition of a source: shows what has changed, and asks.",
    examples=("gloveport tools accept shop",),
)
@click.argument("source", metavar="SOURCE", shell_complete=complete_sources)
@YES
@view_options
def tools_accept(source: str, yes: bool, **view: Any) -> int:
    """Accept changes."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, accept_command

    return accept_command(ViewOptions(**view), source, yes=yes)


@tools.command(
    "trust",
    cls=PageCommand,
    help="Trust a source of a project's gloveport.toml: shows what it does, and asks.",
    examples=("gloveport tools trust shop",),
)
@click.argument("source", metavar="SOURCE", shell_complete=complete_sources)
@YES
@view_options
def tools_trust(source: str, yes: bool, **view: Any) -> int:
    """Trust a source."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, trust_command

    return trust_command(ViewOptions(**view), source, yes=yes)


@tools.command("approve", cls=PageCommand, hidden=True, help="The old name of `gloveport tools trust`.")
@click.argument("source", metavar="SOURCE", shell_complete=complete_sources)
@YES
@view_options
def tools_approve(source: str, yes: bool, **view: Any) -> int:
    """Trust a source, under the old name of the command."""
    from gloveport.surfaces.cli.tools.command import ViewOptions, approve_command

    return approve_command(ViewOptions(**view), source, yes=yes)


config = PageGroup("config", rare=True, help="Show the settings, and trust those of a project's gloveport.toml.")


@config.command(
    "show",
    cls=PageCommand,
    help="Show every setting with its place, and what is ignored and why.",
    examples=("gloveport config show",),
)
@page_options
def config_show(**view: Any) -> int:
    """Show the settings."""
    from gloveport.surfaces.cli.config import show_command
    from gloveport.surfaces.cli.view import ViewOptions

    return show_command(ViewOptions(**view))


@config.command(
    "trust",
    cls=PageCommand,
    help="Let settings of a project's gloveport.toml loosen yours: shows them, and asks.",
    examples=("gloveport config trust",),
)
@YES
@JSON
@COLOR
def config_trust(yes: bool, **view: Any) -> int:
    """Trust settings."""
    from gloveport.surfaces.cli.config import trust_command
    from gloveport.surfaces.cli.view import ViewOptions

    return trust_command(ViewOptions(config=None, **view), yes=yes)
