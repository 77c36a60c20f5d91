"""`gloveport completion`: the script with which a shell completes commands and options. click answers its questions."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

from gloveport.errors import OptionError
from gloveport.surfaces.own_command import COMMAND_NAME

COMPLETE_VARIABLE = "_GLOVEPORT_COMPLETE"


def completion_command(shell: str, cli: click.Command) -> int:
    """Print the script of a shell; return the exit code."""
    found = get_completion_class(shell)
    if found is None:
        raise OptionError(f"there is no completion for {shell}", hint="the shells are bash, zsh and fish")
    sys.stdout.write(found(cli, {}, COMMAND_NAME, COMPLETE_VARIABLE).source() + "\n")
    return 0
