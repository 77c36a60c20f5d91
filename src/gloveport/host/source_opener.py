"""Opens sources side by side: one that is broken or slow is reported, and the others work. Opens them anew later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from gloveport.config import SourceConfig
from gloveport.errors import GloveportError
from gloveport.folders import cache_folder
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.host.plugins.extensions import BUILT_IN, Extensions
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.credentials.vault import Vault
from gloveport.sources import OpenedSource
from gloveport.sources.context import SourceContext
from gloveport.sources.detection import DetectedSource, detect, likely_name
from gloveport.sources.opening import open_source
from gloveport.types import Problem, Strength
from gloveport.urls import shown

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

logger = logging.getLogger("gloveport")

SOURCE_WAIT_SECONDS = 3.0
"""How long a run waits for sources that it does not name."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a command line grants the sources that it names; see `SourceConfig`."""

    allow_private: bool = False
    writes: tuple[str, ...] = ()
    trust_annotations: bool = False


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source as a command line names it: a URL, a file or a command. Its kind and its name are detected."""

    text: str
    options: SourceOptions = SourceOptions()

    @property
    def shown(self) -> str:
        """The text without credentials that a URL may hold."""
        return shown(self.text) if "://" in self.text else self.text


class SourceOpener:
    """Opens a set of sources once, in one event loop.

    `on_progress(due)` is called when a source is open or has failed. `due` is true when the catalog should be built now:
    with the last source, and with each one that comes after `SOURCE_WAIT_SECONDS`. `options` are what the settings say of
    sources of a command line, by name.
    """

    def __init__(
        self,
        wanted: Sequence[SourceSpec | SourceConfig],
        on_progress: Callable[[bool], None],
        minimum: Strength,
        options: Mapping[str, Mapping[str, Any]],
        extensions: Extensions = BUILT_IN,
    ) -> None:
        self._extensions = extensions
        self._options = options
        self._configs = [item for item in wanted if isinstance(item, SourceConfig)]
        self._specs = [(item, likely_name(item.text, extensions.kinds)) for item in wanted if isinstance(item, SourceSpec)]
        self._on_progress = on_progress
        self._places: dict[str, int] = {}  # by name: the first source of a name owns it, however late it opens
        self._next_place = self._expected = len(self._configs) + len(self._specs)
        self._opened: dict[int, OpenedSource] = {}  # by place
        self._tasks: dict[asyncio.Task[None], str] = {}  # each with the name that programs would use
        self._settled = 0  # sources that are open, or never will be
        self._wait_until = 0.0
        self._egress: Egress | None = None
        self._compilers = DefinitionTasks(minimum)
        self._vault = Vault()
        self.problems: list[Problem] = []
        self.likely_names: dict[str, str] = {}
        """The name that a source would have got, by the text that `problems` call it by until it is open."""

    @property
    def names(self) -> tuple[str | None, ...]:
        """The name of each source; None where it is known only once the source is open."""
        return (*(config.name for config in self._configs), *(name for _, name in self._specs))

    @property
    def started(self) -> bool:
        """Whether opening has begun."""
        return self._egress is not None

    @property
    def opened(self) -> list[OpenedSource]:
        """The open sources, in the order in which they were given."""
        return [self._opened[place] for place in sorted(self._opened)]

    async def open(self, naming: str | None = None) -> None:
        """Wait until the sources are open. Callers at the same time wait for the same opening, each for what it needs.

        With a text in `naming`, a source that the text does not name is waited for until `SOURCE_WAIT_SECONDS` have passed
        since the start; until it is open, it is a problem.
        """
        if self._egress is None:
            self._start()
        if named := [task for task, name in self._tasks.items() if naming is None or name in naming]:
            await asyncio.wait(named)
        if pending := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(pending, timeout=max(self._wait_until - asyncio.get_running_loop().time(), 0))

    async def cancel(self) -> None:
        """Stop opening what is not open yet."""
        if pending := [task for task in self._tasks if not task.done()]:
            for task in pending:
                task.cancel()
            await asyncio.wait(pending)

    async def close(self) -> None:
        """Close what the sources used, after the sources: the HTTP client, and the processes that read definitions."""
        await self._compilers.close()
        if self._egress is not None:
            await self._egress.close()

    def abandon(self) -> None:
        """End the processes that read definitions, after the event loop has closed."""
        self._compilers.abandon()

    def still_opening(self) -> list[Problem]:
        """Return a problem for each source that is not open yet."""
        if not self._tasks:
            return []
        hint = "check that it is up; a program that names it waits for it"
        current = asyncio.current_task()
        names = [name for task, name in self._tasks.items() if task is not current and not task.done()]
        return [Problem(name, f"the source {name} is still being opened", hint, opening=True) for name in names]

    async def reopen(self, name: str, config: SourceConfig | None = None) -> OpenedSource | None:
        """Open a source anew, with these settings or those that it has. Return the open one that it replaces.

        What can't be opened is reported. Where the settings are the same, its tools then stay as they were.
        """
        await self._stop_opening(name)
        old = self._opened.get(self._places.get(name, -1))
        wanted = config or (old.config if old is not None else None)
        if config is not None:
            self._configs = [*(one for one in self._configs if one.name != name), config]
        if self._egress is None:
            return None
        if wanted is None:
            await self._detect_again(name)
            return None
        try:
            opened = await open_source(wanted, self._context([wanted]))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source does not stop the others
            problem = _problem(name, error)
            if old is not None and old.config == wanted:
                self._report(
                    name, replace(problem, message=f"{problem.message}: its tools stay as they were", broken=False)
                )
                return None
            self._report(name, problem)
            return self._opened.pop(self._places.get(name, -1), None)
        self._report(name, *(Problem(name, text, broken=False) for text in opened.info.warnings))
        self._opened[self._place_of(name)] = opened
        if opened.changes is not None:
            opened.changes.subscribe_to_changes(self._source_changed)
        return old

    async def drop(self, name: str) -> OpenedSource | None:
        """Take a source out, with what was reported of it. Return it if it is open."""
        await self._stop_opening(name)
        self._configs = [one for one in self._configs if one.name != name]
        self._report(name)
        return self._opened.pop(self._places.pop(name, -1), None)

    def _place_of(self, name: str) -> int:
        """Return the place of a source; a new one comes after all others."""
        if name not in self._places:
            self._places[name] = self._next_place
            self._next_place += 1
        return self._places[name]

    async def _detect_again(self, name: str) -> None:
        """Try again to open a source of the command line that could not be opened."""
        for spec, likely in self._specs:
            if name in (likely, spec.shown):
                self.problems = [one for one in self.problems if one.source not in (name, spec.shown)]
                await self._detect_and_open(spec, self._context([]), self._place_of(likely or name))

    async def _stop_opening(self, name: str) -> None:
        pending = [task for task, likely in self._tasks.items() if likely == name and not task.done()]
        for task in pending:
            task.cancel()
            self._settled += 1
        if pending:
            await asyncio.wait(pending)

    def _report(self, name: str, *problems: Problem) -> None:
        """Report these problems of a source in place of those before."""
        self.problems = [*(one for one in self.problems if one.source != name), *problems]
        _log(problems)

    def refresh(self) -> None:
        """Read the facts about the open sources again, after one of them has changed."""
        self._opened = {place: opened.refreshed() for place, opened in self._opened.items()}

    def _start(self) -> None:
        from gloveport.policy.egress import Egress

        loop = asyncio.get_running_loop()
        self._egress = Egress()
        self._wait_until = loop.time() + SOURCE_WAIT_SECONDS
        loop.call_at(self._wait_until, self._waited_enough)
        configs: list[SourceConfig] = []
        for config in self._configs:
            try:
                self._context([config])
            except GloveportError as error:
                self._settle(_problem(config.name, error))
                continue
            if self._places.setdefault(config.name, len(configs)) == len(configs):
                configs.append(config)
            else:
                self._settle(_name_taken(config.name))
        named = [SourceConfig(name, "mcp", "", **options) for name, options in self._options.items()]
        context = self._context([*configs, *named])
        for place, config in enumerate(configs):
            self._tasks[loop.create_task(self._open(DetectedSource(config), context, place))] = config.name
        for place, (spec, name) in enumerate(self._specs, len(configs)):
            if name is not None:
                self.likely_names[spec.shown] = name
                self._places.setdefault(name, place)
            self._tasks[loop.create_task(self._detect_and_open(spec, context, place))] = name or spec.shown

    async def _detect_and_open(self, spec: SourceSpec, context: SourceContext, place: int) -> None:
        try:
            detected = await detect(spec.text, context, allow_private=spec.options.allow_private)
            detected = replace(detected, config=self._with_options(detected.config, spec))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source does not stop the others
            self._settle(_problem(spec.shown, error))
        else:
            await self._open(detected, context, place)

    def _with_options(self, config: SourceConfig, spec: SourceSpec) -> SourceConfig:
        """Return the settings with what the command line grants, and what the settings say of a source of this name.

        The name must be that of the text: what a definition calls itself opens nothing.
        """
        known = self._options.get(config.name, {}) if likely_name(spec.text) == config.name else {}
        granted = {name: value for name, value in asdict(spec.options).items() if value}
        return replace(config, **{**known, **granted})

    async def _open(self, detected: DetectedSource, context: SourceContext, place: int) -> None:
        config = detected.config
        if self._places.setdefault(config.name, place) != place:  # it would get the other's credentials
            self._settle(_name_taken(config.name))
            return
        try:
            opened = await open_source(config, context, detected.download)
        except Exception as error:  # noqa: BLE001 - as above
            self._settle(_problem(config.name, error))
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._settle(Problem(config.name, f"the source {config.name} could not be opened: it was cancelled"))
            return
        self._opened[place] = opened
        if opened.changes is not None:
            opened.changes.subscribe_to_changes(self._source_changed)
        if not config.verify_tls:
            logger.warning("the source %s accepts any certificate: it has verify_tls = false", config.name)
        self._settle(*(Problem(config.name, text, broken=False) for text in opened.info.warnings))

    def _source_changed(self) -> None:
        self.refresh()
        self._on_progress(True)

    def _settle(self, *problems: Problem) -> None:
        """Note that a source is open, or never will be."""
        _log(problems)
        self.problems += problems
        self._settled += 1
        is_last = self._settled >= self._expected
        self._on_progress(is_last or asyncio.get_running_loop().time() > self._wait_until)

    def _waited_enough(self) -> None:
        if pending := self.still_opening():
            names = ", ".join(problem.source for problem in pending)
            logger.warning("still being opened: %s (a program that names one waits for it)", names)
            self._on_progress(True)

    def _context(self, configs: Iterable[SourceConfig]) -> SourceContext:
        assert self._egress is not None
        secrets = {(config.name, slot): origin for config in configs for slot, origin in _secrets(config).items()}
        given = {"sources": self._places, "vault": self._vault, "providers": self._extensions.providers}
        credentials = ConfiguredCredentials(secrets, egress=self._egress, **given)
        folder = cache_folder() / "definitions"
        return SourceContext(self._egress, credentials, folder, self._compilers, self._extensions.kinds)


def _secrets(config: SourceConfig) -> Mapping[str, str]:
    """Return where each secret of a source comes from, by slot; those in the environment of its command included."""
    return {**config.credentials, **{name: value for name, value in config.env.items() if value.startswith("env:")}}


def _problem(name: str, error: Exception) -> Problem:
    if isinstance(error, GloveportError):
        code = "auth-required" if error.code == "auth-required" else "source-failed"
        return Problem(name, error.message, error.advice, code=code)
    logger.error("the source %s could not be opened", name, exc_info=error)
    return Problem(name, f"the source {name} could not be opened: {type(error).__name__}")


def _name_taken(name: str) -> Problem:
    return Problem(name, f"two sources are called {name}", "give one another name")


def _log(problems: Iterable[Problem]) -> None:
    for problem in problems:
        level = logging.WARNING if problem.broken else logging.INFO
        logger.log(level, "%s%s", problem.message, f" (hint: {problem.hint})" if problem.hint else "")
