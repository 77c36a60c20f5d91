"""The sources of a port as rows: what each is, whether it can be used, and what is wrong with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from gloveport.config import Config, SourceConfig
from gloveport.host.port import Gloveport
from gloveport.sources.trust import needs_trust
from gloveport.types import Problem
from gloveport.urls import shown


def configured_rows(port: Gloveport, settings: Config) -> list[dict[str, Any]]:
    """Return a row for each source of the settings."""
    return [source_row(port, config.name, config, settings.places.get(config.name)) for config in settings.sources]


def all_rows(port: Gloveport, settings: Config) -> list[dict[str, Any]]:
    """Return a row for each source: those of the settings, those of the command line, and functions."""
    rows = {row["name"]: row for row in configured_rows(port, settings)}
    others = (*(source.name for source in port.catalog.sources), *(one.source for one in port.problems))
    for name in others:
        if name not in rows:
            opened = port.opened_source(name)
            rows[name] = source_row(port, name, opened.config if opened else None, None)
    return list(rows.values())


def source_row(port: Gloveport, name: str, config: SourceConfig | None, place: str | None) -> dict[str, Any]:
    """Return what is known about a source. `place` is where the settings have it."""
    tools = [tool for tool in port.catalog.tools if tool.source == name]
    entries = [port.catalog.entry(tool.address) for tool in tools]
    is_open = any(source.name == name for source in port.catalog.sources)
    mine = [one for one in port.problems if one.source == name]
    problem = next((one for one in mine if one.broken), None)
    return {
        "name": name,
        "kind": config.kind if config else "functions" if is_open else "unknown",
        "location": location_of(config) if config else "",
        "file": place,
        "state": _state(config, problem, is_open=is_open),
        "tools": len(tools),
        "writes": sum(tool.writes for tool in tools),
        "suspended": sum(bool(entry and entry.suspended) for entry in entries),
        "problem": problem.message if problem else None,
        "hint": problem.hint if problem else None,
        "warnings": list(_texts(one for one in mine if not one.broken)),
    }


def _texts(problems: Iterable[Problem]) -> Iterable[str]:
    return (f"{one.message}; {one.hint}" if one.hint else one.message for one in problems)


def _state(config: SourceConfig | None, problem: Problem | None, *, is_open: bool) -> str:
    if is_open:
        return "open"
    if config is not None and needs_trust(config):
        return "untrusted"
    return "opening" if problem and problem.opening else "broken"


def location_of(config: SourceConfig) -> str:
    """Return where a source is, for people: a command, a file, or a URL without credentials."""
    if not isinstance(config.location, str):
        return shlex.join(config.location)
    return shown(config.location) if "://" in config.location else config.location
