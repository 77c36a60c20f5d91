"""`gloveport sources`: the configured sources, and whether each can be used."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from gloveport.config import SourceConfig
from gloveport.host.port import Gloveport
from gloveport.sources.trust import needs_trust
from gloveport.surfaces.cli.tools.command import exit_code_of, not_open, show_problems, with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import answer_document, write_document
from gloveport.surfaces.terminal import Colour, visible_line
from gloveport.types import Problem
from gloveport.urls import shown

STATE_COLOURS: Mapping[str, Colour] = {"open": "green", "untrusted": "yellow", "opening": "yellow", "broken": "red"}


def sources_command(view: ViewOptions) -> int:
    """List the configured sources with their states; return the exit code."""
    return with_port(view, lambda port: _sources(view, port), naming="")


async def _sources(view: ViewOptions, port: Gloveport) -> int:
    settings = view.settings()
    rows = [_row(port, config, settings.places.get(config.name)) for config in settings.sources]
    wrong = not_open(port)
    if view.as_json:
        write_document(view.out, answer_document({"sources": rows}, wrong))
        return exit_code_of(wrong)
    show_problems(view.err, port)
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        state = view.out.paint(f"{row['state']:<10}", STATE_COLOURS[row["state"]])
        counted = (
            f"{row['tools']:,} tool{'s' * (row['tools'] != 1)}, {row['writes']:,} write" if row["state"] == "open" else ""
        )
        suspended = f", {row['suspended']:,} suspended" if row["suspended"] else ""
        place = view.out.paint(visible_line(f"{row['kind']} {row['location']}"), "dim")
        line = f"{row['name']:<{width}}  {state}  {counted + suspended:<24}  {place}".rstrip()
        view.out.line(view.out.fold(line, "    "))
    if not rows:
        view.err.line("there are no sources yet: `gloveport add` adds one")
    return exit_code_of(wrong)


def _row(port: Gloveport, config: SourceConfig, place: str | None) -> dict[str, Any]:
    tools = [tool for tool in port.catalog.tools if tool.source == config.name]
    entries = [port.catalog.entry(tool.address) for tool in tools]
    opened = any(source.name == config.name for source in port.catalog.sources)
    problem = next((one for one in port.problems if one.source == config.name and one.broken), None)
    return {
        "name": config.name,
        "kind": config.kind,
        "location": location_of(config),
        "file": place,
        "state": _state(config, problem, opened=opened),
        "tools": len(tools),
        "writes": sum(tool.writes for tool in tools),
        "suspended": sum(bool(entry and entry.suspended) for entry in entries),
        "problem": problem.message if problem else None,
        "hint": problem.hint if problem else None,
    }


def _state(config: SourceConfig, problem: Problem | None, *, opened: bool) -> str:
    if opened:
        return "open"
    return "untrusted" if needs_trust(config) else "opening" if problem and problem.opening else "broken"


def location_of(config: SourceConfig) -> str:
    """Return where a source is, for people: a command, a file, or a URL without credentials."""
    if not isinstance(config.location, str):
        return shlex.join(config.location)
    return shown(config.location) if "://" in config.location else config.location
