"""`gloveport sources` and `gloveport remove`: what is configured, how it fares, and the way back from `add`."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport.config import FILE, SourceConfig, find_project
from gloveport.errors import OptionError
from gloveport.folders import config_folder
from gloveport.host.port import Gloveport
from gloveport.policy.egress.urls import shown
from gloveport.sources.trust import needs_approval
from gloveport.surfaces.cli.file_change import Change, ask, read_text
from gloveport.surfaces.cli.report import answer_document
from gloveport.surfaces.cli.tools import View, not_open, status, with_port
from gloveport.surfaces.did_you_mean import did_you_mean
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import Colour, stream, visible_line
from gloveport.types import Problem

COLOURS: Mapping[str, Colour] = {"open": "green", "unapproved": "yellow", "opening": "yellow", "broken": "red"}


def sources_command(view: View) -> int:
    """What is configured, and how it fares."""
    return with_port(view, lambda port: _sources(view, port), naming="")


async def _sources(view: View, port: Gloveport) -> int:
    settings = view.settings()
    rows = [_row(port, config, settings.origins.get(f"sources.{config.name}.{config.kind}")) for config in settings.sources]
    wrong = not_open(port)
    if view.as_json:
        write_document(view.out, answer_document({"sources": rows}, wrong))
        return status(wrong)
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        state = view.out.paint(f"{row['state']:<10}", COLOURS[row["state"]])
        counted = f"{row['tools']:,} tools, {row['writes']:,} write" if row["state"] == "open" else ""
        suspended = f", {row['suspended']:,} suspended" if row["suspended"] else ""
        place = view.out.paint(visible_line(f"{row['kind']} {row['location']}"), "dim")
        view.out.line(f"{row['name']:<{width}}  {state}  {counted + suspended:<24}  {place}".rstrip())
    if not rows:
        view.err.line("there are no sources yet: `gloveport add` adds one")
    return status(wrong)


def _row(port: Gloveport, config: SourceConfig, place: str | None) -> dict[str, Any]:
    tools = [tool for tool in port.catalog.tools if tool.source == config.name]
    entries = [port.catalog.entry(tool.address) for tool in tools]
    opened = any(source.name == config.name for source in port.catalog.sources)
    problem = next((one for one in port.problems if one.source == config.name and one.broken), None)
    return {
        "name": config.name,
        "kind": config.kind,
        "location": _location(config),
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
    return "unapproved" if needs_approval(config) else "opening" if problem and problem.opening else "broken"


def _location(config: SourceConfig) -> str:
    if not isinstance(config.location, str):
        return shlex.join(config.location)
    return shown(config.location) if "://" in config.location else config.location


@dataclass(frozen=True, slots=True)
class Removing:
    """The command line of `gloveport remove`, as it was written."""

    name: str
    scope: str | None
    yes: bool
    as_json: bool
    color: str


def remove_command(removing: Removing) -> int:
    """Take a source out of the settings; the exit code."""
    err, out = stream(sys.stderr, removing.color), stream(sys.stdout, removing.color)
    path = _file_with(removing.name, removing.scope)
    change = _without(path, removing.name)
    if not removing.as_json:
        change.show(err)
    ask(f"Remove {removing.name} from {path}?", err, yes=removing.yes, as_json=removing.as_json)
    change.make()
    if removing.as_json:
        write_document(out, {"ok": True, "file": str(path), "source": removing.name})
    else:
        err.line(f"{err.paint('✓', 'green')} removed from {path}")
    return 0


def _file_with(name: str, scope: str | None) -> Path:
    """The file that has the source; where both have it, the one that was asked for."""
    files = {"project": find_project(), "user": config_folder() / FILE}
    known = {each: _names(path) for each, path in files.items() if path is not None and scope in (None, each)}
    having = [each for each, names in known.items() if name in names]
    if len(having) > 1:
        raise OptionError(f"the project's and the user's settings have [sources.{name}]", hint="say which: --scope project")
    path = files[having[0]] if having else None
    if path is None:
        names = sorted({each for names in known.values() for each in names})
        hint = did_you_mean(name, names) or (f"the sources are {', '.join(names)}" if names else "there are none")
        raise OptionError(f"there is no source `{name}` in the settings", hint=hint)
    return path


def _names(path: Path) -> list[str]:
    sources = _parsed(path, read_text(path) or "").get("sources", {})
    return list(sources) if isinstance(sources, dict) else []


def _without(path: Path, name: str) -> Change:
    """The file without the source: comments and order stay, and so does everything else, or nothing is changed."""
    before = read_text(path) or ""
    wanted = _parsed(path, before)
    del wanted["sources"][name]
    try:
        document = tomlkit.parse(before)
        sources = document["sources"]
        assert isinstance(sources, MutableMapping)
        del sources[name]
        after = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise OptionError(f"{path} can't be edited: {error}", hint=f"delete [sources.{name}] by hand") from None
    if _parsed(path, after).get("sources", {}) != wanted["sources"]:
        raise OptionError(f"[sources.{name}] can't be cut out of {path} alone", hint="delete it by hand")
    return Change(path, before, after)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path} is not valid TOML: {error}", hint="correct it first; nothing was changed") from None
