"""The sources of one port: opened once and together; one that is broken is reported, and the others work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gloveport.catalog import Catalog
from gloveport.catalog.fingerprint import fingerprint
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError
from gloveport.folders import cache_folder, data_folder
from gloveport.policy import AllowAll, Policy
from gloveport.policy.credentials import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.policy.egress.urls import shown
from gloveport.policy.writes import WritesShut
from gloveport.sources import Source
from gloveport.sources.accepted import Accepted, Seen
from gloveport.sources.detection import detect, name_for
from gloveport.sources.opening import open_source
from gloveport.sources.outside import Outside
from gloveport.types import Problem, Tool

logger = logging.getLogger("gloveport")


@dataclass(frozen=True, slots=True)
class Named:
    """A source as someone names it on a command line: a URL, a file or a command. What it is, is found out."""

    text: str
    allow_private: bool = False


Given = str | Named | SourceConfig | Source


class Connections:
    """The catalog of what is connected. `catalog` is replaced, never changed: a run keeps the one that it began with."""

    def __init__(self, functions: Source, given: Iterable[Given]) -> None:
        self._given = tuple(_checked(item) for item in given)
        self._own = (functions, *(item for item in self._given if not isinstance(item, Named | SourceConfig)))
        self.catalog = Catalog(self._own)
        self.problems: tuple[Problem, ...] = ()
        self.on_change: Callable[[Catalog], None] = lambda catalog: None
        self._opened: dict[str, tuple[SourceConfig, Source]] = {}
        self._guessed: dict[str, str] = {}  # what the sources would be called that are known by their text alone
        self._opening: asyncio.Task[None] | None = None
        self._egress: Egress | None = None

    async def open(self) -> None:
        """Opens every source that is not open yet. Callers at the same time wait for the same opening."""
        if all(not isinstance(item, Named | SourceConfig) for item in self._given):
            return
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Closes every source, those that did not fit in included."""
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        sources = (*self._own, *(source for _, source in self._opened.values()))
        ended = await _all(source.close() for source in sources)
        if self._egress is not None:
            await self._egress.close()
        for error in ended:
            if isinstance(error, BaseException):
                logger.warning("a source could not be closed: %s", error)

    def forsake(self) -> None:
        """The event loop was closed under the connections: they are made anew on the next one."""
        self._opening, self._egress, self._opened = None, None, {}
        self.catalog = Catalog(self._own)

    async def _open(self) -> None:
        self._egress = Egress()
        problems: list[Problem] = []
        configs: list[SourceConfig] = []
        for item in self._given:
            if isinstance(item, SourceConfig):
                try:
                    self._outside([item])
                    configs.append(item)
                except GloveportError as error:
                    problems.append(_problem(item.name, error))
        outside = self._outside(configs)
        named = [item for item in self._given if isinstance(item, Named)]
        detected = await _all(detect(item.text, outside, allow_private=item.allow_private) for item in named)
        for item, found in zip(named, detected, strict=True):
            if isinstance(found, SourceConfig):
                configs.append(found)
            else:
                name = shown(item.text) if "://" in item.text else item.text
                problems.append(_problem(name, found))
                with suppress(ValueError):
                    self._guessed[name] = name_for(item.text)
        outside = self._outside(configs)  # now that all names are known
        opened = await _all(open_source(config, outside) for config in configs)
        for config, source in zip(configs, opened, strict=True):
            if isinstance(source, BaseException):
                problems.append(_problem(config.name, source))
            elif config.name in self._opened:
                problems.append(Problem(config.name, f"two sources are called {config.name}", "give one another name"))
                await source.close()
            else:
                self._opened[config.name] = (config, source)
                if hasattr(source, "on_change"):
                    vars(source)["on_change"] = self._build
                problems += [Problem(config.name, text, broken=False) for text in getattr(source, "warnings", ())]
        self.problems = tuple(problems)
        for problem in problems:
            level = logging.WARNING if problem.broken else logging.INFO
            logger.log(level, "%s%s", problem.message, f" (hint: {problem.hint})" if problem.hint else "")
        self._build()

    def _outside(self, configs: Sequence[SourceConfig]) -> Outside:
        assert self._egress is not None
        named = {(config.name, slot): origin for config in configs for slot, origin in secrets_of(config).items()}
        credentials = EnvironmentCredentials(named, sources=[config.name for config in configs])
        return Outside(self._egress, credentials, cache_folder() / "definitions")

    def _build(self) -> None:
        """The catalog of what is open now; a source that does not fit in is left out and reported."""
        sources, suspended, kept = list(self._own), dict[str, str](), dict[str, Tool]()
        for config, source in self._opened.values():
            try:
                changed = self._suspended(config, source)
                Catalog([*sources, source])
            except GloveportError as error:
                self.problems = (*self.problems, Problem(config.name, error.message, error.hint))
                continue
            sources.append(source)
            suspended |= changed
            kept |= {address: self._accepted(config, source, address) or _unseen(address) for address in changed}
        # What a suspended tool says now reaches no agent (M4): it is shown as it was accepted.
        broken = {self._guessed.get(each.source, each.source): each for each in self.problems if each.broken}
        self.catalog = Catalog(sources, suspended, kept, broken)
        self.on_change(self.catalog)

    @property
    def policy(self) -> Policy:
        """What may be called of what is open now."""
        kept = {id(source) for source in self.catalog.sources}
        opened = {config.name: config.writes for config, source in self._opened.values() if id(source) in kept}
        return (
            WritesShut(opened)
            if any(tool.writes and tool.kind != "function" for tool in self.catalog.tools)
            else AllowAll()
        )

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """A tool as it was accepted and as its source has it now; None where that is not known."""
        config, source = self._opened.get(address.partition(".")[0], (None, None))
        if config is None or source is None:
            return None, None
        now = next((tool for tool in source.tools() if tool.address == address), None)
        return self._accepted(config, source, address), now

    def _accepted(self, config: SourceConfig, source: Source, address: str) -> Tool | None:
        seen = accepted().find(key_of(config))
        earlier = getattr(source, "earlier_tool", None)
        if seen and address in seen.definitions:
            return Tool(address, *seen.definitions[address], kind=config.kind)
        return earlier(address, seen.shelf) if seen and earlier else None

    def _suspended(self, config: SourceConfig, source: Source) -> Mapping[str, str]:
        if not is_outside(config):
            return {}
        told = "the definition of `tools.{0}` has changed since it was accepted; `gloveport tools changes {1}` shows how"
        writes = frozenset(tool.address for tool in source.tools() if tool.writes)
        changed = accepted().changed(key_of(config), seen_now(source), writes)
        return {address: told.format(address, config.name) for address in changed}


def _unseen(address: str) -> Tool:
    return Tool(address, "Suspended: it is new, or has changed, since the definition was accepted.", {}, kind="suspended")


def accepted() -> Accepted:
    """What this user has accepted so far."""
    return Accepted(data_folder() / "accepted")


def is_outside(config: SourceConfig) -> bool:
    """True for a definition that others can change: a URL's, that of an MCP server, or a file that a project came with.

    A Python file is approved by its content, and approved again when that changes.
    """
    theirs = bool(config.settings) and config.kind != "functions"
    return theirs or config.kind == "mcp" or (isinstance(config.location, str) and "://" in config.location)


def secrets_of(config: SourceConfig) -> Mapping[str, str]:
    """Where each secret of a source comes from, by its slot; those in the environment of a command included."""
    return {**config.credentials, **{name: value for name, value in config.env.items() if value.startswith("env:")}}


def key_of(config: SourceConfig) -> str:
    """What an accepted definition belongs to: this source of this file, at this place."""
    return "\n".join((config.settings, config.name, config.kind, repr(config.location)))


def seen_now(source: Source) -> Seen:
    """A source's definition as it is now: the fingerprints of its tools, and the definitions or where they are kept."""
    tools = source.tools()
    given = getattr(source, "fingerprints", None)
    prints = {tool.address: fingerprint(tool) for tool in tools} if given is None else dict(given)
    shelf = getattr(source, "digest", "")
    if shelf:
        return Seen(prints, shelf)
    shown = {
        tool.address: (
            tool.description,
            dict(tool.input_schema),
            None if tool.output_schema is None else dict(tool.output_schema),
        )
        for tool in tools
    }
    return Seen(prints, definitions=shown)


def _checked(item: Given) -> Named | SourceConfig | Source:
    if isinstance(item, str):
        return Named(item)
    is_source = hasattr(item, "tools") and hasattr(item, "call") and hasattr(item, "name")
    if not isinstance(item, Named | SourceConfig) and not is_source:
        raise OptionError(f"a source is a URL, a file, SourceConfig(…) or an object with tools(), not {item!r:.60}")
    return item


async def _all(work: Iterable) -> list:
    return await asyncio.gather(*work, return_exceptions=True)


def _problem(name: str, error: BaseException) -> Problem:
    if isinstance(error, GloveportError):
        return Problem(name, error.message, error.hint)
    if not isinstance(error, Exception):
        raise error
    logger.error("the source %s could not be opened", name, exc_info=error)
    return Problem(name, f"the source {name} could not be opened: {type(error).__name__}")
