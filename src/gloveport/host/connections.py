"""The sources of one port: opened once and side by side; one that is broken or slow is reported, and the others work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gloveport.catalog import Catalog
from gloveport.catalog.fingerprint import fingerprint
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError
from gloveport.folders import cache_folder, data_folder
from gloveport.policy import AllowAll, Policy
from gloveport.policy.credentials import EnvironmentCredentials
from gloveport.policy.egress.urls import shown
from gloveport.policy.writes import WritesDenied
from gloveport.sources import Source
from gloveport.sources.context import Outside
from gloveport.sources.detection import detect, likely_name
from gloveport.sources.opening import open_source
from gloveport.sources.pins import Accepted, Seen
from gloveport.types import Problem, Tool, ToolAccess

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

logger = logging.getLogger("gloveport")

PATIENCE = 3.0  # seconds, for sources that nobody asks for by name


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
        self._likely = {item: likely_name(item.text) for item in self._given if isinstance(item, Named)}
        configured = (item.name for item in self._given if isinstance(item, SourceConfig))
        self._names = (*configured, *self._likely.values())  # None where a name is known only once it is open
        self.catalog = self._unopened()
        self.problems: tuple[Problem, ...] = ()
        self.on_change: Callable[[Catalog], None] = lambda catalog: None
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, int] = {}  # of who has a name, or likely will: it is the first one's
        self._opened: dict[int, tuple[SourceConfig, Source]] = {}  # by their place among all
        self._told: list[Problem] = []
        self._guessed: dict[str, str] = {}  # what the sources would be called that are known by their text alone
        self._opening: dict[asyncio.Task[None], str] = {}  # and what each source is called
        self._patient_until = 0.0
        self._is_built = True
        self._egress: Egress | None = None

    def _unopened(self) -> Catalog:
        hint = "a program that says `tools` waits for it"
        problems = [Problem(name, f"the source {name} has not been opened yet", hint) for name in self._names if name]
        return Catalog(self._own, broken={problem.source: problem for problem in problems})

    def concern(self, access: ToolAccess) -> bool:
        """Whether a program with this access to tools could reach a source, and so has to wait for them."""
        used = access.names
        return bool(self._names) and (access.possible or any(name in used if name else used for name in self._names))

    async def open(self, naming: str | None = None) -> None:
        """Opens every source. Callers at the same time wait for the same opening, each for what it needs of it.

        With a text in `naming`, a source that it does not name is not waited for longer than `PATIENCE`: it is a problem
        until it is open, and is then in the catalog.
        """
        if all(not isinstance(item, Named | SourceConfig) for item in self._given):
            return
        if self._egress is None:
            self._begin()
        if named := [task for task, name in self._opening.items() if naming is None or name in naming]:
            await asyncio.wait(named)
        if slow := [task for task in self._opening if not task.done()]:
            await asyncio.wait(slow, timeout=max(self._patient_until - asyncio.get_running_loop().time(), 0))
        if not self._is_built:
            self._build()

    async def close(self) -> None:
        """Closes every source, those that did not fit in included."""
        if slow := [task for task in self._opening if not task.done()]:
            for task in slow:
                task.cancel()
            await asyncio.wait(slow)
        sources = (*self._own, *(source for _, source in self._connected()))
        ended = await asyncio.gather(*(source.close() for source in sources), return_exceptions=True)
        if self._egress is not None:
            await self._egress.close()
        for error in ended:
            if isinstance(error, BaseException):
                logger.warning("a source could not be closed: %s", error)

    def forsake(self) -> None:
        """The event loop was closed under the connections: they are made anew on the next one."""
        self._forget()
        self.catalog = self._unopened()

    def _begin(self) -> None:
        from gloveport.policy.egress import Egress

        loop = asyncio.get_running_loop()
        self._egress = Egress()
        self._patient_until = loop.time() + PATIENCE
        loop.call_at(self._patient_until, self._lose_patience)
        configs: list[SourceConfig] = []
        for item in (each for each in self._given if isinstance(each, SourceConfig)):
            try:
                self._outside([item])
            except GloveportError as error:
                self._tell(_problem(item.name, error))
                continue
            if self._places.setdefault(item.name, len(configs)) == len(configs):
                configs.append(item)
            else:
                self._tell(_namesake(item.name))
        outside = self._outside(configs)
        named = [item for item in self._given if isinstance(item, Named)]
        for place, config in enumerate(configs):
            self._opening[loop.create_task(self._open(config, outside, place))] = config.name
        for place, item in enumerate(named, len(configs)):
            name = self._likely[item]
            if name is not None:
                self._guessed[_shown(item)] = name
                self._places.setdefault(name, place)
            self._opening[loop.create_task(self._open_named(item, outside, place))] = name or _shown(item)

    async def _open_named(self, item: Named, outside: Outside, place: int) -> None:
        try:
            config = await detect(item.text, outside, allow_private=item.allow_private)
        except Exception as error:  # noqa: BLE001 - one source, whatever is wrong with it, does not stop the others
            self._tell(_problem(_shown(item), error))
        else:
            await self._open(config, outside, place)

    async def _open(self, config: SourceConfig, outside: Outside, place: int) -> None:
        if self._places.setdefault(config.name, place) != place:  # which would get the other's credentials
            self._tell(_namesake(config.name))
            return
        try:
            source = await open_source(config, outside)
        except Exception as error:  # noqa: BLE001 - as above
            self._tell(_problem(config.name, error))
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._tell(Problem(config.name, f"the source {config.name} could not be opened: it was cancelled"))
            return
        self._opened[place] = (config, source)
        if hasattr(source, "on_change"):
            vars(source)["on_change"] = self._build
        self._tell(*(Problem(config.name, text, broken=False) for text in getattr(source, "warnings", ())))

    def _tell(self, *problems: Problem) -> None:
        """A source is open, or never will be: the catalog is built with the last of them, and with each that is late."""
        _log(problems)
        self._told += problems
        self._is_built = False
        if not self._slow() or asyncio.get_running_loop().time() > self._patient_until:
            self._build()

    def _lose_patience(self) -> None:
        if slow := self._slow():
            _log(slow)
            self._build()

    def _connected(self) -> list[tuple[SourceConfig, Source]]:
        return [self._opened[place] for place in sorted(self._opened)]

    def _outside(self, configs: Sequence[SourceConfig]) -> Outside:
        assert self._egress is not None
        named = {(config.name, slot): origin for config in configs for slot, origin in secrets_of(config).items()}
        credentials = EnvironmentCredentials(named, sources=self._places)
        return Outside(self._egress, credentials, cache_folder() / "definitions")

    def _build(self) -> None:
        """The catalog of what is open now; a source that does not fit in is left out and reported."""
        sources, suspended, kept = list(self._own), dict[str, str](), dict[str, Tool]()
        problems = [*self._told, *self._slow()]
        for config, source in self._connected():
            try:
                changed = self._suspended(config, source)
                Catalog([*sources, source])
            except GloveportError as error:
                problems.append(Problem(config.name, error.message, error.hint))
                continue
            sources.append(source)
            suspended |= changed
            kept |= {address: self._accepted(config, source, address) or _unseen(address) for address in changed}
        # What a suspended tool says now reaches no agent (M4): it is shown as it was accepted.
        broken = {self._guessed.get(each.source, each.source): each for each in problems if each.broken}
        self.problems = tuple(problems)
        self.catalog = Catalog(sources, suspended, kept, broken)
        self._is_built = True
        self.on_change(self.catalog)

    def _slow(self) -> list[Problem]:
        hint = "check that it is up; a program that names it waits for it"
        current = asyncio.current_task()
        slow = [name for task, name in self._opening.items() if task is not current and not task.done()]
        return [Problem(name, f"the source {name} is still being opened", hint, opening=True) for name in slow]

    @property
    def policy(self) -> Policy:
        """What may be called of what is open now."""
        kept = {id(source) for source in self.catalog.sources}
        opened = {config.name: config.writes for config, source in self._connected() if id(source) in kept}
        return (
            WritesDenied(opened)
            if any(tool.writes and tool.kind != "function" for tool in self.catalog.tools)
            else AllowAll()
        )

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """A tool as it was accepted and as its source has it now; None where that is not known."""
        owner = next((pair for pair in self._connected() if pair[0].name == address.partition(".")[0]), None)
        if owner is None:
            return None, None
        config, source = owner
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
        shows = f"`gloveport tools changes {config.name}` shows"
        writes = frozenset(tool.address for tool in source.tools() if tool.writes)
        changed = accepted().changed(key_of(config), seen_now(source), writes)
        known = getattr(accepted().find(key_of(config)), "tools", {})
        return {
            address: f"the definition of `tools.{address}` has changed since it was accepted; {shows} how"
            if address in known
            else f"`tools.{address}` writes, and is new since the definition was accepted; {shows} it"
            for address in changed
        }


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


def _problem(name: str, error: Exception) -> Problem:
    if isinstance(error, GloveportError):
        return Problem(name, error.message, error.hint)
    logger.error("the source %s could not be opened", name, exc_info=error)
    return Problem(name, f"the source {name} could not be opened: {type(error).__name__}")


def _namesake(name: str) -> Problem:
    return Problem(name, f"two sources are called {name}", "give one another name")


def _shown(item: Named) -> str:
    return shown(item.text) if "://" in item.text else item.text


def _log(problems: Iterable[Problem]) -> None:
    for problem in problems:
        level = logging.WARNING if problem.broken else logging.INFO
        logger.log(level, "%s%s", problem.message, f" (hint: {problem.hint})" if problem.hint else "")
