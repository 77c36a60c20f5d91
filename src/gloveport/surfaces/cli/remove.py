"""`gloveport remove`: shows the change to gloveport.toml, asks, and takes the source out of the file."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.sources.removal import file_with, without_source
from gloveport.surfaces.terminal import stream


@dataclass(frozen=True, slots=True)
class RemoveOptions:
    """The command line of `gloveport remove`, not yet checked."""

    name: str
    scope: str | None
    yes: bool
    as_json: bool
    color: str


def remove_command(options: RemoveOptions) -> int:
    """Remove a source from the settings and return the exit code."""
    err, out = stream(sys.stderr, options.color), stream(sys.stdout, options.color)
    files = {"project": find_project(), "user": config_folder() / CONFIG_FILE}
    chosen = {scope: path for scope, path in files.items() if options.scope in (None, scope)}
    path = file_with(options.name, chosen, "choose one: --scope project")
    change = without_source(path, options.name)
    if not options.as_json:
        change.show(err)
    ask(f"Remove {options.name} from {path}?", err, yes=options.yes, as_json=options.as_json)
    change.make()
    if options.as_json:
        write_document(out, {"ok": True, "file": str(path), "source": options.name})
    else:
        err.line(f"{err.paint('✓', 'green')} removed from {path}")
    return 0
