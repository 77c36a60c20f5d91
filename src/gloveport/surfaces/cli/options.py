"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.help import RareOption

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class OneOf(click.Choice[str]):
    """One of a few words; `noun` says what they name. Another word is an error that suggests one of them."""

    def __init__(self, choices: Sequence[str], noun: str | None = None) -> None:
        super().__init__(choices)
        self.noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word itself."""
        if value in self.choices:
            return value
        listed = ", ".join(self.choices)
        meant = did_you_mean(value, self.choices)
        if self.noun is not None:
            raise OptionError(f"there is no {self.noun} `{value}`", hint=meant or f"the {self.noun}s are {listed}")
        option = param.opts[0] if param else "it"
        raise OptionError(f"{option} takes {' or '.join(listed.rsplit(', ', 1))}, not `{value}`", hint=meant)


def complete_tools(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the tools whose address begins like this, for a shell."""
    from gloveport.surfaces.cli.start.completion import known_tools

    return known_tools(ctx.params.get("config"), incomplete)


def complete_sources(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the configured sources whose name begins like this, for a shell."""
    from gloveport.surfaces.cli.start.completion import known_sources

    return known_sources(ctx.params.get("config"), incomplete)


def complete_files(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the request that the shell completes the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def minimum_option(default: str | None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option `--minimum`; with no default here, the settings may set it, and else it is `kernel`."""
    return click.option(
        "--minimum",
        type=OneOf(["full", "kernel", "none"]),
        default=default,
        metavar="STRENGTH",
        help="Refuse a sandbox weaker than this: full, kernel (the default) or none.",
    )


def view_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a command that reads the settings and shows something: --config, --json and --color."""
    return CONFIG(JSON(COLOR(command)))


def page_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the same options and --no-pager, for a command whose answer may be long."""
    return view_options(PAGER(command))


PAGER = click.option("--no-pager", "pages", flag_value=False, default=True, help="Show a long answer without a pager.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")
COLOR = click.option(
    "--color",
    type=OneOf(["auto", "always", "never"]),
    default="auto",
    metavar="WHEN",
    help="Use colour: auto (on a terminal), always or never.",
)
CONFIG = click.option(
    "--config", metavar="FILE", help="Read this gloveport.toml instead of the nearest one.", shell_complete=complete_files
)
YES = click.option("--yes", is_flag=True, help="Answer every question with yes.")
NO_INPUT = click.option("--no-input", is_flag=True, help="Never ask: calls that need approval are not made (exit code 5).")
SOURCES = click.argument("sources", nargs=-1, metavar="[URL|FILE|COMMAND]…", shell_complete=complete_files)
PRIVATE = click.option("--private", is_flag=True, help="Let these sources reach loopback and private addresses.")
WRITES = click.option(
    "--writes", is_flag=True, help="Let programs call the tools of these sources that write without asking."
)
DIRECT = click.option(
    "--direct", cls=RareOption, multiple=True, metavar="PATTERN", help="offer these tools instead of execute"
)
TRUST_ANNOTATIONS = click.option(
    "--trust-annotations", is_flag=True, help="Let these MCP servers say which of their tools only read."
)
