"""The catalog: one address for each tool, and the answers to every question about what can be called."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from gloveport.catalog.confusables import find_confusable, skeleton
from gloveport.catalog.descriptions import ToolDescription, describe_tool
from gloveport.catalog.fingerprint import fingerprint
from gloveport.catalog.guest_globals import GUEST_GLOBALS
from gloveport.catalog.search import SearchIndex, SearchResult
from gloveport.catalog.tool_filter import ToolFilter
from gloveport.catalog.words import words
from gloveport.errors import OptionError
from gloveport.sources import Source
from gloveport.suggestions import Sieve, distance, fold, tolerated
from gloveport.tool_names import (
    CALLER_SOURCE,
    REPLACEABLE_NAMES,
    RESERVED_ROOT_NAMES,
    RESERVED_SOURCE_NAMES,
    ROOT_SOURCE,
    problem_with,
)
from gloveport.types import Problem, Tool

MAX_SUGGESTIONS = 3
MAX_NAME_CHARS = 200
PAGES_SUFFIX = ".pages"


class CatalogEntry(NamedTuple):
    """A tool and its source. `suspended` is the reason why it must not be called for now, if there is one."""

    tool: Tool
    source: Source
    suspended: str | None = None


class Catalog:
    """The tools that a run can call. Names are exact: an address, the root-mounted name of a function, or `source:path`."""

    def __init__(
        self,
        sources: Iterable[Source],
        suspended: Mapping[str, str] | None = None,
        pinned: Mapping[str, Tool] | None = None,
        broken: Mapping[str, Problem] | None = None,
        seen: ToolFilter | None = None,
        *,
        snippets: Source | None = None,
        caller: Source | None = None,
    ) -> None:
        """Index the tools of the sources.

        `suspended` gives, by address, why a tool can't be called, and `pinned` the definition to show meanwhile. `broken`
        gives the problems of the sources that could not be opened, by name. What `seen` does not
        take, and sources without any other tool, are left out. `snippets` become `tools.snippets`, the tools of a `caller`
        `tools.caller` and more.
        """
        self._searchable = False  # until the search index is loaded
        self._loading: asyncio.Future[None] | None = None
        self._pinned = pinned or {}
        self._all_sources = tuple(sources)
        shown = [(source, source.tools()) for source in self._all_sources]
        if seen is not None:
            shown = [(source, [tool for tool in tools if seen.takes(tool.address)]) for source, tools in shown]
            shown = [(source, tools) for source, tools in shown if tools]
        self.sources: tuple[Source, ...] = tuple(source for source, _ in shown)
        self._suspended = suspended or {}
        self._broken = broken or {}
        self._seen = seen
        self._entries: dict[str, CatalogEntry] = {}
        self._children: dict[str, dict[str, None]] = {"": {}}
        self._sources = names = dict[str, Source]()
        for source, tools in shown:
            _check_source(source, names)
            names[source.name] = source
            self._children[""][source.name] = None
            self._children[source.name] = {}
            for tool in tools:
                self._add(self._pinned.get(tool.address, tool), source)
        self._snippets = snippets
        for source in (snippets, caller):
            if source is not None:
                self._children[""][source.name] = None
                self._children[source.name] = {}
                for tool in source.tools():
                    self._add(tool, source)
        self._mount_root(names)
        roots = frozenset(names)
        if caller is not None:
            roots |= {caller.name, *self._mount_caller(names)}
        self.tools: tuple[Tool, ...] = tuple({id(e): e.tool for e in self._entries.values()}.values())
        self.roots: frozenset[str] = roots - GUEST_GLOBALS
        self.declaration_cache: dict[tuple[object, ...], str] = {}  # filled by `declarations`
        pair = find_confusable([*self._children, *self._entries, *RESERVED_ROOT_NAMES])
        if pair:
            raise OptionError(f"the names {pair[0]!a} and {pair[1]!a} look alike", hint="rename one of them")

    def with_snippets(self, snippets: Source) -> Catalog:
        """Return the same catalog with `tools.snippets`, whatever its filter takes."""
        return Catalog(self._all_sources, self._suspended, self._pinned, self._broken, self._seen, snippets=snippets)

    def with_caller(self, caller: Source) -> Catalog:
        """Return the same catalog with the tools of a caller, whatever its filter takes."""
        about = self._all_sources, self._suspended, self._pinned, self._broken, self._seen
        return Catalog(*about, snippets=self._snippets, caller=caller)

    def with_added(self, sources: Iterable[Source]) -> Catalog:
        """Return the same catalog with more sources, of whose tools its filter takes a part."""
        about = self._suspended, self._pinned, self._broken, self._seen
        return Catalog((*self._all_sources, *sources), *about, snippets=self._snippets)

    def only(self, seen: ToolFilter) -> Catalog:
        """Return the catalog of the tools that a filter takes. Nothing in it tells of the others."""
        broken = {name: problem for name, problem in self._broken.items() if seen.takes_source(name)}
        return Catalog(self._all_sources, self._suspended, self._pinned, broken, seen)

    def _add(self, tool: Tool, source: Source) -> None:
        first, *rest = tool.address.split(".")
        if first != source.name or not rest:
            raise OptionError(f"the tool {tool.address} does not belong to the source {source.name}")
        for part in rest:
            if problem := problem_with(part):
                raise OptionError(f"the name {part!a} in {tool.address!a} {problem}")
        if tool.address in self._entries:
            raise OptionError(f"the source {source.name} has two tools called {tool.address}", hint="rename one of them")
        self._entries[tool.address] = CatalogEntry(tool, source, self._suspended.get(tool.address))
        above = first
        for part in rest:
            self._children.setdefault(above, {})[part] = None
            above = f"{above}.{part}"

    def _mount_root(self, names: Mapping[str, Source]) -> None:
        for name in self._children.get(ROOT_SOURCE, ()):
            if name in RESERVED_SOURCE_NAMES or name in names:
                what = "a built-in" if name in RESERVED_SOURCE_NAMES else "the source of that name"
                raise OptionError(f"{ROOT_SOURCE}.{name} and {what} would both be tools.{name}", hint="rename one of them")
            if entry := self._entries.get(f"{ROOT_SOURCE}.{name}"):
                self._entries[name] = entry
                self._children[""][name] = None
        self._mount_functions(names)

    def _mount_functions(self, names: Mapping[str, Source]) -> None:
        """Also mount functions of other sources at the root, unless the name is taken or ambiguous.

        Their own address stays the one that is shown: it does not change when another source comes along.
        """
        found: dict[str, list[CatalogEntry]] = {}
        for entry in self._entries.values():
            source, _, name = entry.tool.address.partition(".")
            if entry.tool.kind == "function" and source != ROOT_SOURCE and "." not in name:
                found.setdefault(name, []).append(entry)
        taken = {skeleton(name) for name in (*self._children[""], *names, *self._broken, *RESERVED_SOURCE_NAMES)}
        free = Counter(skeleton(name) for name in found)
        for name, entries in found.items():
            if len(entries) == 1 and skeleton(name) not in taken and free[skeleton(name)] == 1:
                self._entries[name] = entries[0]
                self._children[""][name] = None

    def _mount_caller(self, names: Mapping[str, Source]) -> list[str]:
        """Also mount a caller's tools at the root, where the port has nothing of that name. Return the namespaces."""
        taken = {*self._children[""], *names, *self._broken, *(RESERVED_ROOT_NAMES - REPLACEABLE_NAMES)}
        free = self._children[CALLER_SOURCE].keys() - taken
        self._children[""] |= dict.fromkeys(name for name in self._children[CALLER_SOURCE] if name in free)
        _mount(self._entries, free)
        _mount(self._children, free)
        return [name for name in free if name in self._children]

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the tool of exactly this name and its source, or None."""
        found = self._entries.get(name)
        if found is None and ":" in name:
            source, _, path = name.partition(":")
            found = self._entries.get(f"{source}.{path}") if source in self._sources else None
        return found

    def find(self, name: str) -> Tool | None:
        """Return the tool of exactly this name, or the tool whose `.pages` it names; None when there is none."""
        found = self.entry(name) or (self.entry(name.removesuffix(PAGES_SUFFIX)) if self.has_pages(name) else None)
        return found.tool if found else None

    def has_pages(self, name: str) -> bool:
        """Return True for `x.list.pages` if `x.list` has pages and no tool has the longer name."""
        if not name.endswith(PAGES_SUFFIX) or self.entry(name):
            return False
        found = self.entry(name.removesuffix(PAGES_SUFFIX))
        return found is not None and found.tool.pages

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of the sources that are there for programs: the source of plain functions only if it has any."""
        names = (source.name for source in self.sources)
        return tuple(name for name in names if name != ROOT_SOURCE or self._children.get(ROOT_SOURCE))

    def source_problem(self, name: str) -> Problem | None:
        """Return why the source of this name, or of a tool with this name, could not be opened; None if it is open."""
        source = name.replace(":", ".").partition(".")[0]
        return None if source in self._sources else self._broken.get(source)

    def tells_of(self, problem: Problem) -> bool:
        """Return whether who sees these tools may learn of a problem with a source."""
        return self._seen is None or any(problem is each for each in self._broken.values())

    def is_namespace(self, name: str) -> bool:
        """Return True when there are tools below this name."""
        return name in self._children

    def names(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names directly below a namespace: what `Object.keys(tools.x)` lists."""
        return tuple(self._children.get(prefix, ()))

    def path_of(self, tool: Tool) -> str:
        """Return the path that a program writes after `tools.`: the tool's address, or its root-mounted name."""
        source, _, rest = tool.address.partition(".")
        if source not in (ROOT_SOURCE, CALLER_SOURCE) or (mounted := self._entries.get(rest)) is None:
            return tool.address
        return rest if mounted.tool.address == tool.address else tool.address

    def fingerprint(self, name: str) -> str | None:
        """Return the fingerprint of the tool of this name, or None."""
        tool = self.find(name)
        return fingerprint(tool) if tool else None

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return up to three names that may have been meant: similar spelling, or the same words in another order."""
        wanted = name[:MAX_NAME_CHARS].replace(":", ".").removeprefix(f"{ROOT_SOURCE}.")
        ranked = []
        for index in {*self._sieve.like(fold(wanted)), *self._leaf_sieve.like(fold(wanted.rpartition(".")[2]))}:
            apart = _distance_to(wanted, self._paths[index])
            if apart is not None:
                ranked.append((apart, self._paths[index]))
        by_tool: dict[str, str] = {}  # a function that is also mounted at the root is named once
        for _, path in sorted(ranked):
            by_tool.setdefault(self._entries[path].tool.address, path)
        return tuple(by_tool.values())[:MAX_SUGGESTIONS]

    async def prepare_search(self) -> None:
        """Load the search index in a thread, once: for some catalogs it takes half a second."""
        if not self._searchable:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.ensure_future(asyncio.to_thread(self._load_index))
            await asyncio.shield(self._loading)

    def _load_index(self) -> None:
        self._index.prepare()
        self._searchable = True

    def search(self, query: str, *, source: str | None = None, limit: int = 10) -> SearchResult[Tool]:
        """Return the tools that match a query, best first, and the number of all matches."""
        return self._index.search(query, source, limit)

    def describe(self, name: str, at: str | None = None) -> ToolDescription | None:
        """Return what an agent needs to know to call the tool of exactly this name, or None.

        With `at`, the declarations are of that part of its result; raises UnknownPart when the result has no such part.
        """
        tool = self.find(name)
        return None if tool is None else describe_tool(self.path_of(tool), tool, at)

    @cached_property
    def _index(self) -> SearchIndex[Tool]:
        return SearchIndex(self.tools)

    @cached_property
    def _paths(self) -> list[str]:
        mounted = (name for name in self._children[""] if name in self._entries)
        return list(dict.fromkeys((*map(self.path_of, self.tools), *mounted)))

    @cached_property
    def _sieve(self) -> Sieve:
        return Sieve([fold(path) for path in self._paths])

    @cached_property
    def _leaf_sieve(self) -> Sieve:
        return Sieve([fold(path.rpartition(".")[2]) for path in self._paths])


def _mount(table: dict[str, Any], roots: Collection[str]) -> None:
    """Add what a table has below `caller.` under its name without that, if it begins with one of the roots."""
    for name in [name for name in table if name.startswith(f"{CALLER_SOURCE}.")]:
        path = name.partition(".")[2]
        if path.partition(".")[0] in roots:
            table[path] = table[name]


def _check_source(source: Source, names: Mapping[str, Source]) -> None:
    if problem := problem_with(source.name):
        raise OptionError(f"the source name {source.name!a} {problem}")
    if source.name in RESERVED_SOURCE_NAMES:
        raise OptionError(
            f"a source can't be called {source.name}",
            hint=f"these names are reserved: {', '.join(sorted(RESERVED_SOURCE_NAMES))}",
        )
    if source.name in names:
        raise OptionError(f"two sources are called {source.name}", hint="give one of them another name")


def _distance_to(wanted: str, path: str) -> float | None:
    """Return how far a tool's path is from the wanted name, or None when it is too far to be meant."""
    max_distance = tolerated(fold(wanted))
    apart: float = distance(fold(wanted), fold(path), max_distance)
    same_source = path.startswith(f"{wanted.partition('.')[0]}.")
    if apart > max_distance:
        wanted_leaf, leaf = fold(wanted.rpartition(".")[2]), fold(path.rpartition(".")[2])
        leaf_distance = distance(wanted_leaf, leaf, tolerated(wanted_leaf))
        wanted_words, path_words = set(words(wanted)), set(words(path))
        if wanted_words and wanted_words <= path_words:
            apart = 3.0 + 0.25 * len(path_words - wanted_words)  # the same words in another order, or one step omitted
        elif same_source and leaf_distance <= tolerated(wanted_leaf):
            apart = 4.0 + leaf_distance  # the same last name below the same source
        elif path == wanted.rpartition(".")[2]:
            apart = 5.0  # a root-mounted function that was written with a source
        else:
            return None
    return apart - 0.5 * same_source
