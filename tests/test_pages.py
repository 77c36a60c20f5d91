"""`tools.x.list.pages(args)`: a long result, page by page, in both languages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.types import Page, Tool

pytestmark = pytest.mark.integration

NUMBERS = Tool(
    "count.numbers",
    "Numbers, three at a time",
    {
        "type": "object",
        "properties": {"to": {"type": "integer"}, "size": {"type": "integer"}},
        "required": ["to"],
        "additionalProperties": False,
    },
    kind="test",
    pages=True,
)
PLAIN = Tool("count.book.pages", "A tool that happens to be called pages", {"type": "object", "properties": {}})
TOTAL = Tool("count.total", "One number", {"type": "object", "properties": {}})
GROUP = Tool("count.book", "Has no pages", {"type": "object", "properties": {}})


class Counting:
    """A source with paged results."""

    name = "count"

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], str | None]] = []

    def tools(self) -> list[Tool]:
        return [NUMBERS, PLAIN, GROUP, TOTAL]

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        return "a plain answer" if tool is PLAIN else (await self.page(tool, args, None)).value

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        self.asked.append((args, cursor))
        start, size = int(cursor or 0), args.get("size", 3)
        end = min(start + size, args["to"])
        more = end < args["to"] or (args["to"] == 6 and start < 6)  # it notices only at an empty page that 6 was the last
        return Page(list(range(start, end)), str(end) if more else None)

    async def close(self) -> None:
        pass


@pytest.fixture
def source() -> Counting:
    return Counting()


@pytest.fixture
async def port(source: Counting, tmp_path: Path) -> AsyncIterator[Gloveport]:
    async with Gloveport(sources=[source], store=tmp_path / "store.sqlite") as port:
        yield port


ALL = {
    "typescript": "const out = []; for await (const page of tools.count.numbers.pages({to: 7})) out.push(page); return out",
    "python": "out = []\nasync for page in tools.count.numbers.pages(to=7):\n    out.append(page)\nout",
}
FIRST = {
    "typescript": "for await (const page of tools.count.numbers.pages(100, 2)) return page",
    "python": "async for page in tools.count.numbers.pages(100, size=2):\n    return page",
}
PLAINLY = {"typescript": "return await tools.count.book.pages()", "python": "await tools.count.book.pages()"}
WRONG = {
    "typescript": "const p = tools.count.numbers.pages as any; for await (const page of p({too: 7})) return page",
    "python": "p = tools.count.numbers.pages\nasync for page in p(too=7):\n    return page",
}
NONE = {name: code.replace("numbers", "nombers") for name, code in ALL.items()}
LANGUAGES = ("typescript", "python")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_all_pages_come_in_order_and_the_run_replays(port: Gloveport, language: Any) -> None:
    outcome = await port.run(ALL[language], language=language)
    assert outcome.value == [[0, 1, 2], [3, 4, 5], [6]], outcome.error
    assert [call.tool for call in outcome.calls] == ["count.numbers.pages"] * 3
    assert [call.args for call in outcome.calls] == [{"to": 7}, {"to": 7, "cursor": "3"}, {"to": 7, "cursor": "6"}]
    assert await port.replay(outcome.run) is None


@pytest.mark.parametrize("language", LANGUAGES)
async def test_there_is_no_empty_page_at_the_end_and_an_empty_list_has_one(port: Gloveport, language: Any) -> None:
    outcome = await port.run(ALL[language].replace("7", "6"), language=language)
    assert outcome.value == [[0, 1, 2], [3, 4, 5]], outcome.error
    assert len(outcome.calls) == 3
    assert (await port.run(ALL[language].replace("7", "0"), language=language)).value == [[]]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_page_that_nobody_wants_is_not_asked_for(port: Gloveport, source: Counting, language: Any) -> None:
    outcome = await port.run(FIRST[language], language=language)
    assert outcome.value == [0, 1], outcome.error
    assert source.asked == [({"to": 100, "size": 2}, None)]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_tool_called_pages_is_that_tool(port: Gloveport, language: Any) -> None:
    outcome = await port.run(PLAINLY[language], language=language)
    assert outcome.value == "a plain answer", outcome.error


@pytest.mark.parametrize("language", LANGUAGES)
async def test_arguments_of_a_page_are_checked_like_those_of_the_tool(
    port: Gloveport, source: Counting, language: Any
) -> None:
    outcome = await port.run(WRONG[language], language=language)
    assert outcome.error is not None
    assert outcome.error.code == "bad-arguments"
    assert source.asked == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_pages_of_a_tool_without_pages_are_refused_before_the_program_runs(port: Gloveport, language: Any) -> None:
    outcome = await port.run(ALL[language].replace("numbers.pages", "total.pages"), language=language)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.calls) == ("unknown-tool", ())
    assert outcome.error.message == "`tools.count.total` has no pages that could be read one by one"
    assert outcome.error.hint == "call `tools.count.total(…)` itself; its parameters may select a part"
    assert outcome.error.line == (1 if language == "typescript" else 2)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_pages_of_what_is_no_tool_is_an_unknown_tool(port: Gloveport, language: Any) -> None:
    outcome = await port.run(NONE[language], language=language)
    assert outcome.error is not None
    message = "no tool `tools.count.nombers`; did you mean `tools.count.numbers`?"
    assert (outcome.error.code, outcome.error.message) == ("unknown-tool", message)


async def test_a_cursor_that_is_no_text_is_refused(port: Gloveport, source: Counting) -> None:
    outcome = await port.run("return await (tools.count as any)['numbers#page']({to: 7}, 5)")
    assert outcome.error is not None
    assert outcome.error.code == "bad-arguments"
    assert source.asked == []
