"""`gloveport completion`: the script with which a shell completes commands, options, sources and tools.

click answers the shell's questions. Names of tools come from the lists on disk, so that a key press starts no server. It
also reads the names of sources off the settings files themselves: to load the settings takes longer than all the rest.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.surfaces.cli.tools.tool_names import kept_names

COMPLETE_VARIABLE = "_GLOVEPORT_COMPLETE"
MAX_SETTINGS_BYTES = 256 * 1024


def completion_command(shell: str, cli: click.Command) -> int:
    """Print the script of a shell; return the exit code."""
    from gloveport.surfaces.own_command import COMMAND_NAME

    found = get_completion_class(shell)
    if found is None:
        raise OptionError(f"there is no completion for {shell}", hint="the shells are bash, zsh and fish")
    sys.stdout.write(found(cli, {}, COMMAND_NAME, COMPLETE_VARIABLE).source() + "\n")
    return 0


def known_sources(config: str | None, incomplete: str) -> list[str]:
    """Return the configured sources whose name begins like this; none where the settings can't be read."""
    return [name for name in _sources(config) if name.startswith(incomplete)]


def known_tools(config: str | None, incomplete: str) -> list[str]:
    """Return the tools that the sources had when they were last open, of those whose address begins like this.

    Names that a shell would take for more than a word are left out.
    """
    start = incomplete.removeprefix("tools.")
    prefix = incomplete[: len(incomplete) - len(start)]
    source, dot, _ = start.partition(".")
    near = {name: file for name, file in _sources(config).items() if (name == source if dot else name.startswith(source))}
    names = (address for name, file in near.items() for address in kept_names(file, name))
    return [prefix + name for name in names if name.startswith(start) and name.replace(".", "_").isidentifier()]


def _sources(config: str | None) -> dict[str, str]:
    """Return the names of the sources, each with the untrusted project's file that has it, or an empty text."""
    found = dict.fromkeys(_sources_in(config_folder() / CONFIG_FILE), "")
    if config:
        return found | dict.fromkeys(_sources_in(Path(config)), "")
    project = find_project()
    return found | dict.fromkeys(_sources_in(project), str(project)) if project else found


def _sources_in(file: Path) -> list[str]:
    try:
        if file.stat().st_size > MAX_SETTINGS_BYTES:
            return []
        tables = tomllib.loads(file.read_text("utf-8")).get("sources", {})
    except (OSError, ValueError):
        return []
    return list(tables) if isinstance(tables, dict) else []
