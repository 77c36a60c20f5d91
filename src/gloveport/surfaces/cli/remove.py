"""`gloveport remove`: shows the change to gloveport.toml, asks, and takes the source out of the file."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.file_change import FileChange, ask, parse_toml, read_text
from gloveport.surfaces.documents import write_document
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
    path = _file_with(options.name, options.scope)
    change = _without(path, options.name)
    if not options.as_json:
        change.show(err)
    ask(f"Remove {options.name} from {path}?", err, yes=options.yes, as_json=options.as_json)
    change.make()
    if options.as_json:
        write_document(out, {"ok": True, "file": str(path), "source": options.name})
    else:
        err.line(f"{err.paint('✓', 'green')} removed from {path}")
    return 0


def _file_with(name: str, scope: str | None) -> Path:
    """Return the file that has the source; raise OptionError if both or neither have it."""
    files = {"project": find_project(), "user": config_folder() / CONFIG_FILE}
    known = {each: _names(path) for each, path in files.items() if path is not None and scope in (None, each)}
    having = [each for each, names in known.items() if name in names]
    if len(having) > 1:
        raise OptionError(
            f"both the project's and the user's file have [sources.{name}]", hint="choose one: --scope project"
        )
    path = files[having[0]] if having else None
    if path is None:
        names = sorted({each for names in known.values() for each in names})
        hint = did_you_mean(name, names) or (f"the sources are {', '.join(names)}" if names else "there are no sources")
        raise OptionError(f"there is no source `{name}` in the settings", hint=hint)
    return path


def _names(path: Path) -> list[str]:
    sources = parse_toml(path, read_text(path) or "").get("sources", {})
    return list(sources) if isinstance(sources, dict) else []


def _without(path: Path, name: str) -> FileChange:
    """Return the change that removes the source and nothing else; comments and order stay."""
    before = read_text(path) or ""
    wanted = parse_toml(path, before)
    del wanted["sources"][name]
    try:
        document = tomlkit.parse(before)
        sources = document["sources"]
        assert isinstance(sources, MutableMapping)
        del sources[name]
        after = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise OptionError(f"{path} can't be edited: {error}", hint=f"delete [sources.{name}] by hand") from None
    if parse_toml(path, after).get("sources", {}) != wanted["sources"]:
        raise OptionError(f"[sources.{name}] can't be removed from {path} without changing more", hint="delete it by hand")
    return FileChange(path, before, after)
