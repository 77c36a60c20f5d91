"""The commands of `gloveport audit`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import OneOf, view_options

RUN = click.option("--run", metavar="ID", help="Only this run; the beginning of its id is enough.")
TOOL = click.option("--tool", metavar="PATTERN", help="Only calls of these tools, such as 'shop.*'.")
SINCE = click.option("--since", metavar="TIME", help="Only what happened since: 30s, 10m, 1h or 7d ago.")


audit = PageGroup("audit", help="Show, verify and export what was recorded: runs, calls, decisions and answers.")


@audit.command(
    "show",
    cls=PageCommand,
    help="Show the last events.",
    examples=("gloveport audit show --since 1h", "gloveport audit show --tool 'shop.*' --limit 10"),
)
@RUN
@TOOL
@SINCE
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, metavar="N", help="Show the last N events (50).")
@view_options
def audit_show(run: str | None, tool: str | None, since: str | None, limit: int, **view: Any) -> int:
    """Show events."""
    from gloveport.surfaces.cli.audit.command import show_events_command
    from gloveport.surfaces.cli.view import ViewOptions

    return show_events_command(ViewOptions(**view), run, tool, since, limit)


@audit.command(
    "verify",
    cls=PageCommand,
    help="Check that nothing was changed, removed, moved or cut off since it was recorded.",
    examples=("gloveport audit verify", "gloveport audit verify --head HASH"),
)
@click.option("--head", metavar="HASH", help="A head that an earlier check has printed: it must still be there.")
@view_options
def audit_verify(head: str | None, **view: Any) -> int:
    """Verify the chains."""
    from gloveport.surfaces.cli.audit.command import verify_command
    from gloveport.surfaces.cli.view import ViewOptions

    return verify_command(ViewOptions(**view), head)


@audit.command(
    "export",
    cls=PageCommand,
    help="Print all events, one JSON object on each line.",
    examples=("gloveport audit export > audit.jsonl", "gloveport audit export --since 7d --tool 'shop.*'"),
)
@RUN
@TOOL
@SINCE
@click.option(
    "--format", "format_", type=OneOf(["jsonl"]), default="jsonl", metavar="FORMAT", help="jsonl, the only one yet."
)
@view_options
def audit_export(run: str | None, tool: str | None, since: str | None, format_: str, **view: Any) -> int:
    """Export events."""
    from gloveport.surfaces.cli.audit.command import export_command
    from gloveport.surfaces.cli.view import ViewOptions

    return export_command(ViewOptions(**view), run, tool, since)
