"""The commands of `gloveport auth`: their arguments and help texts."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import YES, complete_sources, view_options

auth = PageGroup("auth", help="Store credentials of sources, and sign in to accounts. Values are never shown.")
NAME = click.argument("name", metavar="SOURCE[.SLOT]", shell_complete=complete_sources)


@auth.command(
    "add",
    cls=PageCommand,
    help="Store the credential of a source: typed without echo, or read from stdin.",
    examples=("gloveport auth add github", "op read op://work/github/token | gloveport auth add github"),
)
@NAME
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Send it to this origin (default: the source's).")
@click.option("--expires", metavar="DATE", help="When it expires, as 2027-01-31.")
@view_options
def auth_add(name: str, origins: tuple[str, ...], expires: str | None, **view: Any) -> int:
    """Store a credential."""
    from gloveport.surfaces.cli.auth.command import ViewOptions, add_command

    return add_command(ViewOptions(**view), name, origins, expires)


@auth.command(
    "login",
    cls=PageCommand,
    help="Sign in to the account of a source with OAuth 2: in a browser, or with a code.",
    examples=("gloveport auth login tracker", "gloveport auth login tracker --device"),
)
@NAME
@click.option("--issuer", metavar="URL", help="The authorization server, where the source does not name it.")
@click.option("--client-id", metavar="ID", help="The client to sign in as (default: one that is registered now).")
@click.option("--client-secret", is_flag=True, help="Ask for the client's secret, or read it from stdin.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="What to ask for (default: what the source names).")
@click.option("--more-scope", "more_scopes", multiple=True, metavar="SCOPE", help="Ask for this beside what was asked for.")
@click.option("--device", is_flag=True, help="Show a code to type on another device.")
@click.option("--client-credentials", is_flag=True, help="Sign in as the client itself, without a person.")
@click.option("--no-browser", is_flag=True, help="Show the link, and open nothing.")
@YES
@view_options
def auth_login(name: str, as_json: bool, color: str, config: str | None, **options: Any) -> int:
    """Sign in."""
    from gloveport.surfaces.cli.auth.login import LoginOptions, login_command
    from gloveport.surfaces.cli.view import ViewOptions

    return login_command(ViewOptions(as_json, color, config), name, LoginOptions(**options))


@auth.command(
    "list",
    cls=PageCommand,
    help="List the stored credentials and accounts, with their origins and expiry.",
    examples=("gloveport auth list",),
)
@view_options
def auth_list(**view: Any) -> int:
    """List credentials."""
    from gloveport.surfaces.cli.auth.command import ViewOptions, list_command

    return list_command(ViewOptions(**view))


@auth.command(
    "test",
    cls=PageCommand,
    help="Find the credential of a source, renew an expired one, and try it at an MCP server.",
    examples=("gloveport auth test github",),
)
@NAME
@view_options
def auth_test(name: str, **view: Any) -> int:
    """Check a credential."""
    from gloveport.surfaces.cli.auth.command import ViewOptions, check_command

    return check_command(ViewOptions(**view), name)


@auth.command(
    "logout",
    cls=PageCommand,
    help="Sign out of an account: revokes its tokens where the server can, and deletes them.",
    examples=("gloveport auth logout tracker",),
)
@NAME
@view_options
def auth_logout(name: str, **view: Any) -> int:
    """Sign out."""
    from gloveport.surfaces.cli.auth.command import ViewOptions, remove_command

    return remove_command(ViewOptions(**view), name, revoke=True)


@auth.command(
    "remove",
    cls=PageCommand,
    help="Delete a stored credential.",
    examples=("gloveport auth remove github",),
)
@NAME
@view_options
def auth_remove(name: str, **view: Any) -> int:
    """Delete a credential."""
    from gloveport.surfaces.cli.auth.command import ViewOptions, remove_command

    return remove_command(ViewOptions(**view), name, revoke=False)
