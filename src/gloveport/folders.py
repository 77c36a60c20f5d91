"""Where this user's settings, data and caches live, by the conventions of the platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = "gloveport"


def config_folder() -> Path:
    """The folder of the user's own `gloveport.toml`."""
    return _folder("XDG_CONFIG_HOME", ".config", "Library/Application Support")


def data_folder() -> Path:
    """The folder of what must not be lost: what was accepted and approved."""
    return _folder("XDG_DATA_HOME", ".local/share", "Library/Application Support")


def cache_folder() -> Path:
    """The folder of what can be made again: compiled definitions."""
    return _folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def _folder(variable: str, otherwise: str, on_mac: str) -> Path:
    given = os.environ.get(variable, "")
    if os.path.isabs(given):
        return Path(given) / NAME
    return Path.home() / (on_mac if sys.platform == "darwin" else otherwise) / NAME
