"""Completion in programs: tools after a dot, arguments inside a call, values of an argument, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest

from gloveport.catalog import Catalog
from gloveport.catalog.completion import complete
from gloveport.types import Language, Tool

SEARCH = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "order": {"enum": ["new", "old"]},
        "filter": {"$ref": "#/$defs/Filter"},
        "labels": {"type": "array", "items": {"enum": ["bug", "docs"]}},
        "exact": {"type": "boolean"},
        "x-trace": {"type": "string"},
    },
    "$defs": {
        "Filter": {
            "anyOf": [
                {"type": "object", "properties": {"author": {"type": "string"}, "nested": {"$ref": "#/$defs/Filter"}}},
                {"type": "null"},
            ]
        }
    },
}


class Some:
    """A source of a few tools."""

    name = "github"

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


CATALOG = Catalog(
    [
        Some(
            [
                Tool("github.issues.search", "Search issues.", SEARCH, kind="openapi"),
                Tool(
                    "github.issues.close", "Close */ an issue\u202e.", {"type": "object", "properties": {}}, kind="openapi"
                ),
                Tool("github.user", "The user.", {"type": "object", "properties": {}}, kind="openapi"),
            ]
        )
    ]
)


def labels(code: str, language: Language = "typescript") -> list[str]:
    """Return what is offered at the `|` of a program."""
    offset = code.index("|")
    found = complete(CATALOG, code.replace("|", ""), offset, language)
    return [] if found is None else [one.label for one in found.options]


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("await tools.|", ["github"]),
        ("await tools.github.|", ["issues", "user"]),
        ("await tools.github.issues.cl|", ["close"]),
        ("await tools.github.issues.ear|", ["search"]),
        ("await tools?.github\n  .issues.|", ["close", "search"]),
        ("await github.issues.cl|", ["close"]),
        ("too|", ["tools"]),
        ("other.github.|", []),
        ("// tools.github.|", []),
        ("'tools.github.|", []),
        ("`tools.github.|", []),
        ("tools.github.issues.search({|})", ["query", "order", "filter", "labels", "exact", "x-trace"]),
        ("tools.github.issues.search({query: 'a, {', or|})", ["order"]),
        ("tools.github.issues.search({ query, |})", ["order", "filter", "labels", "exact", "x-trace"]),
        ("tools.github.issues.search({query: f({a: 1}), filter: {|", ["author", "nested"]),
        ("tools.github.issues.search({filter: {nested: {nested: {au|", ["author"]),
        ("tools.github.issues.search({order: |", ['"new"', '"old"']),
        ("tools.github.issues.search({order: '|", ["new", "old"]),
        ("tools.github.issues.search({exact: |", ["true", "false"]),
        ("tools.github.issues.search({labels: ['bug', '|", ["bug", "docs"]),
        ("tools.github.issues.search({}, {|", []),
        ("tools.github.nothing({|", []),
        ("f({|", []),
    ],
)
def test_what_can_follow_in_typescript(code: str, offered: list[str]) -> None:
    assert labels(code) == offered


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("await tools.github.issues.|", ["close", "search"]),
        ("tools.github.issues.search(|)", ["query", "order", "filter", "labels", "exact"]),
        ("tools.github.issues.search(query='x', o|)", ["order"]),
        ("tools.github.issues.search(order=|", ['"new"', '"old"']),
        ("tools.github.issues.search(exact=|", ["True", "False"]),
        ("tools.github.issues.search(filter={'|", ["author", "nested"]),
        ("tools.github.issues.search({'qu|", ["query"]),
        ("# tools.github.|", []),
        ("'''tools.github.|", []),
    ],
)
def test_what_can_follow_in_python(code: str, offered: list[str]) -> None:
    assert labels(code, "python") == offered


def test_an_option_has_its_type_its_text_and_an_inert_description() -> None:
    code = "tools.github.issues.search({q"
    found = complete(CATALOG, code, len(code), "typescript")
    assert found is not None
    assert [(one.insert, one.detail, one.info) for one in found.options] == [("query: ", ": string", "What to look for.")]
    assert code[found.start :] == "q"
    code = "tools.github.issues.cl"
    [close] = (complete(CATALOG, code, len(code), "typescript") or pytest.fail("nothing")).options
    assert close.info == "Close *\\/ an issue."


def test_completion_takes_linear_time_in_a_hostile_text() -> None:
    for unit in ("({[", "'", '"', "`", "/*", "tools.", "a:", "((((", "\\", "{a:{", '"""', "?.", "#"):
        code = unit * (200_000 // len(unit)) + "tools."
        for language in ("typescript", "python"):
            begun = time.process_time()
            complete(CATALOG, code, len(code), language)  # type: ignore[arg-type]
            assert time.process_time() - begun < 0.5, (unit, language)


def test_a_namespace_of_ten_thousand_tools_offers_a_hundred() -> None:
    empty = {"type": "object", "properties": {}}
    large = Catalog([Some(Tool(f"github.tool_{number:05}", "A tool.", empty, kind="openapi") for number in range(10_000))])
    found = complete(large, "tools.github.999", 16, "typescript")
    assert found is not None
    assert [one.label for one in found.options][:2] == ["tool_00999", "tool_01999"]
    everything = complete(large, "tools.github.", 13, "typescript")
    assert everything is not None
    assert len(everything.options) == 100
