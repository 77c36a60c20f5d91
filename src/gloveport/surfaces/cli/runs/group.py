"""The commands of `gloveport runs`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import YES, complete_files, view_options

ID = click.argument("run", metavar="RUN")

runs = PageGroup(
    "runs", default="list", help="List, show, resume, replay, export and cancel runs. The beginning of an id is enough."
)


@runs.command(
    "list",
    cls=PageCommand,
    help="List the latest runs, the latest first; `gloveport runs` alone does the same.",
    examples=("gloveport runs --waiting", "gloveport runs --failed --since 7d"),
)
@click.option("--failed", is_flag=True, help="Only runs that failed.")
@click.option("--waiting", is_flag=True, help="Only runs that have not ended: they wait, run, or were interrupted.")
@click.option("--tool", metavar="PATTERN", help="Only runs that called these tools, such as 'shop.*'.")
@click.option("--agent", metavar="NAME", help="Only runs of this agent.")
@click.option("--since", metavar="TIME", help="Only runs that started since: 30s, 10m, 1h or 7d ago.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, metavar="N", help="List the last N runs (50).")
@view_options
def list_runs(*, failed: bool, waiting: bool, limit: int, **given: Any) -> int:
    """List runs."""
    from gloveport.surfaces.cli.runs.command import RunFilter, list_command
    from gloveport.surfaces.cli.view import ViewOptions

    named = {name: given.pop(name) for name in ("tool", "agent", "since")}
    return list_command(ViewOptions(**given), RunFilter(failed=failed, waiting=waiting, limit=limit, **named))


@runs.command("show", cls=PageCommand, help="Show a run: its program, its calls, its output and how it ended.")
@ID
@view_options
def show_run(run: str, **view: Any) -> int:
    """Show a run."""
    from gloveport.surfaces.cli.runs.command import show_command
    from gloveport.surfaces.cli.view import ViewOptions

    return show_command(ViewOptions(**view), run)


@runs.command(
    "logs",
    cls=PageCommand,
    help="Print what a run has logged. With -f, follow it until it ends, wherever it runs.",
    examples=("gloveport runs logs 3f9a1c20 -f",),
)
@ID
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended, or Ctrl-C.")
@view_options
def show_logs(run: str, *, follow: bool, **view: Any) -> int:
    """Print the logs of a run."""
    from gloveport.surfaces.cli.runs.command import logs_command
    from gloveport.surfaces.cli.view import ViewOptions

    return logs_command(ViewOptions(**view), run, follow=follow)


@runs.command(
    "resume",
    cls=PageCommand,
    help="Go on with a run that waits or was interrupted, and show its outcome. No call that has a result is made again.",
)
@ID
@click.option("--tools", multiple=True, metavar="FILE", help="A Python file or module with functions that the run calls.")
@click.option("--no-input", is_flag=True, help="Ask nothing: exit with 5 if calls need an answer.")
@view_options
def resume_run(run: str, tools: tuple[str, ...], *, no_input: bool, **view: Any) -> int:
    """Resume a run."""
    from gloveport.surfaces.cli.runs.resume import resume_command
    from gloveport.surfaces.cli.view import ViewOptions

    return resume_command(ViewOptions(**view), run, tools, no_input=no_input)


@runs.command(
    "apply",
    cls=PageCommand,
    help="Approve the plan of a run: run its program anew, with exactly those writes approved. Any other write asks.",
    examples=("gloveport run --plan program.ts", "gloveport runs apply 3f2a91c0"),
)
@ID
@click.option("--tools", multiple=True, metavar="FILE", help="A Python file or module with functions that the run calls.")
@click.option("--no-input", is_flag=True, help="Ask nothing while it runs: exit with 5 if calls need an answer.")
@YES
@view_options
def apply_plan(run: str, tools: tuple[str, ...], *, no_input: bool, yes: bool, **view: Any) -> int:
    """Approve a plan."""
    from gloveport.surfaces.cli.runs.apply import apply_command
    from gloveport.surfaces.cli.view import ViewOptions

    return apply_command(ViewOptions(**view), run, tools, yes=yes, no_input=no_input)


@runs.command(
    "rollback",
    cls=PageCommand,
    help="Undo the writes of a run, the last one first, by the inverses of their tools.",
)
@ID
@click.option("--tools", multiple=True, metavar="FILE", help="A Python file or module with functions that the run called.")
@click.option("--no-input", is_flag=True, help="Ask nothing: what needs an answer is not undone (exit code 5).")
@view_options
def rollback_run(run: str, tools: tuple[str, ...], *, no_input: bool, **view: Any) -> int:
    """Undo a run."""
    from gloveport.surfaces.cli.runs.rollback import rollback_command
    from gloveport.surfaces.cli.view import ViewOptions

    return rollback_command(ViewOptions(**view), run, tools, no_input=no_input)


@runs.command("replay", cls=PageCommand, help="Repeat a run from its record, without calling a tool, and compare.")
@ID
@click.option("--live-reads", is_flag=True, help="Make the reads of the run anew, under the rules. No write is made.")
@click.option("--tools", multiple=True, metavar="FILE", help="With --live-reads: functions that the run calls.")
@view_options
def replay_run(run: str, tools: tuple[str, ...], *, live_reads: bool, **view: Any) -> int:
    """Replay a run."""
    from gloveport.surfaces.cli.runs.resume import replay_command
    from gloveport.surfaces.cli.view import ViewOptions

    return replay_command(ViewOptions(**view), run, tools, live_reads=live_reads)


@runs.command("cancel", cls=PageCommand, help="End a run, also one that another process runs. No call of it is undone.")
@ID
@view_options
def cancel_run(run: str, **view: Any) -> int:
    """Cancel a run."""
    from gloveport.surfaces.cli.runs.command import cancel_command
    from gloveport.surfaces.cli.view import ViewOptions

    return cancel_command(ViewOptions(**view), run)


@runs.command(
    "prune",
    cls=PageCommand,
    help="Delete old runs that have ended, with their arguments and results. The audit stays whole.",
    examples=("gloveport runs prune --older-than 30d --dry-run",),
)
@click.option("--older-than", metavar="TIME", help="Runs that ended so long ago, as 30d; else as [store] says.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@view_options
def prune_runs(*, older_than: str | None, dry_run: bool, **view: Any) -> int:
    """Prune runs."""
    from gloveport.surfaces.cli.runs.prune import prune_command
    from gloveport.surfaces.cli.view import ViewOptions

    return prune_command(ViewOptions(**view), older_than, dry_run=dry_run)


@runs.command(
    "export",
    cls=PageCommand,
    help="Write a run into one file that repeats it on another machine. Secrets are redacted.",
    examples=("gloveport runs export 3f9a1c20 failed.json",),
)
@ID
@click.argument("file", metavar="FILE", shell_complete=complete_files)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@view_options
def export_run(run: str, file: str, *, force: bool, **view: Any) -> int:
    """Export a run."""
    from gloveport.surfaces.cli.runs.files import export_command
    from gloveport.surfaces.cli.view import ViewOptions

    return export_command(ViewOptions(**view), run, file, force=force)


@runs.command(
    "import",
    cls=PageCommand,
    help="Put an exported run into the store, to show and replay it. It calls nothing.",
    examples=("gloveport runs import failed.json",),
)
@click.argument("file", metavar="FILE", shell_complete=complete_files)
@view_options
def import_run(file: str, **view: Any) -> int:
    """Import a run."""
    from gloveport.surfaces.cli.runs.files import import_command
    from gloveport.surfaces.cli.view import ViewOptions

    return import_command(ViewOptions(**view), file)


@runs.command(
    "test",
    cls=PageCommand,
    help="Repeat exported runs, and compare: exit code 1 if one differs from its record.",
    examples=("gloveport runs test tests/runs/*.json",),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=complete_files)
@view_options
def test_runs(files: tuple[str, ...], **view: Any) -> int:
    """Test exported runs."""
    from gloveport.surfaces.cli.runs.files import test_command
    from gloveport.surfaces.cli.view import ViewOptions

    return test_command(ViewOptions(**view), files)
