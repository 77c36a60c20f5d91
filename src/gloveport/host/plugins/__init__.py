"""Plugins of a port: found, trusted, loaded, called, closed. None is imported before `plugins = [...]` names it.

installed     the entry points that installed packages offer, without importing them
trust         whether the user lets a project's file turn a plugin on
extensions    the built-in kinds of sources, providers and engines, and what plugins add
loading       the plugins that are turned on, each on, untrusted or failed
port_plugins  calls the hooks of one port; a hook that fails is named and takes nothing else down

Without plugins nothing here is loaded but this module, and no call costs more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from gloveport.host.plugins.extensions import BUILT_IN
from gloveport.types import Outcome

if TYPE_CHECKING:
    from gloveport.host.plugins.port_plugins import PortPlugins
    from gloveport.host.runs.held_runs import HeldRun
    from gloveport.host.runs.run_request import RunRequest

logger = logging.getLogger("gloveport")

__all__ = ["PluginArgument", "port_plugins"]

PluginArgument = Any
"""What `Gloveport(plugins=[…])` takes: a file, the name of an entry point, `PluginConfig`, a module or an object."""


class NoPlugins:
    """Stands in for the plugins of a port that has none."""

    extensions = BUILT_IN
    check_call = None

    def around(
        self,
        run: Callable[[RunRequest, HeldRun | None], Coroutine[Any, Any, Outcome]],
        request: RunRequest,
        held: HeldRun | None = None,
    ) -> Coroutine[Any, Any, Outcome]:
        return run(request, held)

    async def close(self) -> None: ...


def port_plugins(given: Sequence[PluginArgument]) -> PortPlugins | NoPlugins:
    """Return the plugins of a port. The log says which are not on, and why: it is nobody's business but the host's."""
    if not given:
        return NoPlugins()
    from gloveport.host.plugins.port_plugins import PortPlugins

    plugins = PortPlugins(given)
    for one in plugins.found:
        if one.problem:
            hint = f" (hint: {one.hint})" if one.hint else ""
            logger.warning("the plugin %s is not on: %s%s", one.name, one.problem, hint)
    return plugins
