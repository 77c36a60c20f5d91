"""The folders of this user's settings, data and caches, by the conventions of the platform, and the project's file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER_NAME = "gloveport"
CONFIG_FILE = "gloveport.toml"


def config_folder() -> Path:
    """Return the folder of the user's own `gloveport.toml`."""
    return _folder("XDG_CONFIG_HOME", ".config", "Library/Application Support")


def find_project(start: Path | None = None) -> Path | None:
    """Return the `gloveport.toml` of the working folder or of the nearest folder above it."""
    here = (start or Path.cwd()).resolve()
    return next((folder / CONFIG_FILE for folder in (here, *here.parents) if _is_ours(folder / CONFIG_FILE)), None)


def _is_ours(path: Path) -> bool:
    """Whether this user or root owns the file; another user may have put one into a folder above, such as /tmp."""
    return path.is_file() and path.stat().st_uid in (os.getuid(), 0)


def data_folder() -> Path:
    """Return the folder of data that must not be lost: accepted definitions, trusted sources and the server's token."""
    return _folder("XDG_DATA_HOME", ".local/share", "Library/Application Support")


def store_file() -> Path:
    """Return the file in which hosts record what happens, where no other is set."""
    return data_folder() / "store.sqlite"


def accepted_file(key: str, folder: Path | None = None) -> Path:
    """Return the file of an accepted definition, by its key, in a folder or in the user's own."""
    import hashlib  # not for a key press: completion needs the other folders

    return (folder or data_folder() / "accepted") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def cache_folder() -> Path:
    """Return the folder of data that can be created again: compiled definitions."""
    return _folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def _folder(variable: str, otherwise: str, on_mac: str) -> Path:
    given = os.environ.get(variable, "")
    if os.path.isabs(given):
        return Path(given) / FOLDER_NAME
    return Path.home() / (on_mac if sys.platform == "darwin" else otherwise) / FOLDER_NAME
