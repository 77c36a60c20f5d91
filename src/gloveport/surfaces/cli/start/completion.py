"""`gloveport completion`: the script with which a shell completes commands, options, sources and tools.

click answers the shell's questions. Names of tools come from the lists on disk, so that a key press starts no server.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from gloveport.config import SourceConfig, load_config
from gloveport.errors import GloveportError, OptionError
from gloveport.surfaces.own_command import COMMAND_NAME

COMPLETE_VARIABLE = "_GLOVEPORT_COMPLETE"


def completion_command(shell: str, cli: click.Command) -> int:
    """Print the script of a shell; return the exit code."""
    found = get_completion_class(shell)
    if found is None:
        raise OptionError(f"there is no completion for {shell}", hint="the shells are bash, zsh and fish")
    sys.stdout.write(found(cli, {}, COMMAND_NAME, COMPLETE_VARIABLE).source() + "\n")
    return 0


def known_sources(config: str | None, incomplete: str) -> list[str]:
    """Return the configured sources whose name begins like this; none where the settings can't be read."""
    return [source.name for source in _sources(config) if source.name.startswith(incomplete)]


def known_tools(config: str | None, incomplete: str) -> list[str]:
    """Return the tools that the sources had when they were last open, of those whose address begins like this.

    Names that a shell would take for more than a word are left out.
    """
    from gloveport.surfaces.cli.tools.tool_lists import cached_names

    start = incomplete.removeprefix("tools.")
    prefix = incomplete[: len(incomplete) - len(start)]
    source, dot, _ = start.partition(".")
    near = [each for each in _sources(config) if (each.name == source if dot else each.name.startswith(source))]
    names = (name for each in near for name in cached_names(each))
    return [prefix + name for name in names if name.startswith(start) and name.replace(".", "_").isidentifier()]


def _sources(config: str | None) -> Sequence[SourceConfig]:
    try:
        return load_config(Path(config) if config else None).sources
    except GloveportError:
        return ()
