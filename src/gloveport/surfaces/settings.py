"""Load the settings of a command, and report once what in a project's file has no effect."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from gloveport.config import Config, load_config
from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder
from gloveport.surfaces.terminal import stream, visible_line

HOW_TO_TRUST = "review them; `gloveport config trust` lets them take effect"
_reported: set[tuple[str, str]] = set()


def load_settings(file: str | None, *, color: str = "auto", quiet: bool = False, named: Collection[str] = ()) -> Config:
    """Return the settings of this user and this project, or those with the named file as the project's.

    `named` are the sources of the command line, for which the settings may have options.
    """
    settings = load_config(Path(file) if file else None)
    for name in settings.options if not quiet and sys.stderr is not None else ():
        key = (name, "options")
        if name not in named and key not in _reported:
            _reported.add(key)
            err = stream(sys.stderr, color)
            text = f"[sources.{name}] has no kind: it only sets options of a source `{name}` of `gloveport mcp` or `serve`"
            err.line(f"{err.paint('!', 'yellow')} {visible_line(text)}")
    fresh = [each for each in settings.ignored if (each.place, each.shown) not in _reported]
    _reported.update((each.place, each.shown) for each in fresh)
    if fresh and not quiet and sys.stderr is not None:
        err = stream(sys.stderr, color)
        for each in fresh:
            text = visible_line(f"{each.place}: {each.shown} is ignored ({each.reason})")
            err.line(err.fold(f"{err.paint('!', 'yellow')} {text}", "  "))
        err.line(err.fold(f"  hint: {HOW_TO_TRUST}", "    "))
    return settings


def settings_files(settings: Config) -> dict[str, Path | None]:
    """Return the files that a change of these settings goes to: the project's, if there is one, and the user's."""
    own = settings.watched[0] if settings.watched else config_folder() / CONFIG_FILE
    return {"project": settings.named or settings.project, "user": own}


def chosen_file(settings: Config, which: str | None) -> Path:
    """Return the `project`'s or the `user`'s file: by default, the project's if there is one. Raise OptionError."""
    files = settings_files(settings)
    path = files[which or ("project" if files["project"] else "user")]
    if path is None:
        raise OptionError("there is no project here", code="not-found", hint="choose the user's settings")
    return path
