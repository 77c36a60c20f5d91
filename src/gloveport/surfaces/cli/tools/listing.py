"""`gloveport tools list` and `search`: answered from the lists of tools on disk; only sources without one are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gloveport.catalog.search import SearchIndex
from gloveport.catalog.stored_index import StoredTool
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, exit_code
from gloveport.surfaces.cli.pager import AnswerPage, paged
from gloveport.surfaces.cli.tools.tool_lists import CachedList, cached_lists, search_lists
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Stream, clip, visible, visible_line

if TYPE_CHECKING:
    from gloveport.host.port import Gloveport
    from gloveport.types import Tool

MAX_NAME_COLUMNS = 60
MIN_TEXT_COLUMNS = 20
Show = Callable[[Mapping[str, CachedList], "Gloveport | None"], int]


@dataclass(frozen=True, slots=True)
class _Answer:
    """Tools to show, the lists on disk that they came from, and the port that has the others open, if there are others."""

    tools: Sequence[StoredTool]
    lists: Mapping[str, CachedList]
    port: Gloveport | None
    source: str | None

    @property
    def wrong(self) -> GloveportError | None:
        """The error that names the sources that should be open and are not."""
        if self.port is None:
            return None
        from gloveport.surfaces.cli.tools.command import not_open

        return not_open(self.port, self.source)


def list_command(view: ViewOptions, source: str | None) -> int:
    """List the tools of all sources, or of one; return the exit code."""

    def show(lists: Mapping[str, CachedList], port: Gloveport | None) -> int:
        pairs = [*_cached_tools(lists), *_open_tools(port)]
        answer = _Answer([stored for stored, _ in pairs], lists, port, source)
        return _show(view, page, answer, {"total": len(pairs)}, "")

    with paged(view) as page:
        return _answer(view, source, show)


def search_command(view: ViewOptions, query: str, source: str | None, limit: int) -> int:
    """List the tools that match a query, the best first; return the exit code."""

    def show(lists: Mapping[str, CachedList], port: Gloveport | None) -> int:
        if port is None:
            found, count = search_lists(list(lists.values()), query, limit)
            tools = found.tools
        else:
            pairs = [*_cached_tools(lists), *_open_tools(port)]
            stored = {tool.address: each for each, tool in pairs}
            found, count = SearchIndex([tool for _, tool in pairs]).search(query, source, limit), len(pairs)
            tools = [stored[tool.address] for tool in found.tools]
        counts = f"{len(tools):,} of {found.total:,} matches, among {count:,} tool{'s' * (count != 1)}"
        return _show(view, page, _Answer(tools, lists, port, source), {"total": found.total, "of": count}, counts)

    with paged(view) as page:
        return _answer(view, source, show)


def _answer(view: ViewOptions, source: str | None, show: Show) -> int:
    """Show the tools: those of a source that is named as it is now, all others from their lists where these are good."""
    configs = [view.source(source)] if source is not None else view.settings().sources
    lists = cached_lists(configs) if source is None else {}
    missing = [config.name for config in configs if config.name not in lists]
    if not missing:
        try:
            return show(lists, None)
        except ValueError:  # a damaged list
            lists, missing = {}, [config.name for config in configs]
    from gloveport.large_values import off_loop
    from gloveport.surfaces.cli.tools.command import with_port

    async def work(port: Gloveport) -> int:
        return await off_loop(show, lists, port)

    return with_port(view, work, only=missing, naming=source or " ".join(_in_files(configs)))


def _in_files(configs: Iterable[SourceConfig]) -> Iterator[str]:
    """Yield the sources with a definition in a file: reading it is bounded, so a list can wait for it."""
    for config in configs:
        if config.kind in ("openapi", "graphql") and isinstance(config.location, str) and "://" not in config.location:
            yield config.name


def _cached_tools(lists: Mapping[str, CachedList]) -> list[tuple[StoredTool, Tool]]:
    return [pair for each in lists.values() for pair in each.tools()]


def _open_tools(port: Gloveport | None) -> Iterator[tuple[StoredTool, Tool]]:
    for tool in port.catalog.tools if port is not None else ():
        entry = port.catalog.entry(tool.address) if port else None
        first = tool.description.partition("\n")[0]
        yield StoredTool(tool.address, first, tool.kind, tool.writes, bool(entry and entry.suspended)), tool


def _show(view: ViewOptions, page: AnswerPage, answer: _Answer, about: Mapping[str, Any], counts: str) -> int:
    wrong, port, err = answer.wrong, answer.port, page.err
    if view.as_json:
        from gloveport.surfaces.documents import answer_document, write_document

        problems = [asdict(problem) for problem in port.problems] if port else []
        ages = {name: round(each.age_seconds) for name, each in answer.lists.items()}
        rows = [_row(tool) for tool in answer.tools]
        document = {**about, "tools": rows, "problems": problems, "cached_seconds": ages}
        write_document(page.out, answer_document(document, wrong))
        return exit_code(wrong.code) if wrong else 0
    _show_tools(page.out, answer.tools)
    for problem in port.problems if port is not None and answer.source is not None else ():
        if not problem.broken:
            err.line(f"{err.paint('!', 'yellow')} {visible(problem.message)}")
    if not answer.lists and port is None:
        err.line(as_typed("there are no sources yet: `gloveport add --help` shows how to add one"))
    if counts:
        err.line(err.paint(counts, "dim"))
    if answer.lists:
        oldest = max(each.age_seconds for each in answer.lists.values())
        which = "the list" if len(answer.lists) == 1 else "lists"
        text = f"from {which} of tools on disk, up to {_age(oldest)} old; `gloveport tools list SOURCE` reads one again"
        err.line(err.paint(err.fold(as_typed(text)), "dim"))
    if wrong is not None and port is not None and answer.source is not None:
        from gloveport.surfaces.cli.tools.command import show_problems

        show_problems(err, port)
    elif wrong is not None:
        err.line(err.fold(as_typed(f"{wrong.message} ({wrong.hint})")))
    return exit_code(wrong.code) if wrong else 0


def _row(tool: StoredTool) -> dict[str, Any]:
    return {
        "path": tool.address,
        "description": tool.description,
        "kind": tool.kind,
        "writes": tool.writes,
        "suspended": tool.suspended,
    }


def _show_tools(out: Stream, tools: Sequence[StoredTool]) -> None:
    """Write one line for each tool; where the terminal is narrow, its description goes below it."""
    width = min(MAX_NAME_COLUMNS, max((len(tool.address) for tool in tools), default=0))
    beside = not out.terminal or out.columns - width - 4 >= MIN_TEXT_COLUMNS
    for tool in tools:
        mark = out.paint("!", "yellow") if tool.suspended else out.paint("w", "yellow") if tool.writes else " "
        text = visible_line(tool.description)
        if not beside:
            out.line(f"{mark} {tool.address}")
            out.line("    " + out.paint(clip(text, out.columns - 4), "dim"))
            continue
        room = max(MIN_TEXT_COLUMNS, out.columns - width - 4)
        out.line(f"{mark} {tool.address:<{width}}  {out.paint(clip(text, room) if out.terminal else text, 'dim')}".rstrip())


def _age(seconds: float) -> str:
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "a minute"
