"""`gloveport help`, and the help pages of all commands: examples first, on one screen."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from gloveport.errors import CODES, OptionError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import stream

PAGE_COLUMNS = 100
GROUP_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": PAGE_COLUMNS}
MAX_FRONT_EXAMPLES = 3  # so that the front page fits one screen, however many commands there are
MAX_INDENT = 24
TOPICS = ("exit-codes", "codes")
EXIT_CODES: Mapping[int, str] = {
    0: "the program completed",
    1: "the program failed (for doctor: a check failed)",
    2: "the command line is not valid",
    3: "a policy denied something",
    4: "a credential is missing, or a sign-in is needed",
    5: "an approval is pending or was refused",
    6: "a limit was reached: time, memory, calls or size",
    7: "a tool failed and the program did not catch the error, or a source is not open",
    8: "no sandbox of the required strength is available on this machine",
    130: "cancelled with Ctrl-C",
}


class RareOption(click.Option):
    """An option that the page of its command names on its last line, so that the page fits one screen."""


class PageCommand(click.Command):
    """A command whose help page shows what it does, examples, usage and options, in that order.

    The page of its group names a `rare` one without its description.
    """

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), rare: bool = False, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.examples = examples
        self.rare = rare

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        formatter.write(f"{stream(sys.stdout).fold(self.help or '')}\n\n")
        for example in self.examples:
            formatter.write(f"  {example}\n")
        if self.examples:
            formatter.write("\n")
        formatter.write(f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}\n")
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        rare = [option for option in options if isinstance(option, RareOption)]
        rows = [row for option in options if option not in rare and (row := option.get_help_record(ctx))]
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            formatter.write(_row(f"  {name:<{width}}  ", text))
        if rare:
            formatter.write(_row("  and also ", "; ".join(f"{option.opts[0]}: {option.help}" for option in rare)))


def _row(start: str, text: str) -> str:
    """Return a line of a page, folded below the start of its text where it would not fit the terminal."""
    return f"{stream(sys.stdout).fold(start + text, ' ' * min(len(start), MAX_INDENT))}\n"


@click.pass_context
def _show_page(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


class PageGroup(click.Group):
    """A group whose help page lists its commands in the order in which people need them.

    Without a command, it shows that page and succeeds, unless it has a callback of its own, or a `default` command, which
    then gets the options. `rare` is as for a command.
    """

    def __init__(self, *args: Any, rare: bool = False, default: str | None = None, **keywords: Any) -> None:
        self.rare = rare
        self.default = default
        own = {"callback": _show_page, "invoke_without_command": True, "context_settings": GROUP_SETTINGS}
        super().__init__(*args, **own | keywords)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments; options without a command are those of the default command."""
        if self.default is not None and (not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands that are not hidden, in the order in which they were added."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        listed = [self.commands[name] for name in self.list_commands(ctx)]
        formatter.write(f"{self.help}\n\n")
        examples = [example for command in listed for example in getattr(command, "examples", ())[:1]]
        for example in examples[:MAX_FRONT_EXAMPLES]:
            formatter.write(f"  {example}\n")
        formatter.write(f"\nUsage: {ctx.command_path} COMMAND [OPTIONS]\n")
        rare = [command for command in listed if getattr(command, "rare", False)]
        width = max(12, *(2 + len(str(command.name)) for command in listed))
        for command in listed:
            if command not in rare:
                formatter.write(_row(f"  {command.name:<{width}}", command.get_short_help_str(PAGE_COLUMNS)))
        if rare:
            formatter.write(_row("  and also ", ", ".join(str(command.name) for command in rare)))
        more = f"`{ctx.command_path} COMMAND --help` shows a command; `gloveport help CODE` explains an error code."
        formatter.write(f"\n{as_typed(more)}\n")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of this name; an unknown name is an error that suggests a known one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            hint = did_you_mean(args[0], names) or _as_file(args[0]) or f"the commands are {', '.join(names)}"
            raise OptionError(f"there is no command `{args[0]}`", hint=hint)
        return super().resolve_command(ctx, args)


def _as_file(word: str) -> str | None:
    return f"to run a file, write `gloveport run {word}`" if word.endswith((".ts", ".js", ".mjs", ".py")) else None


def page_of(ctx: click.Context | None, words: Sequence[str]) -> str | None:
    """Return the page of the command that the words name, starting at the group of `ctx`; None when there is none."""
    for word in words:
        command = ctx.command.commands.get(word) if ctx and isinstance(ctx.command, click.Group) else None
        ctx = click.Context(command, info_name=word, parent=ctx, max_content_width=PAGE_COLUMNS) if command else None
    return ctx.get_help() if ctx else None


def help_command(page: str | None, topic: str | None, commands: Sequence[str], *, as_json: bool, pages: bool) -> int:
    """Explain a topic and return the exit code; `page` is the help page of the command of that name, if there is one."""
    from gloveport.surfaces.cli.pager import paged
    from gloveport.surfaces.cli.view import ViewOptions
    from gloveport.surfaces.documents import write_document

    text = page or topic_text(topic or "")
    if text is None:
        known = [*commands, *TOPICS, *CODES]
        hint = did_you_mean(topic or "", known) or f"the topics are {', '.join([*commands, *TOPICS])} and the error codes"
        raise OptionError(f"there is no help on `{topic}`", hint=hint)
    view = ViewOptions(as_json, "auto", None, pages=pages)
    with paged(view) as (out, _):
        if as_json:
            write_document(out, {"ok": True, "topic": topic, "text": text})
        else:
            for line in text.rstrip("\n").splitlines():
                out.line(line if page else out.fold(line, " " * (line.rfind("  ") + 2)))
    return 0


def topic_text(topic: str) -> str | None:
    """Return the text on a topic that is no command: the exit codes, the error codes, or one error code."""
    if topic == "exit-codes":
        rows = [f"  {number:>3}  {meaning}" for number, meaning in EXIT_CODES.items()]
        return "\n".join(["Exit codes of `gloveport`:", "", *rows])
    if topic == "codes":
        rows = [f"  {name:<20} {row.cause}" for name, row in CODES.items()]
        return "\n".join(["Error codes (`gloveport help CODE` explains one):", "", *rows])
    row = CODES.get(topic)
    if row is None:
        return None
    exit_ = f"{row.exit}, {EXIT_CODES.get(row.exit, 'the program failed')}"
    return f"{topic}\n\n  cause  {row.cause}\n  fix    {row.advice}\n  exit   {exit_}\n  HTTP   {row.http}"
