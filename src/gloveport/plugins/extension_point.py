"""An extension point: what Gloveport itself has there and what plugins add, by name and by one rule."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from gloveport.errors import OptionError

T = TypeVar("T")


class ExtensionPoint(Mapping[str, T], Generic[T]):
    """The entries of an extension point, in the order in which they were added.

    An entry may be the text `module:attribute`: it is imported when it is first used. No name is given away twice, so a
    plugin can't take the place of a built-in.
    """

    def __init__(self, what: str, entries: Mapping[str, T | str], plugins: Mapping[str, str] | None = None) -> None:
        self.what = what
        self._entries: dict[str, Any] = dict(entries)
        self._plugins = dict(plugins or {})

    def __getitem__(self, name: str) -> T:
        found = self._entries[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self._entries[name] = getattr(importlib.import_module(module), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def plugin_of(self, name: str) -> str:
        """Return the plugin that has added an entry; empty for a built-in."""
        return self._plugins.get(name, "")

    def with_added(self, plugin: str, added: Mapping[str, T | str]) -> ExtensionPoint[T]:
        """Return the same registry with the entries of a plugin; raise OptionError for a name that is taken."""
        for name in added:
            if name in self._entries:
                owner = f"the plugin {self._plugins[name]}" if name in self._plugins else "Gloveport itself"
                raise OptionError(f"the plugin {plugin} adds the {self.what} {name!r:.60}, which {owner} has already")
        return ExtensionPoint(self.what, {**self._entries, **added}, {**self._plugins, **dict.fromkeys(added, plugin)})
