"""A user's own source object needs four members; everything else that a source may do is optional."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gloveport import Gloveport, OptionError
from gloveport.sources import OpenedSource, SourceInfo
from gloveport.types import Page, Tool

ADD = Tool(
    "mine.add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)


class Minimal:
    """A source with `name`, `tools`, `call` and `close`, and nothing else."""

    name = "mine"

    def __init__(self) -> None:
        self.closed = 0

    def tools(self) -> Sequence[Tool]:
        return [ADD]

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        return args["a"] + args["b"]

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.integration
@pytest.mark.parametrize(
    ("language", "code"),
    [("typescript", "return await tools.mine.add({a: 1, b: 2})"), ("python", "await tools.mine.add(a=1, b=2)")],
)
async def test_a_source_with_four_members_serves_a_whole_run(language: Any, code: str) -> None:
    source = Minimal()
    async with Gloveport(sources=[source]) as port:
        outcome = await port.run(code, language=language)
        assert outcome.value == 3, outcome.error
        assert [call.tool for call in outcome.calls] == ["mine.add"]
        assert port.problems == ()
        opened = port.opened_source("mine")
        assert opened is not None and opened.info == SourceInfo()
        assert port.opened_source("other") is None
    assert source.closed == 1


@pytest.mark.parametrize("missing", ["name", "tools", "call", "close"])
def test_an_object_that_lacks_one_of_the_four_is_refused(missing: str) -> None:
    members = {"name": "mine", "tools": Minimal.tools, "call": Minimal.call, "close": Minimal.close}
    del members[missing]
    with pytest.raises(OptionError, match="a source is a URL"):
        Gloveport(sources=[type("Partial", (), members)()])


class Able(Minimal):
    """A source with every optional ability."""

    def __init__(self) -> None:
        super().__init__()
        self.on_change: Callable[[], None] = lambda: None
        self.listed = [ADD]
        self.title = "Numbers"

    def tools(self) -> Sequence[Tool]:
        return self.listed

    def source_info(self) -> SourceInfo:
        return SourceInfo(self.title, warnings=("one tool was left out",))

    def subscribe_to_changes(self, on_change: Callable[[], None]) -> None:
        self.on_change = on_change

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        return Page(cursor or "first", None if cursor else "second")

    def earlier_tool(self, address: str, digest: str) -> Tool | None:
        return None


def test_what_a_source_can_do_is_resolved_when_it_is_opened() -> None:
    able, minimal = OpenedSource.of(Able()), OpenedSource.of(Minimal())
    assert (able.changes is able.source, able.versions is able.source) == (True, True)
    assert (minimal.changes, minimal.versions) == (None, None)


@pytest.mark.integration
async def test_a_source_that_changes_is_read_again() -> None:
    source = Able()
    async with Gloveport(sources=[source]) as port:
        changes: list[int] = []
        port.on_change = lambda: changes.append(len(port.catalog.tools))
        assert [(problem.message, problem.broken) for problem in port.problems] == [("one tool was left out", False)]
        paged = Tool("mine.all", "All numbers.", {"type": "object", "properties": {}}, pages=True)
        source.listed, source.title = [ADD, paged], "More numbers"
        source.on_change()
        await port.connect()
        assert changes == [2]
        opened = port.opened_source("mine")
        assert opened is not None and opened.info.title == "More numbers"
        outcome = await port.run(
            "const all = []; for await (const page of tools.mine.all.pages({})) all.push(page); return all"
        )
        assert outcome.value == ["first", "second"], outcome.error
