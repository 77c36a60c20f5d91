"""The list of tools that each source had when it was last open, on disk: `tools list` and `tools search` start no server.

A list belongs to exactly these settings of a source. It ends with a day, with a change of the source's file, and with a
change of what was accepted of the source. Python files are never listed from here: what they define is known when they run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gloveport.catalog.search import SearchIndex, SearchResult, WordIndex
from gloveport.catalog.stored_index import StoredTool, load_index, store_index
from gloveport.config import SourceConfig
from gloveport.folders import accepted_file
from gloveport.surfaces.cli.tools.tool_names import keep_names, lists_folder, write_whole
from gloveport.trust_store import digest_of

if TYPE_CHECKING:
    from gloveport.types import Tool

FORMAT_VERSION = 2
MAX_AGE_SECONDS = 24 * 3600
MAX_UNUSED_DAYS = 30
MAX_INDEXED_CHARS = 1500


@dataclass(frozen=True, slots=True)
class CachedList:
    """The list of one source: its file, and when it was written, in nanoseconds."""

    name: str
    path: Path
    written: int

    @property
    def age_seconds(self) -> float:
        """How old the list is."""
        return time.time() - self.written / 1e9

    def tools(self) -> list[tuple[StoredTool, Tool]]:
        """Return each tool as it is shown, and as much of it as a search needs; raise ValueError for a damaged file."""
        try:
            return [_read(*row) for row in json.loads(self.path.read_bytes())]
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.path.name} is damaged") from error


def _read(  # noqa: PLR0917 - one row
    address: str, text: str, kind: str, writes: bool, suspended: bool, names: list[str], described: str
) -> tuple[StoredTool, Tool]:
    from gloveport.types import Tool  # here: a search of the index needs none

    shown = StoredTool(address, text.partition("\n")[0], kind, writes, suspended)
    return shown, Tool(address, text, {}, named=tuple(names), described=described.strip())


def cached_lists(configs: Iterable[SourceConfig]) -> dict[str, CachedList]:
    """Return the lists that are still good, by the name of the source."""
    found = (_cached(config) for config in configs)
    return {each.name: each for each in found if each is not None}


def _cached(config: SourceConfig) -> CachedList | None:
    if config.kind == "functions":
        return None
    path = _path(config)
    try:
        written = path.stat().st_mtime_ns
    except OSError:
        return None
    changed = max(_changed_ns(accepted_file(config.pin_key)), _changed_ns(config.location))
    is_old = time.time() - written / 1e9 > MAX_AGE_SECONDS
    return None if is_old or changed >= written else CachedList(config.name, path, written)


def _changed_ns(file: str | Path | tuple[str, ...]) -> int:
    if isinstance(file, tuple) or (isinstance(file, str) and "://" in file):
        return 0
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def keep_list(config: SourceConfig, tools: Iterable[Tool], suspended: Mapping[str, object]) -> None:
    """Keep the list of a source that is open now; a disk that is full or read-only is no error."""
    rows = []
    for tool in tools:
        text, is_suspended = tool.description[:MAX_INDEXED_CHARS], tool.address in suspended
        rows.append((tool.address, text, tool.kind, tool.writes, is_suspended, tool.parameters, tool.parameter_text))
    path = _path(config)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unused(path.parent)
        keep_names(config.settings, config.name, [row[0] for row in rows])
        if config.kind != "functions":
            write_whole(path, json.dumps(rows))


def search_lists(lists: Sequence[CachedList], query: str, limit: int) -> tuple[SearchResult[StoredTool], int]:
    """Search all these lists; return what was found, and the number of all tools. Raise ValueError for a damaged list.

    The index is on disk, and built again when one of the lists is new.
    """
    parts = [f"{each.path.name} {each.written}" for each in lists]
    path = lists_folder() / f"{hashlib.sha256(repr((FORMAT_VERSION, parts)).encode()).hexdigest()}.sqlite"
    if (stored := load_index(path)) is not None:
        with suppress(sqlite3.Error, ValueError, IndexError):  # it is damaged where only a search reads it
            return SearchIndex(*stored).search(query, None, limit), len(stored[0])
    tools = [pair for each in lists for pair in each.tools()]
    shown, indexed = [each for each, _ in tools], WordIndex([tool for _, tool in tools])
    store_index(path, shown, indexed)
    return SearchIndex(shown, indexed).search(query, None, limit), len(shown)


def _path(config: SourceConfig) -> Path:
    exact: dict[str, Any] = {**asdict(config), "format": FORMAT_VERSION}
    return lists_folder() / f"{digest_of(exact)}.json"


def _remove_unused(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > MAX_UNUSED_DAYS * 86400:
                path.unlink()
