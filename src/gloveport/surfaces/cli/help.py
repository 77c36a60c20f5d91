"""Help that starts with examples and fits one screen; commands that know what was meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

WIDTH = 100
MOST_EXAMPLES = 5  # the front page fits one screen, however many commands there are


class Page(click.Command):
    """A command whose help shows what it does, examples, usage and options, in that order."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        formatter.write(f"{self.help}\n\n")
        for example in self.examples:
            formatter.write(f"  {example}\n")
        if self.examples:
            formatter.write("\n")
        formatter.write(f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}\n")
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        rows = [row for option in options if (row := option.get_help_record(ctx))]
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            formatter.write(f"  {name:<{width}}  {text}\n")


class OneOf(click.Choice[str]):
    """A word of a few: `word` says what they are; another word is an error that says what may be meant."""

    def __init__(self, choices: Sequence[str], word: str | None = None) -> None:
        super().__init__(choices)
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word itself."""
        if value in self.choices:
            return value
        from gloveport.errors import OptionError
        from gloveport.surfaces.did_you_mean import did_you_mean

        listed = ", ".join(self.choices)
        meant = did_you_mean(value, self.choices)
        if self.word is not None:
            raise OptionError(f"there is no {self.word} `{value}`", hint=meant or f"the {self.word}s are {listed}")
        option = param.opts[0] if param else "it"
        raise OptionError(f"{option} takes {' or '.join(listed.rsplit(', ', 1))}, not `{value}`", hint=meant)


class Front(click.Group):
    """The front door: commands in the order in which people need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands as they were added, not by the alphabet."""
        return list(self.commands)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        formatter.write(f"{self.help}\n\n")
        examples = [example for command in self.commands.values() for example in getattr(command, "examples", ())[:1]]
        for example in examples[:MOST_EXAMPLES]:
            formatter.write(f"  {example}\n")
        formatter.write(f"\nUsage: {ctx.command_path} COMMAND [OPTIONS]\n")
        for name, command in self.commands.items():
            formatter.write(f"  {name:<10}{command.get_short_help_str(WIDTH)}\n")
        formatter.write("\n`gloveport COMMAND --help` shows a command; `gloveport help CODE` explains an error code.\n")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of this name; an unknown one is an error that says what may be meant."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from gloveport.errors import OptionError
            from gloveport.surfaces.did_you_mean import did_you_mean

            hint = (
                did_you_mean(args[0], self.commands) or _as_file(args[0]) or f"the commands are {', '.join(self.commands)}"
            )
            raise OptionError(f"there is no command `{args[0]}`", hint=hint)
        return super().resolve_command(ctx, args)


def _as_file(word: str) -> str | None:
    return f"to run a file, write `gloveport run {word}`" if word.endswith((".ts", ".js", ".mjs", ".py")) else None
