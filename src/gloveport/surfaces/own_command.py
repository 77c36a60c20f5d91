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
_PIP = re.compile(r"(?:^|(?<=`))pip(?= (?:un)?install )")
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

    Packages are installed with the `pip` of this installation. Commands for the account of a source name the settings that
    this command was given: no others may know the source.
    """
    if named := _named_settings():
        text = _ACCOUNT_COMMAND.sub(lambda found: f"{found[0]} --config {shlex.quote(named)}", text)
    text = _PIP.sub(lambda _: _pip(), text)
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
    if not rest and _is_on_path(COMMAND_NAME, command):
        return COMMAND_NAME
    return shlex.join([_near(command), *rest])


def _pip() -> str:
    """Return the `pip` that installs packages for this installation, as a person types it here."""
    own = Path(sys.executable).with_name("pip")
    if not own.exists():
        return f"{shlex.quote(_near(sys.executable))} -m pip"
    return "pip" if _is_on_path("pip", str(own)) else shlex.quote(_near(str(own)))


def _is_on_path(name: str, command: str) -> bool:
    found = shutil.which(name)
    return found is not None and os.path.samefile(found, command)


def _near(command: str) -> str:
    """Return the shorter path from here to what lies below this folder."""
    near = os.path.relpath(command)
    return near if not near.startswith("..") and os.sep in near else command
