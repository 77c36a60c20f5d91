"""How this `gloveport` is started again: by a client of any folder, or by a person in this shell."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

COMMAND_NAME = "gloveport"
_COMMAND = re.compile(r"(?:^|(?<=`))gloveport(?= )")
_ACCOUNT_COMMAND = re.compile(r"`gloveport auth (?:add|login) [^`]+(?=`)")


def own_command() -> tuple[str, ...]:
    """Return the words that start this installation from any folder, without a PATH."""
    asked = Path(sys.argv[0])
    for command in (asked if asked.name == COMMAND_NAME else None, Path(sys.executable).with_name(COMMAND_NAME)):
        if command is not None and command.is_file():
            return (os.path.abspath(command),)
    return sys.executable, "-P", "-m", "gloveport.surfaces.cli.main"


def as_typed(text: str) -> str:
    """Return a command, or a text with commands in backticks, as a person can paste it: with a path if it needs one.

    Commands for the account of a source name the settings that this command was given: no others may know the source.
    """
    if named := _named_settings():
        text = _ACCOUNT_COMMAND.sub(lambda found: f"{found[0]} --config {shlex.quote(named)}", text)
    if "gloveport " not in text or Path(sys.argv[0]).name != COMMAND_NAME:
        return text
    return _COMMAND.sub(lambda _: typed_command(), text)


def _named_settings() -> str:
    """Return the file that this command was given with --config, if any."""
    for word, after in itertools.pairwise([*sys.argv[1:], ""]):
        if word == "--config" or word.startswith("--config="):
            return after if word == "--config" else word.removeprefix("--config=")
    return ""


@cache
def typed_command() -> str:
    """Return what a person types here: the name if the PATH leads to this installation, else the shortest path to it."""
    command, *rest = own_command()
    found = shutil.which(COMMAND_NAME)
    if not rest and found is not None and os.path.samefile(found, command):
        return COMMAND_NAME
    near = os.path.relpath(command)
    shown = near if not near.startswith("..") and os.sep in near else command
    return shlex.join([shown, *rest])
