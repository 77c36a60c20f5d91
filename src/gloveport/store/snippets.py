"""The snippets in the store: programs of runs that worked, saved by a person under a name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import orjson

from gloveport.errors import OptionError
from gloveport.large_values import looked_up
from gloveport.store.database import StoreFile
from gloveport.store.encryption import Private, about
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement
from gloveport.tool_names import problem_with
from gloveport.types import Language

SOURCE = "snippets"
MAX_SNIPPETS = 1000
MAX_DESCRIPTION_CHARS = 2000


@looked_up
@dataclass(frozen=True, slots=True)
class Snippet:
    """A program that others call. `tools` has the fingerprint of each tool that it needs, by address.

    `parameters` are the names in the input of the run that it was saved from; None if that had no input.
    """

    name: str
    description: str
    language: Language
    engine: str
    code: str
    tools: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[str, ...] | None = None
    run: str = ""

    @property
    def address(self) -> str:
        """The address of the tool that runs it."""
        return f"{SOURCE}.{self.name}"


@dataclass(frozen=True, slots=True)
class SavedSnippet:
    """A snippet in the store, with who has saved it and when, in seconds since 1970."""

    snippet: Snippet
    saver: str
    saved: float


class SnippetStore(StoreFile):
    """The snippets in the store at a path. Each method is one transaction; call them in a thread beside an event loop."""

    def save(self, snippet: Snippet, saver: str) -> None:
        """Save a snippet under a new name; raise OptionError."""
        if problem := problem_with(snippet.name):
            raise OptionError(f"the name {snippet.name[:100]!a} {problem}")
        if len(snippet.description) > MAX_DESCRIPTION_CHARS:
            raise OptionError(f"the description has more than {MAX_DESCRIPTION_CHARS:,} characters")
        with self.reading() as connection:
            if connection.execute("SELECT count(*) FROM snippets").fetchone()[0] >= MAX_SNIPPETS:
                raise OptionError(f"there are {MAX_SNIPPETS:,} snippets already", hint="remove one")
        body = Private(msgspec.json.encode(snippet), about("snippets", "body", snippet.name))
        change = Statement("INSERT OR IGNORE INTO snippets VALUES (?, ?, ?, ?)", (snippet.name, time.time(), saver, body))
        told = {"name": snippet.name, "saver": saver, "run": snippet.run}
        if not EventLog.record_change(self.path, "snippet-saved", told, change):
            hint = f"remove it first, or choose another --name: `gloveport snippets remove {snippet.name}`"
            raise OptionError(f"there is a snippet {snippet.name} already", code="snippet-exists", hint=hint)

    def find(self, name: str) -> SavedSnippet:
        """Return the snippet of a name; raise OptionError."""
        found = next((one for one in self.all() if one.snippet.name == name.removeprefix(f"{SOURCE}.")), None)
        if found is None:
            raise OptionError(f"there is no snippet {name[:100]!r}", hint="`gloveport snippets list` shows them")
        return found

    def all(self) -> list[SavedSnippet]:
        """Return the snippets by name."""
        with self.reading() as connection:
            rows = connection.execute("SELECT name, body, saver, saved FROM snippets ORDER BY name").fetchall()
            bodies = [connection.unseal(body, about("snippets", "body", name)) for name, body, *_ in rows]
        return [
            SavedSnippet(msgspec.convert(orjson.loads(body), Snippet), *row[2:])
            for body, row in zip(bodies, rows, strict=True)
        ]

    def remove(self, name: str, remover: str) -> None:
        """Delete a snippet; raise OptionError."""
        found = self.find(name).snippet
        change = Statement("DELETE FROM snippets WHERE name = ?", (found.name,))
        EventLog.record_change(self.path, "snippet-removed", {"name": found.name, "remover": remover}, change)

    def tools_of(self, run: str) -> list[str]:
        """Return the addresses of the tools that a run has called."""
        with self.reading() as connection:
            return [tool for (tool,) in connection.execute("SELECT tool FROM run_tools WHERE run = ? ORDER BY 1", (run,))]
