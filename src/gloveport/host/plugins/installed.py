"""The plugins that installed packages offer, by the entry points of the group `gloveport`. Nothing here imports one."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

GROUP = "gloveport"


def installed_plugins() -> dict[str, EntryPoint]:
    """Return the entry points by name; of two with the same name, the first."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return found


def origin_of(entry: EntryPoint) -> str:
    """Return where an entry point comes from: `gloveport-github 1.2 (gloveport_github.plugin:Plugin)`."""
    package = f"{entry.dist.name} {entry.dist.version} " if entry.dist is not None else ""
    return f"{package}({entry.value})"
