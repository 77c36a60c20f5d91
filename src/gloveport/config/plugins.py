"""The plugins that the settings turn on: `plugins = ["./my_plugin.py", "name-of-an-entry-point"]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gloveport.config.layers import SettingsFile
from gloveport.errors import OptionError

MAX_PLUGINS = 100
HINT = 'write plugins = ["./my_plugin.py", "name", {plugin = "name", option = "value"}]'


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A plugin that is turned on: the file or the name of the entry point, and the options that it is created with.

    `settings` is the project's file that names it; it is empty for a plugin of the user's own.
    """

    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""
    place: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file; else an installed entry point."""
        return self.spec.endswith(".py") or "/" in self.spec

    @property
    def name(self) -> str:
        """What messages call it, and programs the source of its functions."""
        return (Path(self.spec).stem if self.is_file else self.spec).replace("-", "_")


def plugin_from(value: Any, *, base: Path | None = None, settings: str = "", place: str = "") -> PluginConfig:
    """Return the plugin of one entry of the list; paths are relative to `base`. Raise OptionError for a wrong entry."""
    spec, options = (value, {}) if not isinstance(value, Mapping) else (value.get("plugin"), dict(value))
    options.pop("plugin", None)
    if not isinstance(spec, str) or not spec or "\0" in spec:
        prefix = f"{place}: " if place else ""
        raise OptionError(f"{prefix}a plugin is a file or a name, or a table with `plugin`, not {value!r:.60}", hint=HINT)
    found = PluginConfig(spec, options, settings, place)
    if not found.is_file:
        return found
    return PluginConfig(str(((base or Path.cwd()) / Path(spec).expanduser()).resolve()), options, settings, place)


def plugins_from(layers: Sequence[SettingsFile], theirs: SettingsFile | None) -> tuple[PluginConfig, ...]:
    """Return the plugins of all files, the user's first: a project's file adds plugins, and turns none off."""
    found: list[PluginConfig] = []
    for layer in layers:
        place = layer.place(("plugins",))
        stated = layer.values.get("plugins", [])
        if not isinstance(stated, list) or len(stated) > MAX_PLUGINS:
            raise OptionError(f"{place}: plugins must be a list of up to {MAX_PLUGINS} files and names", hint=HINT)
        settings = str(layer.path) if layer is theirs else ""
        for value in stated:
            one = plugin_from(value, base=layer.path.parent, settings=settings, place=place)
            if not any((one.spec, one.options) == (other.spec, other.options) for other in found):
                found.append(one)
    return tuple(found)
