"""The commands of `gloveport approvals`: their arguments and help texts."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import YES, view_options

approvals = PageGroup("approvals", help="Answer the calls of programs that wait for a person.")


@approvals.command(
    "list",
    cls=PageCommand,
    help="List the calls that wait for a person, with everything that they would do.",
    examples=("gloveport approvals list",),
)
@view_options
def approvals_list(**view: Any) -> int:
    """List requests."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, list_command

    return list_command(ViewOptions(**view))


@approvals.command(
    "show",
    cls=PageCommand,
    help="Show one call, and whether it still waits.",
    examples=("gloveport approvals show 3f9a1c20",),
)
@click.argument("id", metavar="ID")
@view_options
def approvals_show(id: str, **view: Any) -> int:
    """Show a request."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, show_command

    return show_command(ViewOptions(**view), id)


@approvals.command(
    "watch",
    cls=PageCommand,
    help="Show each call that asks, as it comes, until Ctrl-C.",
    examples=("gloveport approvals watch",),
)
@view_options
def approvals_watch(**view: Any) -> int:
    """Watch requests."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, watch_command

    return watch_command(ViewOptions(**view))


@approvals.command(
    "approve",
    cls=PageCommand,
    help="Approve calls: shows them, and asks. The program goes on at once.",
    examples=(
        "gloveport approvals approve 3f9a1c20",
        "gloveport approvals approve --run 77b0d2aa",
        """gloveport approvals approve 3f9a1c20 --args '{"amount": 5}'""",
    ),
)
@click.argument("ids", nargs=-1, metavar="[ID]…")
@click.option("--run", metavar="ID", help="All calls of this run that wait now.")
@click.option("--rest-of-run", is_flag=True, help="Also later calls of this run: the same tool and shape of arguments.")
@click.option("--always", is_flag=True, help="Also every later call of this agent: the same tool and shape of arguments.")
@click.option("--args", metavar="JSON", help="Make the call with these arguments instead.")
@click.option("--value", metavar="JSON", help="An interrupted call was made, and returned this: it is not made again.")
@YES
@view_options
def approvals_approve(ids: tuple[str, ...], rest_of_run: bool, always: bool, yes: bool, **rest: Any) -> int:
    """Approve requests."""
    from gloveport.surfaces.cli.approvals.command import AnswerOptions, ViewOptions, approve_command

    scope = "always" if always else "run" if rest_of_run else "once"
    options = AnswerOptions(ids, rest.pop("run"), scope, rest.pop("args"), "", yes, rest.pop("value"))
    return approve_command(ViewOptions(**rest), options)


@approvals.command(
    "deny",
    cls=PageCommand,
    help="Deny calls: shows them, and asks. The program gets an error with the reason.",
    examples=("gloveport approvals deny 3f9a1c20 --reason 'not this customer'",),
)
@click.argument("ids", nargs=-1, metavar="[ID]…")
@click.option("--run", metavar="ID", help="All calls of this run that wait now.")
@click.option("--reason", default="", metavar="TEXT", help="What the program and its agent are told.")
@YES
@view_options
def approvals_deny(ids: tuple[str, ...], reason: str, yes: bool, **rest: Any) -> int:
    """Deny requests."""
    from gloveport.surfaces.cli.approvals.command import AnswerOptions, ViewOptions, deny_command

    options = AnswerOptions(ids, rest.pop("run"), "once", None, reason, yes)
    return deny_command(ViewOptions(**rest), options)


@approvals.command(
    "standing",
    cls=PageCommand,
    help="List the standing approvals: what was approved for always.",
    examples=("gloveport approvals standing",),
)
@view_options
def approvals_standing(**view: Any) -> int:
    """List standing approvals."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, standing_command

    return standing_command(ViewOptions(**view))


@approvals.command(
    "revoke",
    cls=PageCommand,
    help="End a standing approval: such calls ask again.",
    examples=("gloveport approvals revoke 5c1e0a9b7d24f683",),
)
@click.argument("id", metavar="ID")
@view_options
def approvals_revoke(id: str, **view: Any) -> int:
    """Revoke a standing approval."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, revoke_command

    return revoke_command(ViewOptions(**view), id)


@approvals.command(
    "add-approver",
    cls=PageCommand,
    help="Create a token that answers without a terminal, and print it once.",
    examples=("gloveport approvals add-approver oncall",),
)
@click.argument("name", metavar="NAME")
@view_options
def approvals_add_approver(name: str, **view: Any) -> int:
    """Create the token of an approver."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, add_approver_command

    return add_approver_command(ViewOptions(**view), name)


@approvals.command(
    "remove-approver",
    cls=PageCommand,
    help="Delete the token of an approver.",
    examples=("gloveport approvals remove-approver oncall",),
)
@click.argument("name", metavar="NAME")
@view_options
def approvals_remove_approver(name: str, **view: Any) -> int:
    """Delete the token of an approver."""
    from gloveport.surfaces.cli.approvals.command import ViewOptions, remove_approver_command

    return remove_approver_command(ViewOptions(**view), name)
