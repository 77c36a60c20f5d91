"""What plugins are written against. A plugin marks with `@hook` what it implements: see docs/plugins.md.

hooks              the hooks, and the values that they take and return
extension_point    what there is at an extension point: the built-ins and what plugins add
utcp               a plugin: UTCP manuals as sources
log_sink           a plugin: lines of JSON for runs and calls

The host loads plugins and calls their hooks: `host/plugins/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gloveport.plugins.hooks import Additions, AllowedCall, StartingRun, hook

__all__ = ["Additions", "AllowedCall", "StartingRun", "hook"]


def __getattr__(name: str) -> Any:
    # On first use: the registries are used by every run, and the library of the hooks only where a plugin is on.
    if name not in __all__:
        raise AttributeError(f"module 'gloveport.plugins' has no attribute {name!r}")
    from gloveport.plugins import hooks

    return getattr(hooks, name)
