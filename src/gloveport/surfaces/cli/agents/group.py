"""The commands of `gloveport agents`: their arguments and help texts."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import view_options

agents = PageGroup(
    "agents", rare=True, help="Give agents names and tokens, so that each has its own tools, rules and budgets."
)

ROLE = click.option(
    "--role",
    type=click.Choice(["agent", "host", "approver", "admin", "monitor"]),
    default="agent",
    help="May run programs, run them with own tools, answer requests, do all, or read metrics. [default: agent]",
)


@agents.command(
    "add",
    cls=PageCommand,
    help="Create a token, of an agent or of another role, and print it once.",
    examples=("gloveport agents add reviewer",),
)
@click.argument("name", metavar="NAME")
@ROLE
@view_options
def agents_add(name: str, role: Any, **view: Any) -> int:
    """Create a token."""
    from gloveport.surfaces.cli.agents.command import ViewOptions, add_command

    return add_command(ViewOptions(**view), name, role)


@agents.command(
    "list",
    cls=PageCommand,
    help="List the agents: those of the settings, and those that have a token.",
    examples=("gloveport agents list",),
)
@view_options
def agents_list(**view: Any) -> int:
    """List agents."""
    from gloveport.surfaces.cli.agents.command import ViewOptions, list_command

    return list_command(ViewOptions(**view))


@agents.command(
    "remove",
    cls=PageCommand,
    help="Delete a token: a server refuses it within a second.",
    examples=("gloveport agents remove reviewer",),
)
@click.argument("name", metavar="NAME")
@ROLE
@view_options
def agents_remove(name: str, role: Any, **view: Any) -> int:
    """Delete a token."""
    from gloveport.surfaces.cli.agents.command import ViewOptions, remove_command

    return remove_command(ViewOptions(**view), name, role)
