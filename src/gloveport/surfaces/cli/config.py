"""`gloveport config`: shows the settings with their places, and trusts those of a project's file that loosen yours."""

from __future__ import annotations

from typing import Any

from gloveport.config import Config, PluginConfig, load_config
from gloveport.host.plugins.trust import needs_trust as plugin_needs_trust
from gloveport.host.plugins.trust import trust as trust_plugin
from gloveport.loosening import trust_settings
from gloveport.sources.trust import needs_trust, what_it_does
from gloveport.surfaces.cli.pager import paged
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.settings import HOW_TO_TRUST
from gloveport.surfaces.sources.source_rows import location_of
from gloveport.surfaces.terminal import visible_line

PLUGIN_RIGHTS = "runs in the host, where it may do what you may"


def show_command(view: ViewOptions) -> int:
    """Show every setting, its place, and whether and why it is ignored; return the exit code."""
    settings = view.settings(quiet=True)
    rows = [*_settings(settings), *_sources(settings)]
    if view.as_json:
        write_document(view.out, {"ok": True, "files": [str(path) for path in settings.files], "settings": rows})
        return 0
    with paged(view) as (out, err):
        for row in rows:
            mark = out.paint("!", "yellow") if row["ignored"] else " "
            place = out.paint(visible_line(row["place"] or ""), "dim")
            text = f"{mark} {visible_line(row['key'])} = {visible_line(str(row['value']))}  {place}".rstrip()
            out.line(out.fold(text, " " * 4))
            if row["ignored"]:
                out.line(out.fold(f"    ignored: {visible_line(row['ignored'])}", " " * 4))
        if settings.ignored or any(row["ignored"] and row["key"] == "plugins" for row in rows):
            err.line(err.fold(f"hint: {HOW_TO_TRUST}", " " * 6))
        if not rows:
            err.line("there are no settings: every value is the default")
    return 0


def _settings(settings: Config) -> list[dict[str, Any]]:
    ignored = [
        {"key": each.name, "value": each.value, "place": each.place, "ignored": f"not trusted: {each.reason}"}
        for each in settings.ignored
    ]
    tables = {"limits": settings.limits, "sandbox": settings.sandbox}
    names = [(f"{table}.{key}", value) for table, values in tables.items() for key, value in values.items()]
    used = [{"key": key, "value": value, "place": settings.origins.get(key), "ignored": None} for key, value in names]
    plugins = [
        {
            "key": "plugins",
            "value": _shown(one),
            "place": one.place,
            "ignored": f"not trusted: it {PLUGIN_RIGHTS}" if plugin_needs_trust(one) else None,
        }
        for one in settings.plugins
    ]
    return [*used, *plugins, *ignored]


def _shown(plugin: PluginConfig) -> str:
    options = f" with {dict(plugin.options)!a}" if plugin.options else ""
    return f"{plugin.spec}{options}"


def _sources(settings: Config) -> list[dict[str, Any]]:
    return [
        {
            "key": f"sources.{config.name}",
            "value": f"{config.kind} {location_of(config)}",
            "place": settings.origins.get(f"sources.{config.name}.{config.kind}"),
            "ignored": _untrusted(config.name, what_it_does(config)) if needs_trust(config) else None,
        }
        for config in settings.sources
    ]


def _untrusted(name: str, does: str) -> str:
    return f"not trusted: it {does}; `gloveport tools trust {name}` lets it be opened"


def trust_command(view: ViewOptions, *, yes: bool) -> int:
    """Let the settings of a project's file that loosen the user's take effect; return the exit code."""
    settings = load_config()
    plugins = [one for one in settings.plugins if plugin_needs_trust(one)]
    if settings.project is None or not (settings.ignored or plugins):
        _done(view, "no setting of a project's file needs trust", settings, trusted=False)
        return 0
    for each in settings.ignored:
        view.err.line(view.err.fold(visible_line(f"{each.place}: {each.shown} ({each.reason})"), " " * 4))
    for plugin in plugins:
        text = f"{plugin.place}: plugins: {_shown(plugin)} (it {PLUGIN_RIGHTS})"
        view.err.line(view.err.fold(visible_line(text), " " * 4))
    ask("Trust these settings?", view.err, yes=yes, as_json=view.as_json)
    for plugin in plugins:
        trust_plugin(plugin)
    if settings.ignored:
        trust_settings(settings.project, settings.ignored)
    _done(view, f"these settings of {settings.project} take effect", settings, trusted=True)
    return 0


def _done(view: ViewOptions, text: str, settings: Config, *, trusted: bool) -> None:
    if view.as_json:
        names = [each.name for each in settings.loosening] + [f"plugins.{one.name}" for one in settings.plugins]
        write_document(view.out, {"ok": True, "trusted": trusted, "settings": names})
    else:
        view.err.line(f"{view.err.paint('✓', 'green')} {visible_line(text)}")
