"""`gloveport plugins`: lists the plugins that are on, those that are not and why, and the installed ones that are off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gloveport.config import load_config
from gloveport.errors import GloveportError
from gloveport.surfaces.cli.pager import paged
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import Colour, visible_line

if TYPE_CHECKING:
    import click

MARKS: Mapping[str, tuple[str, Colour]] = {
    "on": ("✓", "green"),
    "off": ("·", "dim"),
    "untrusted": ("!", "yellow"),
    "failed": ("✗", "red"),
}
STATES = {"on": "on", "off": "installed and off", "untrusted": "not trusted", "failed": "failed"}


def plugins_command(view: ViewOptions) -> int:
    """List the plugins; return the exit code: 1 when one that is turned on has failed."""
    from gloveport.host.plugins.loading import installed_off
    from gloveport.host.plugins.port_plugins import PortPlugins

    named = PortPlugins(view.settings(quiet=True).plugins).found
    found = [*named, *installed_off(named)]
    failed = any(one.state == "failed" for one in found)
    if view.as_json:
        write_document(view.out, {"ok": not failed, "plugins": [one.as_data() for one in found]})
        return int(failed)
    with paged(view) as (out, err):
        for one in found:
            mark = out.paint(*MARKS[one.state])
            hooks = f" · {', '.join(one.hooks)}" if one.hooks else ""
            name = out.paint(visible_line(one.name), "bold")
            out.line(out.fold(f"{mark} {name} · {STATES[one.state]} · {visible_line(one.origin)}{hooks}", "    "))
            if one.problem:
                out.line(out.fold(f"    {visible_line(one.problem)}", "    "))
            if one.hint:
                out.line(out.fold(f"    hint: {visible_line(one.hint)}", "    "))
        if not found:
            err.line("no plugin is on, and none is installed")
        if any(one.state == "off" for one in found):
            err.line('hint: plugins = ["NAME"] at the top of gloveport.toml turns one on; it runs with your rights')
    return int(failed)


def plugin_command(name: str) -> click.Command | None:
    """Return the command of this name that a plugin adds; None when there is none."""
    try:
        plugins = load_config().plugins
    except GloveportError:  # every other command reports it
        return None
    if not plugins:
        return None
    from gloveport.host.plugins.port_plugins import PortPlugins

    return PortPlugins(plugins).commands().get(name)
