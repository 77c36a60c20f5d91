"""Takes a source out of a settings file, and nothing else: comments and order stay."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.file_change import FileChange, parse_toml, read_text


def file_with(name: str, files: Mapping[str, Path | None], hint: str) -> Path:
    """Return the file that has a source; raise OptionError if several or none have it. `hint` says how to choose."""
    known = {each: _names(path) for each, path in files.items() if path is not None}
    having = [each for each, names in known.items() if name in names]
    if len(having) > 1:
        raise OptionError(f"both the project's and the user's file have [sources.{name}]", hint=hint)
    path = files[having[0]] if having else None
    if path is None:
        names = sorted({each for names in known.values() for each in names})
        meant = did_you_mean(name, names) or (f"the sources are {', '.join(names)}" if names else "there are no sources")
        raise OptionError(f"there is no source `{name}` in the settings", code="not-found", hint=meant)
    return path


def _names(path: Path) -> list[str]:
    sources = parse_toml(path, read_text(path) or "").get("sources", {})
    return list(sources) if isinstance(sources, dict) else []


def without_source(path: Path, name: str) -> FileChange:
    """Return the change that removes the source; raise OptionError where that would change more."""
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
