"""The sources of one port and the catalog of what is open among them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable

from gloveport.catalog import Catalog
from gloveport.config import Config, SourceConfig
from gloveport.errors import OptionError
from gloveport.host.catalog_builder import build_catalog
from gloveport.host.pinning import pinned_tool
from gloveport.host.plugins.extensions import BUILT_IN, Extensions
from gloveport.host.source_opener import SourceOpener, SourceSpec
from gloveport.large_values import off_loop
from gloveport.rules.labels import SourceLabels
from gloveport.rules.source_writes import SourceWrites
from gloveport.sources import OpenedSource, Source
from gloveport.sources.trust import gets_secret
from gloveport.types import Problem, Strength, Tool, ToolAccess
from gloveport.undo import Undo

logger = logging.getLogger("gloveport")

SourceArgument = str | SourceSpec | SourceConfig | Source
"""What `Gloveport(sources=[…])` takes."""


class SourceSet:
    """The functions, source objects and configured sources of one port.

    `catalog` is replaced, never changed: a run keeps the one that it began with. `on_change` gets each new one.
    """

    def __init__(
        self,
        functions: Source,
        given: Iterable[SourceArgument],
        minimum: Strength,
        settings: Config,
        extensions: Extensions = BUILT_IN,
    ) -> None:
        self._settings = settings
        self._extensions = extensions
        self._minimum: Strength = minimum
        checked = [_checked(item) for item in given]
        self._wanted = [item for item in checked if isinstance(item, SourceSpec | SourceConfig)]
        objects = [item for item in checked if not isinstance(item, SourceSpec | SourceConfig)]
        self._own = tuple(OpenedSource.of(source) for source in (functions, *objects))
        self._opener = SourceOpener(self._wanted, self._progressed, minimum, settings.options, extensions)
        self._names = self._opener.names
        self._changes = self._built = 0  # what has changed so far, and up to which change the catalog is built
        self._turn, self._following = asyncio.Lock(), asyncio.Lock()
        self._builds: set[asyncio.Task[None]] = set()
        self.catalog = self._unopened_catalog()
        self.labels: dict[str, SourceLabels] = {}
        """What labels the tools of the sources in the catalog, by name."""
        self.problems = self._own_problems()
        self.on_change: Callable[[Catalog], None] = lambda catalog: None
        for one in self._own:
            if one.changes is not None:
                one.changes.subscribe_to_changes(self._own_source_changed)

    def may_concern(self, access: ToolAccess) -> bool:
        """Return whether a program with this access to tools could reach a source, and so has to wait for them."""
        used = access.names
        return bool(self._names) and (access.possible or any(name in used if name else used for name in self._names))

    @property
    def opening(self) -> bool:
        """True while a source is still to be opened."""
        return bool(self._wanted) and (not self._opener.started or bool(self._opener.still_opening()))

    @property
    def opening_now(self) -> tuple[str, ...]:
        """The names of the sources that are being opened."""
        return tuple(problem.source for problem in self._opener.still_opening())

    async def build(self) -> None:
        """Bring the catalog up to date with what is open."""
        if self._built < self._changes:
            await self._build(self._changes, self._problems_now())

    async def rebuild(self) -> None:
        """Build the catalog anew, although the sources are as they were: what was accepted of them may differ."""
        self._changes += 1
        await self.build()

    async def follow(self, settings: Config, anew: Collection[str] = ()) -> None:
        """Open and close sources as these settings state them, open those in `anew` again, and build the catalog anew.

        Programs that run keep their catalog; their calls of a source that is closed now fail.
        """
        async with self._following:
            before, after = ({one.name: one for one in each.sources} for each in (self._settings, settings))
            kept = [item for item in self._wanted if getattr(item, "name", None) not in before]
            self._settings, self._wanted = settings, [*after.values(), *kept]
            gone = before.keys() - after.keys()
            changed = {name for name, config in after.items() if before.get(name) != config}
            closing = [await self._opener.drop(name) for name in sorted(gone)]
            reopening = (self._opener.reopen(name, after.get(name)) for name in sorted(changed | {*anew} - gone))
            closing += await asyncio.gather(*reopening)
            self._names = self._opener.names
            await self.rebuild()
            for one in closing:
                if one is not None:
                    await one.source.close()

    async def open(self, naming: str | None = None) -> None:
        """Open every source; with a text in `naming`, wait for those that it does not name only as `SourceOpener` does."""
        if self._wanted:
            await self._opener.open(naming)
        await self.build()

    async def close(self) -> None:
        """Close every source, those that do not fit into the catalog included."""
        await self._opener.cancel()
        sources = [one.source for one in (*self._own, *self._opener.opened)]
        ended = await asyncio.gather(*(source.close() for source in sources), return_exceptions=True)
        await self._opener.close()
        for error in ended:
            if isinstance(error, BaseException):
                logger.warning("a source could not be closed: %s", error)

    def reset(self) -> None:
        """Forget the open sources, whose event loop was closed: they are opened again on the next one."""
        self._opener.abandon()
        given = self._minimum, self._settings.options, self._extensions
        self._opener = SourceOpener(self._wanted, self._progressed, *given)
        self._changes = self._built = 0
        self._turn, self._following = asyncio.Lock(), asyncio.Lock()
        self.catalog = self._unopened_catalog()

    def inverse_of(self, address: str) -> Undo | None:
        """Return the inverse that a tool declares."""
        opened = self.opened(address.partition(".")[0])
        return None if opened is None else opened.inverses.get(address)

    def opened(self, name: str) -> OpenedSource | None:
        """Return the open source of this name, if it is in the catalog."""
        present = {id(source) for source in self.catalog.sources}
        found = (one for one in (*self._own, *self._opener.opened) if one.name == name and id(one.source) in present)
        return next(found, None)

    @property
    def writes(self) -> dict[str, SourceWrites]:
        """What the settings of the sources that are open now let their tools do, by name."""
        present = {id(source) for source in self.catalog.sources}
        opened = (one for one in self._opener.opened if one.config and id(one.source) in present)
        return {one.name: self._writes(one.config) for one in opened if one.config}

    def _writes(self, config: SourceConfig) -> SourceWrites:
        place = self._settings.places.get(config.name, "")
        return SourceWrites(config.writes, place, config.trust_annotations, config.denies_writes)

    def versions(self, address: str) -> tuple[Tool | None, Tool | None]:
        """Return a tool as it was accepted and as its source has it now; None where that is not known."""
        name = address.partition(".")[0]
        owner = next((one for one in self._opener.opened if one.name == name), None)
        if owner is None:
            return None, None
        now = next((tool for tool in owner.source.tools() if tool.address == address), None)
        return pinned_tool(owner, address), now

    def _unopened_catalog(self) -> Catalog:
        hint = "a program that says `tools` waits for it"
        message = "the source {} has not been opened yet"
        problems = [Problem(name, message.format(name), hint, opening=True) for name in self._names if name]
        return Catalog([one.source for one in self._own], broken={problem.source: problem for problem in problems})

    def _progressed(self, due: bool) -> None:
        self._changes += 1
        if due:
            self._build_soon()

    def _own_source_changed(self) -> None:
        self._own = tuple(one.refreshed() for one in self._own)
        self._changes += 1
        if self._opener.started or not self._wanted:
            self._build_soon()
        else:
            self.catalog = self._unopened_catalog()
            self.on_change(self.catalog)

    def _own_problems(self) -> tuple[Problem, ...]:
        return tuple(Problem(one.name, text, broken=False) for one in self._own for text in one.info.warnings)

    def _problems_now(self) -> list[Problem]:
        return [*self._own_problems(), *self._opener.problems, *self._opener.still_opening()]

    def _build_soon(self) -> None:
        task = asyncio.ensure_future(self._build(self._changes, self._problems_now()))
        self._builds.add(task)
        task.add_done_callback(self._builds.discard)

    async def _build(self, change: int, problems: list[Problem]) -> None:
        """Build the catalog, unless that was done since this change."""
        async with self._turn:
            if self._built >= change:
                return
            opener, own = self._opener, [one.source for one in self._own]
            built = await off_loop(build_catalog, own, opener.opened, problems, opener.likely_names)
            labels = await off_loop(_labels, opener.opened)
            self._built, self.labels = change, labels
            self.catalog, self.problems = built
            self.on_change(self.catalog)


def _labels(opened: Iterable[OpenedSource]) -> dict[str, SourceLabels]:
    """Return what labels the tools of open sources. Do this in a thread: the names of stored credentials are in a file."""
    found: dict[str, SourceLabels] = {}
    for one in opened:
        if (config := one.config) is not None:
            has_credential = bool(one.info.slots) or _names_secret(config) or gets_secret(config)
            found[one.name] = SourceLabels(has_credential, config.labels)
    return found


def _names_secret(config: SourceConfig) -> bool:
    """Return whether its URL, or one among the arguments of its command, has a user or a query: both may be a secret."""
    parts = (config.location,) if isinstance(config.location, str) else config.location
    urls = (part.partition("://")[2] for part in (*parts, config.base_url or ""))
    return any("?" in url or "@" in url.partition("/")[0] for url in urls)


def _checked(item: SourceArgument) -> SourceSpec | SourceConfig | Source:
    if isinstance(item, str):
        return SourceSpec(item)
    if not isinstance(item, SourceSpec | SourceConfig | Source):
        raise OptionError(f"a source is a URL, a file, SourceConfig(…) or an object with tools(), not {item!r:.60}")
    return item
