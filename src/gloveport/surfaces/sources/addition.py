"""Adds a source: it is detected, opened and shown, and then written to a settings file, trusted and pinned."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport import urls
from gloveport.config import Config, SourceConfig
from gloveport.errors import OptionError, SourceError, ToolError
from gloveport.folders import cache_folder
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.host.options import strength_from
from gloveport.host.pinning import current_definition
from gloveport.host.plugins import port_plugins
from gloveport.large_values import off_loop
from gloveport.policy.credentials.configured import TOKEN_SLOT, ConfiguredCredentials
from gloveport.policy.credentials.environment import default_variable
from gloveport.policy.egress import Egress
from gloveport.policy.egress.addresses import refusal
from gloveport.sources import OpenedSource, SourceInfo
from gloveport.sources.context import SourceContext
from gloveport.sources.detection import DOCUMENT_SUFFIXES, DetectedSource, detect
from gloveport.sources.opening import open_source
from gloveport.sources.pins import Pins, is_pinned
from gloveport.sources.trust import trust
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.file_change import FileChange, read_text
from gloveport.tool_names import RESERVED_SOURCE_NAMES, ROOT_SOURCE, problem_with
from gloveport.types import Tool

MAX_EXAMPLES = 8
SIGN_IN_COMMAND = re.compile(r"`(gloveport auth [^`]+)`")


@dataclass(frozen=True, slots=True)
class WantedSource:
    """What somebody wants to add: a URL, a file, or the words of a command; and its settings."""

    what: tuple[str, ...]
    name: str | None
    kind: str | None
    base_url: str | None
    private: bool
    writes: bool
    trust_annotations: bool


class SourceAddition:
    """One source on its way into a settings file. Nothing is started or imported before `open`.

    `config` are its settings as they are known so far. `settings_path` is the file of a project that it will be in; empty
    for a file of the user's own.
    """

    def __init__(self, settings: Config, settings_path: str = "") -> None:
        self._settings = settings
        self._settings_path = settings_path
        self._egress = Egress()
        self._compilers = DefinitionTasks(strength_from(settings.sandbox.get("minimum", "kernel")))
        self._kinds = port_plugins(settings.plugins).extensions.kinds
        credentials = ConfiguredCredentials({}, egress=self._egress)
        folder = cache_folder() / "definitions"
        self._context = SourceContext(self._egress, credentials, folder, self._compilers, self._kinds)
        self._detected: DetectedSource | None = None
        self.opened: OpenedSource | None = None
        self.sign_in = ""
        """How to sign in, when the service wants that before it shows its tools."""

    @property
    def config(self) -> SourceConfig:
        """The settings of the source."""
        assert self._detected is not None
        return self._detected.config

    async def detect(self, wanted: WantedSource) -> None:
        """Find out what is wanted; raise OptionError for what can't be a source, and SourceError."""
        if wanted.kind is not None and wanted.kind not in self._kinds:
            hint = did_you_mean(wanted.kind, self._kinds) or f"the kinds are {', '.join(self._kinds)}; plugins add more"
            raise OptionError(f"there is no kind of source {wanted.kind!r:.60}", code="not-found", hint=hint)
        _check(wanted)
        text = wanted.what[0] if len(wanted.what) == 1 else shlex.join(wanted.what)
        given = {"name": wanted.name, "kind": wanted.kind, "allow_private": wanted.private}
        detected = await detect(text, self._context, **given)
        config = replace(detected.config, base_url=wanted.base_url)
        trusts = config.kind == "mcp" and wanted.trust_annotations
        config = replace(config, writes=("*",) if wanted.writes else (), trust_annotations=trusts)
        self._detected = replace(detected, config=config)

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The command that opening starts, if it is one."""
        return None if isinstance(self.config.location, str) else self.config.location

    @property
    def runs_code(self) -> bool:
        """Whether opening it runs something with the user's rights: a command, a Python file, a plugin."""
        return self.argv is not None or self.config.kind not in ("openapi", "graphql", "mcp")

    async def open(self) -> None:
        """Open the source. One whose service wants a sign-in first stays closed: it can be added before."""
        assert self._detected is not None
        try:
            self.opened = await open_source(self.config, self._context, self._detected.download)
        except SourceError as error:
            if error.code != "auth-required" or not SIGN_IN_COMMAND.search(error.hint or ""):
                raise
            self.sign_in = error.hint or ""

    @property
    def about(self) -> dict[str, Any]:
        """A summary: its tools, how many of them write, and the credentials that it needs."""
        config = self.config
        names = [each.name for each in self._settings.sources]
        return _about(self.opened, config, self._egress, names) if self.opened else _unopened(config, self.sign_in)

    def trust_annotations(self) -> None:
        """Let the server say which of its tools only read."""
        assert self._detected is not None
        self._detected = replace(self._detected, config=replace(self.config, trust_annotations=True))

    def change(self, path: Path) -> FileChange:
        """Return the change that puts the source into a settings file; comments and order stay."""
        return _change(path, self.config)

    @property
    def kept(self) -> SourceConfig:
        """The settings as they are read from the file."""
        return replace(self.config, settings=self._settings_path)

    def tools(self) -> list[Tool]:
        """Return the tools of the source as the settings that were written make them."""
        if self.opened is None:
            return []
        reads = set(self.opened.info.read_only) if self.config.trust_annotations else set()
        return [replace(tool, writes=False) if tool.address in reads else tool for tool in self.opened.source.tools()]

    async def make(self, change: FileChange) -> None:
        """Write the file, trust the source, and pin its definition."""
        await off_loop(change.make)
        await off_loop(trust, self.kept)
        if (opened := self.opened) is not None and is_pinned(self.kept):
            await off_loop(lambda: Pins.of_user().pin(self.kept.pin_key, current_definition(opened)))

    async def close(self) -> None:
        """Close the source, and what was needed to open it."""
        try:
            if self.opened is not None:
                await self.opened.source.close()
        finally:
            await self._compilers.close()
            await self._egress.close()


def _check(wanted: WantedSource) -> None:
    if wanted.name is not None and (problem := problem_with(wanted.name)):
        raise OptionError(f"the name {wanted.name!a} {problem}")
    if wanted.name in RESERVED_SOURCE_NAMES or wanted.name == ROOT_SOURCE:
        raise OptionError(
            f"a source can't be called {wanted.name}: Gloveport uses that name itself", hint="choose another name"
        )
    if wanted.trust_annotations and wanted.kind not in (None, "mcp"):
        raise OptionError("only MCP servers have annotations to trust", hint="omit --trust-annotations")
    are_sources = wanted.kind is None and all(_is_source(word) for word in wanted.what)
    if len(wanted.what) > 1 and are_sources and not _is_program(wanted.what[0]):
        hint = f"add them one by one, beginning with `gloveport add {shlex.quote(wanted.what[0])}`"
        raise OptionError(f"these are {len(wanted.what)} sources, and one is added at a time", hint=hint)


def _is_program(word: str) -> bool:
    """Return whether the word starts a command: `/usr/bin/python3 server.py` is no list of sources."""
    return not _is_file_name(word) and shutil.which(word) is not None


def _is_source(word: str) -> bool:
    return "://" in word or _is_file_name(word) or os.path.isfile(os.path.expanduser(word))


def _is_file_name(word: str) -> bool:
    """Return whether the word is called like a source, whether such a file exists or not."""
    return os.path.splitext(word)[1] in {".py", *DOCUMENT_SUFFIXES}


def _unopened(config: SourceConfig, sign_in: str) -> dict[str, Any]:
    """Return the summary of a source whose tools are not known before somebody has signed in."""
    variable = default_variable(config.name, TOKEN_SLOT)
    token = {"slot": TOKEN_SLOT, "kind": "bearer", "variable": variable, "hint": sign_in}
    counts = {"tools": 0, "reads": 0, "writes": 0, "writes_open": bool(config.writes)}
    about = {"name": config.name, "kind": config.kind, "title": config.name, **counts, "read_only": []}
    return {**about, "credentials": [token], "warnings": ["its tools are known after you have signed in"], "examples": []}


def _change(path: Path, config: SourceConfig) -> FileChange:
    """Return the change that puts the source into the file; comments and order stay."""
    text = read_text(path)
    try:
        document = tomlkit.parse(text or "")
    except TOMLKitError as error:
        raise OptionError(
            f"{path} is not valid TOML: {error}", hint="correct the file first; nothing was changed"
        ) from None
    sources = document.setdefault("sources", tomlkit.table(is_super_table=True))
    if not isinstance(sources, MutableMapping):
        raise OptionError(f"`sources` in {path} is not a table", hint="write [sources.NAME]; nothing was changed")
    if config.name in sources:
        raise OptionError(f"{path} already has [sources.{config.name}]", hint="choose another name with --name")
    table = tomlkit.table()
    location = config.location if not isinstance(config.location, str) else _relative(config.location, path)
    table[config.kind] = list(location) if isinstance(location, tuple) else location
    if config.base_url:
        table["base_url"] = config.base_url
    if config.allow_private:
        table["allow_private"] = True
    if config.writes:
        table["writes"] = "allow"
    if config.trust_annotations:
        table["trust_annotations"] = True
    sources[config.name] = table
    return FileChange(path, text, tomlkit.dumps(document))


def _relative(location: str, path: Path) -> str:
    if "://" in location or not os.path.isabs(location):
        return location
    found = os.path.relpath(location, path.parent)
    return location if found.startswith("..") else found


def _about(opened: OpenedSource, config: SourceConfig, egress: Egress, names: list[str]) -> dict[str, Any]:
    """Return a summary of the source: its tools, how many of them write, and the credentials that it needs."""
    tools, info = opened.source.tools(), opened.info
    credentials = ConfiguredCredentials({}, egress=egress, sources=names)
    slots = [
        {
            "slot": slot.name,
            "kind": slot.kind,
            "variable": default_variable(config.name, slot.name),
            "hint": credentials.wanted(config.name, slot.name),
        }
        for slot in info.slots
        if config.kind != "graphql"  # its endpoint has just answered without one
    ]
    return {
        "name": config.name,
        "kind": config.kind,
        "title": info.title or config.name,
        "tools": len(tools),
        "reads": sum(not tool.writes for tool in tools),
        "writes": sum(tool.writes for tool in tools),
        "writes_open": bool(config.writes),
        "read_only": list(info.read_only),
        "credentials": slots,
        "warnings": [*_unreachable(info, config), *info.warnings],
        "examples": [tool.address for tool in tools[:MAX_EXAMPLES]],
    }


def _unreachable(info: SourceInfo, config: SourceConfig) -> Iterator[str]:
    """Warn of calls that are sure to fail because the source's server may not be reached."""
    if info.server_problem:
        yield f"{info.server_problem}; set base_url"
    try:
        host = urls.parse(info.server).host if info.server else ""
        if host and (rule := refusal("127.0.0.1" if host == "localhost" else host, allow_private=config.allow_private)):
            hint = ": set allow_private if it may reach your own network" if rule.kind == "private" else ""
            yield f"its calls go to {info.server}, which may not be reached ({rule}){hint}"
    except ToolError as error:
        yield f"{error.message}; set base_url"
    except ValueError:
        return  # a host name: its address is known only when it is called
