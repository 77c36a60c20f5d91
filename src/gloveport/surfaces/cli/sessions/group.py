"""The commands of `gloveport sessions`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import YES, complete_files, view_options

NAME = click.argument("name", metavar="SESSION")
PATH = click.argument("path", metavar="PATH")
AGENT = click.option("--agent", default="default", metavar="NAME", help="The agent whose session it is.")

sessions = PageGroup("sessions", rare=True, help="List sessions; put files into their workspaces and take them out.")


@sessions.command("list", cls=PageCommand, help="List the sessions: agent, name, files, bytes, and the run that uses it.")
@click.option("--agent", metavar="NAME", help="Only those of this agent.")
@view_options
def list_sessions(agent: str | None, **view: Any) -> int:
    """List sessions."""
    from gloveport.surfaces.cli.sessions.command import list_command
    from gloveport.surfaces.cli.view import ViewOptions

    return list_command(ViewOptions(**view), agent)


@sessions.command("files", cls=PageCommand, help="List the files of a session.")
@NAME
@AGENT
@view_options
def list_files(name: str, agent: str, **view: Any) -> int:
    """List files."""
    from gloveport.surfaces.cli.sessions.command import files_command
    from gloveport.surfaces.cli.view import ViewOptions

    return files_command(ViewOptions(**view), name, agent)


@sessions.command(
    "get",
    cls=PageCommand,
    help="Write a file of a session to stdout, or into a file of yours.",
    examples=("gloveport sessions get report out/sum.csv", "gloveport sessions get report plot.png plot.png"),
)
@NAME
@PATH
@click.argument("file", required=False, metavar="[FILE]", shell_complete=complete_files)
@AGENT
@click.option("--force", is_flag=True, help="Replace FILE.")
@view_options
def get_file(name: str, path: str, file: str | None, agent: str, *, force: bool, **view: Any) -> int:
    """Take a file out."""
    from gloveport.surfaces.cli.sessions.command import get_command
    from gloveport.surfaces.cli.view import ViewOptions

    return get_command(ViewOptions(**view), name, agent, path, file, force=force)


@sessions.command(
    "put",
    cls=PageCommand,
    help="Put a file of yours into a session, under its name or PATH.",
    examples=("gloveport sessions put report numbers.csv", "gloveport sessions put report numbers.csv in/numbers.csv"),
)
@NAME
@click.argument("file", metavar="FILE|-", shell_complete=complete_files)
@click.argument("path", required=False, metavar="[PATH]")
@AGENT
@view_options
def put_file(name: str, file: str, path: str | None, agent: str, **view: Any) -> int:
    """Put a file in."""
    from gloveport.surfaces.cli.sessions.command import put_command
    from gloveport.surfaces.cli.view import ViewOptions

    return put_command(ViewOptions(**view), name, agent, file, path)


@sessions.command("remove", cls=PageCommand, help="Delete a session with its state, or one file or folder of it.")
@NAME
@click.argument("path", required=False, metavar="[PATH]")
@AGENT
@YES
@view_options
def remove_session(name: str, path: str | None, agent: str, *, yes: bool, **view: Any) -> int:
    """Delete a session, or a file."""
    from gloveport.surfaces.cli.sessions.command import remove_command
    from gloveport.surfaces.cli.view import ViewOptions

    return remove_command(ViewOptions(**view), name, agent, path, yes=yes)
