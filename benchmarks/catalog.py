"""Search and type checks: the waiting time of an agent before its program runs."""

from __future__ import annotations

import random
import statistics
import time
from types import SimpleNamespace
from typing import Any

import orjson

from benchmarks.programs import unread
from benchmarks.sampling import Row, median
from gloveport import Gloveport
from gloveport.catalog import Catalog
from gloveport.catalog.declarations import declarations
from gloveport.host.program_reader import ProgramReader
from gloveport.host.type_check import TypeChecks
from gloveport.prepare import prepare
from gloveport.surfaces.agents.tools import AgentTools
from gloveport.types import DEFAULT_AGENT, Language, Limits, Tool

VERBS = [
    "list",
    "get",
    "create",
    "update",
    "delete",
    "search",
    "add",
    "remove",
    "merge",
    "approve",
    "cancel",
    "download",
    "upload",
    "archive",
    "restore",
    "share",
]
NOUNS = [
    "issue",
    "pull",
    "branch",
    "commit",
    "user",
    "team",
    "label",
    "comment",
    "release",
    "asset",
    "file",
    "folder",
    "message",
    "channel",
    "invoice",
    "customer",
]
WHERE = ["repository", "organization", "project", "account", "workspace", "team", "user", "folder", "site", "group"]
QUERIES = [f"{verb} {noun}s of a {place}" for verb in VERBS[::3] for noun in NOUNS[::3] for place in WHERE[::4]]
QUERIES += ["creat isue", "listPullCommits", "repositry labels", "donwload invoice", "who is in the team"]
TYPESCRIPT = """const found: number[] = [];
for (const city of ["Oslo", "Rome", "Kyiv"]) {
  const weather = await tools.weather.now.get({city, days: 3});
  if (weather.temp > 10) found.push(weather.temp);
}
return {mean: found.reduce((a, b) => a + b, 0) / found.length};"""
PYTHON = """found = []
for city in ["Oslo", "Rome", "Kyiv"]:
    weather = await tools.weather.now.get(city=city, days=3)
    if weather["temp"] > 10:
        found.append(weather["temp"])
{"mean": sum(found) / len(found)}"""
WEATHER = Tool(
    "weather.now.get",
    "The weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
    {"type": "object", "properties": {"temp": {"type": "number"}, "sky": {"type": "string"}}, "required": ["temp"]},
)


class Listed:
    """A source that only lists its tools."""

    def __init__(self, name: str, tools: list[Tool]) -> None:
        self.name = name
        self._tools = tools

    def tools(self) -> list[Tool]:
        """Return its tools."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, object]) -> object:
        """Do nothing."""
        del tool, args

    async def close(self) -> None:
        """Do nothing."""


def many(count: int) -> Catalog:
    """Return a catalog of so many tools with realistic names and descriptions."""
    chance = random.Random(1)
    sources = []
    for number in range(10):
        tools = {}
        while len(tools) < count // 10:
            verb, noun, place = chance.choice(VERBS), chance.choice(NOUNS), chance.choice(WHERE)
            address = f"api{number}.{place}s.{verb}_{noun}_{len(tools)}"
            text = f"{verb.title()} the {noun}s of a {place}\nNeeds the right to {verb} {noun}s. See also {chance.choice(NOUNS)}."
            tools[address] = Tool(address, text, {}, kind="openapi", named=(place, noun, "page", "per_page"))
        sources.append(Listed(f"api{number}", list(tools.values())))
    return Catalog(sources)


def searches(catalog: Catalog) -> list[Row]:
    """Measure searches. The first one builds the index."""
    began = time.perf_counter()
    catalog.search("first")
    built = time.perf_counter() - began
    catalog.search("creat isue")
    times = []
    for query in QUERIES * 3:
        began = time.perf_counter()
        catalog.search(query)
        times.append(time.perf_counter() - began)
    times.sort()
    p95 = times[int(0.95 * len(times))]
    count = f"{len(catalog.tools):,}"
    return [
        (
            f"search on {count} tools, p95",
            f"{p95 * 1e3:.1f} ms",
            f"p50 {statistics.median(times) * 1e3:.1f} ms",
            "",
            "≤ 5 ms",
        ),
        (f"index of {count} tools", f"{built * 1e3:.0f} ms", "", "", ""),
    ]


def carried(catalog: Catalog) -> Row:
    """Measure the text that an agent always has in its context."""
    listed = AgentTools(Gloveport()).descriptions(catalog)
    text = "".join(f"{one.name} {one.description} {orjson.dumps(one.input_schema).decode()}" for one in listed)
    # A token has about four characters; 3.5 is a conservative estimate for text with punctuation.
    return (
        f"text an agent always carries, {len(catalog.tools):,} tools",
        f"{len(text) / 3.5:,.0f} tokens",
        f"{len(text):,} characters",
        "",
        "≤ 1,000 tokens",
    )


async def checks(rounds: int) -> list[Row]:
    """Measure warm type checks."""
    catalog = Catalog([Listed("weather", [WEATHER])])
    reader = ProgramReader("kernel")
    checker = TypeChecks("kernel", reader)
    asked: Any = SimpleNamespace(subset=None, limits=Limits(), agent=DEFAULT_AGENT, tools=None)
    rows = []
    languages: list[tuple[Language, str, str]] = [("typescript", TYPESCRIPT, "≤ 30 ms"), ("python", PYTHON, "≤ 10 ms")]
    for language, text, bar in languages:
        header = declarations(catalog, text, language)
        times: list[float] = []
        again: list[float] = []
        for _ in range(rounds + 10):
            program = prepare(unread(text, language), language=language)
            for samples in (times, again):
                began = time.perf_counter()
                judged = await checker.check(program, catalog, asked)
                assert judged.error is None
                samples.append(time.perf_counter() - began)
        cold = f"the first {times[0] * 1e3:,.0f} ms; {len(header):,} characters of declarations"
        rows.append((f"type check of {language}, warm p50", f"{median(times[10:]) * 1e3:.1f} ms", cold, "", bar))
        rows.append((f"type check of {language}, the same text again", f"{median(again) * 1e3:.2f} ms", "", "", ""))
    await checker.close()
    await reader.tasks.close()
    return rows


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this module."""
    catalog = many(12_000)
    return [*searches(catalog), carried(catalog), *await checks(rounds)]
