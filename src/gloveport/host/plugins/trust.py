"""Which plugins of a project's settings may be imported: those that this user has trusted, exactly as they are (M6, D7).

A plugin runs in the host, with its rights. A file is trusted by its content, and with it the files of the project that it
may import; an installed plugin by its entry point and the version of its package; both with their options.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from gloveport.config import PluginConfig
from gloveport.host.plugins.installed import installed_plugins, origin_of
from gloveport.sources.functions.importable_files import importable_files, project_folders
from gloveport.sources.functions.trusted_imports import TrustedFiles
from gloveport.trust_store import digest_of, ever_trusted, record, trusted


def needs_trust(plugin: PluginConfig) -> bool:
    """Return whether a project's file turns the plugin on, and this user has not trusted that."""
    return bool(plugin.settings) and trusted(_digest(plugin)) is None


def was_trusted(plugin: PluginConfig) -> bool:
    """Return whether the user has trusted this plugin of this file in whatever version."""
    return ever_trusted(_about(plugin))


def trust(plugin: PluginConfig) -> None:
    """Record that this user lets the plugin be imported, with the files of the project that it may import."""
    files = importable_files(plugin.spec, plugin.settings) if plugin.is_file else {}
    record(_digest(plugin), {**_about(plugin), "options": plugin.options, "files": files})


def trusted_files(plugin: PluginConfig) -> TrustedFiles | None:
    """Return the files of the project that a trusted plugin may import; None for a plugin that is not a project's."""
    if not plugin.settings or not plugin.is_file:
        return None
    about = trusted(_digest(plugin)) or {}
    folders = project_folders(plugin.spec, plugin.settings)
    return TrustedFiles(plugin.name, folders, about.get("files") or {}, "plugin")


def _about(plugin: PluginConfig) -> dict[str, Any]:
    return {"settings": plugin.settings, "plugin": plugin.spec}


def _digest(plugin: PluginConfig) -> str:
    exact: dict[str, Any] = {
        "settings": os.path.realpath(plugin.settings),
        "plugin": plugin.spec,
        "options": plugin.options,
    }
    if not plugin.is_file:
        entry = installed_plugins().get(plugin.spec)
        exact["origin"] = None if entry is None else origin_of(entry)
    elif os.path.isfile(plugin.spec):
        exact["content"] = hashlib.sha256(Path(plugin.spec).read_bytes()).hexdigest()
    return digest_of(exact)
