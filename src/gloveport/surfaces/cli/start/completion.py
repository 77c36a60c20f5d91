"""`gloveport completion`: the script with which a shell completes commands, options, sources and tools.

click answers the shell's questions, except for the name of a tool: loading click takes longer than all the rest. Names of
tools come from the lists on disk, so that a key press starts no server. The names of sources are read off the settings
files themselves: to load the settings takes long too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.surfaces.cli.tools.tool_names import kept_names

TYPE_CHECKING = False  # `typing` is not for a key press
if TYPE_CHECKING:
    import click

COMPLETE_VARIABLE = "_GLOVEPORT_COMPLETE"
MAX_SETTINGS_BYTES = 256 * 1024
# The commands whose first argument is a tool.
TOOL_COMMANDS = frozenset({("tools", "describe"), ("tools", "call"), ("policy", "explain")})
# How a tool's name is written: for our script of bash as it is, for click's scripts as click writes a word.
WORD_FORMS = {"bash_complete": "{}", "fish_complete": "plain,{}", "zsh_complete": "plain\n{}\n_"}
# click's own script reads each word in a loop of the shell, which takes 150 ms for 5,000 of them. Names of tools come
# without a kind, because to strip it off each takes as long as all the rest that bash does.
BASH_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n' words
    words=$(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
    case "$words" in
        '') COMPREPLY=() ;;
        dir,*) compopt -o dirnames ;;
        file,*) compopt -o default ;;
        plain,*) words=($words); COMPREPLY=("${words[@]#plain,}") ;;
        *) mapfile -t COMPREPLY <<<"$words" ;;
    esac
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
# click's script for fish cuts a description at its first comma.
FISH_SPLIT = ('(string split "," $completion)', '(string split --max 1 "," $completion)')


def completion_command(shell: str, cli: click.Command) -> int:
    """Print the script of a shell; return the exit code."""
    from click.shell_completion import get_completion_class

    from gloveport.errors import OptionError
    from gloveport.surfaces.own_command import COMMAND_NAME

    found = get_completion_class(shell)
    if found is None:
        raise OptionError(f"there is no completion for {shell}", hint="the shells are bash, zsh and fish")
    script = found(cli, {}, COMMAND_NAME, COMPLETE_VARIABLE)
    text = BASH_SCRIPT % script.source_vars() if shell == "bash" else script.source()
    sys.stdout.write(text.replace(*FISH_SPLIT) + "\n")
    return 0


def complete_tool() -> bool:
    """Answer a shell that asks for the name of a tool; return whether it does. click answers all other questions."""
    shell, line, place = (os.environ.get(name, "") for name in (COMPLETE_VARIABLE, "COMP_WORDS", "COMP_CWORD"))
    words = line.split()
    if shell not in WORD_FORMS or tuple(words[1:3]) not in TOOL_COMMANDS or any(sign in line for sign in "\"'\\"):
        return False
    incomplete = "".join(words[3:])
    asked = incomplete if shell == "fish_complete" else "3"  # the word itself, or its number
    if len(words) > 4 or place != asked or incomplete.startswith("-"):
        return False
    sys.stdout.writelines(f"{WORD_FORMS[shell].format(name)}\n" for name in known_tools(None, incomplete))
    return True


def known_sources(config: str | None, incomplete: str) -> list[str]:
    """Return the configured sources whose name begins like this; none where the settings can't be read."""
    return [name for name in _sources(config) if name.startswith(incomplete)]


def known_tools(config: str | None, incomplete: str) -> list[str]:
    """Return the tools that the sources had when they were last open, of those whose address begins like this."""
    start = incomplete.removeprefix("tools.")
    prefix = incomplete[: len(incomplete) - len(start)]
    source, dot, _ = start.partition(".")
    near = {name: file for name, file in _sources(config).items() if (name == source if dot else name.startswith(source))}
    names = (address for name, file in near.items() for address in kept_names(file, name))
    return [prefix + name for name in names if name.startswith(start)]


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
        text = file.read_text("utf-8")
        found: dict[str, None] = {}
        for line in filter(_names_source, text.splitlines()):
            before, _, name = line.strip().partition("]")[0].partition("[sources.")
            name = name.partition(".")[0]
            if before or not name.replace("-", "_").isidentifier():
                return _parsed_sources(text)
            found[name] = None
        return list(found)
    except (OSError, ValueError):
        return []


def _names_source(line: str) -> bool:
    return "sources" in line and not line.lstrip().startswith("#")


def _parsed_sources(text: str) -> list[str]:
    import tomllib  # not for a key press, where every source has a plain header of its own

    tables = tomllib.loads(text).get("sources", {})
    return list(tables) if isinstance(tables, dict) else []
