"""The catalog: exact names, suggestions, search and descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.catalog import Catalog
from gloveport.catalog.fingerprint import fingerprint
from gloveport.errors import OptionError
from gloveport.sources.functions import functions
from gloveport.types import Problem, Tool

OPEN: dict[str, Any] = {"type": "object", "properties": {}}


class Listed:
    """A source of named tools that are never called."""

    def __init__(self, name: str, *paths: str, description: str = "", kind: str = "openapi") -> None:
        self.name = name
        self._tools = [Tool(f"{name}.{path}", description, OPEN, kind=kind) for path in paths]

    def tools(self) -> Sequence[Tool]:
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any: ...

    async def close(self) -> None: ...


def get_weather(city: str, days: int = 1) -> dict[str, float]:
    """The weather in a city."""
    return {}


def send_email(to: str, subject: str) -> None:
    """Send an email message to somebody."""


@pytest.fixture
def catalog() -> Catalog:
    github = Listed("github", "issues.create", "issues.list", "issues.comments.create", "repos.get", "pulls.merge")
    return Catalog([functions([get_weather, send_email]), github])


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("local.get_weather", "local.get_weather"),
        ("get_weather", "local.get_weather"),
        ("local:get_weather", "local.get_weather"),
        ("github.issues.create", "github.issues.create"),
        ("github:issues.create", "github.issues.create"),
    ],
)
def test_a_tool_is_found_by_its_exact_names(catalog: Catalog, name: str, address: str) -> None:
    found = catalog.find(name)
    assert found is not None
    assert found.address == address


NOT_NAMES = [
    "", ".", "github", "github.issues", "issues.create", "get_Weather", "GET_WEATHER", "get_weather ", " get_weather",
    "tools.get_weather", "github:issues:create", "github.issues:create", "get_weather\0", "get_weath\u0435r",
    "__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "then", "prototype", "github.__proto__",
    "github.issues.constructor", "local.__class__", "search", "ge\u0301t_weather", "\uff47et_weather", "get_weather\u200b",
]  # fmt: skip


@pytest.mark.parametrize("name", NOT_NAMES, ids=ascii)
def test_nothing_else_finds_a_tool(catalog: Catalog, name: str) -> None:
    assert catalog.find(name) is None


@given(st.text(max_size=30))
def test_no_text_finds_a_tool_unless_it_is_one_of_its_names(name: str) -> None:
    catalog = Catalog([functions([get_weather])])
    assert (catalog.find(name) is not None) == (name in {"get_weather", "local.get_weather", "local:get_weather"})


def two(first: str, second: str) -> list[Any]:
    return [Listed("one", first, second)]


COLLISIONS = [
    (two("a.b", "a.b"), ("one.a.b",)),
    ([Listed("one", "a"), Listed("one", "b")], ("one",)),
    ([Listed("search", "a")], ("search",)),
    ([Listed("executor", "a")], ("executor",)),
    ([Listed("constructor", "a")], ("constructor",)),
    (two("__proto__", "b"), ("__proto__",)),
    (two("a.toString", "b"), ("toString",)),
    (two("then", "b"), ("then",)),
    (two("a..b", "c"), ("a..b",)),
    (two("a-b", "c"), ("a-b",)),
    (two("pay", "p\u0430y"), ("pay", "p\\u0430y")),
    (two("\u03bfpen", "open"), ("open", "\\u03bfpen")),
    (two("issues.create", "\u0456ssues.list"), ("issues", "\\u0456ssues")),
    ([Listed("github", "a"), Listed("g\u0456thub", "b")], ("github", "g\\u0456thub")),
    (two("caf\u00e9", "cafe"), ("cafe", "caf\\xe9")),
    (two("cafe\u0301", "b"), ("NFC",)),
    (two("pay\ufe0f", "b"), ("invisible",)),
    (two("pay\u3164", "b"), ("pay",)),
    ([functions([get_weather]), Listed("get_weather", "a")], ("local.get_weather", "source")),
    ([functions({"se\u0430rch": get_weather})], ("search",)),
    ([Listed("one"), functions({"\u03bfne": get_weather})], ("one",)),
]


@pytest.mark.parametrize(
    ("sources", "told"), COLLISIONS, ids=lambda value: ascii(value) if isinstance(value, tuple) else ""
)
def test_names_that_collide_or_look_alike_are_refused_and_both_are_named(sources: Any, told: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as refusal:
        Catalog(sources)
    for word in told:
        assert word in refusal.value.message


def test_names_of_other_scripts_are_welcome_where_nothing_looks_like_them() -> None:
    catalog = Catalog([Listed("wetter", "gr\u00f6\u00dfe", "\u5929\u6c14", "\u043f\u043e\u0433\u043e\u0434\u0430")])
    assert catalog.find("wetter.\u5929\u6c14") is not None


def test_children_are_what_object_keys_shows(catalog: Catalog) -> None:
    assert catalog.names() == ("local", "github", "get_weather", "send_email")
    assert catalog.names("github") == ("issues", "repos", "pulls")
    assert catalog.names("github.issues") == ("create", "list", "comments")
    assert catalog.names("github.issues.create") == catalog.names("nowhere") == ()
    assert catalog.is_namespace("github.issues")
    assert not catalog.is_namespace("github.issues.create")


def test_sources_are_globals_where_that_shadows_nothing() -> None:
    names = ("github", "console", "process", "class", "lambda", "tools", "Math")
    assert Catalog([Listed(name, "a") for name in names]).roots == frozenset({"github"})


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("get_wether", "get_weather"),
        ("getWeather", "get_weather"),
        ("get_waether", "get_weather"),
        ("local.get_wether", "get_weather"),
        ("github.issue.create", "github.issues.create"),
        ("github.issues.crate", "github.issues.create"),
        ("github:issues.creat", "github.issues.create"),
        ("issues.create", "github.issues.create"),
        ("github.create_issue", "github.issues.create"),
        ("github.pull_requests.merge", "github.pulls.merge"),
        ("gihub.repos.get", "github.repos.get"),
        ("sendEmail", "send_email"),
        ("weather_tools.get_weather", "get_weather"),
    ],
)
def test_a_misspelt_name_suggests_the_right_one_first(catalog: Catalog, wrong: str, meant: str) -> None:
    found = catalog.suggest(wrong)
    assert found[:1] == (meant,)
    assert len(found) <= 3


def test_a_function_of_a_file_is_suggested_once_as_it_was_written() -> None:
    catalog = Catalog([Listed("demo", "get_weather", kind="function"), Listed("shop", "orders.list")])
    assert catalog.suggest("get_wether") == catalog.suggest("weather") == ("get_weather",)
    assert catalog.suggest("demo.get_wether") == ("demo.get_weather",)


@pytest.mark.parametrize("wrong", ["", "zzzzzz", "__proto__", "a" * 100_000, "\0", "constructor"])
def test_a_name_like_no_other_suggests_nothing(catalog: Catalog, wrong: str) -> None:
    assert catalog.suggest(wrong) == ()


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("weather", "local.get_weather"),
        ("weathr in a citty", "local.get_weather"),
        ("emails", "local.send_email"),
        ("create issues", "github.issues.create"),
        ("createIssue", "github.issues.create"),
        ("subject", "local.send_email"),
        ("merg", "github.pulls.merge"),
    ],
)
def test_search_finds_by_name_words_and_parameters(catalog: Catalog, query: str, best: str) -> None:
    found = catalog.search(query)
    assert found.tools[0].address == best


def test_search_counts_all_and_shows_the_best(catalog: Catalog) -> None:
    found = catalog.search("issues", limit=2)
    assert (len(found.tools), found.total) == (2, 3)
    assert catalog.search("").total == 7
    assert {tool.source for tool in catalog.search("", source="github").tools} == {"github"}
    assert catalog.search("zzzz").total == 0


def test_describe_gives_a_declaration_and_the_parameters(catalog: Catalog) -> None:
    found = catalog.describe("get_weather")
    assert found is not None
    assert found.path == "get_weather"
    assert found.parameters[0] == {"name": "city", "type": "string", "required": True}
    assert found.parameters[1] == {"name": "days", "type": "number", "required": False, "default": 1}
    assert "get_weather(args: {" in found.typescript
    assert "/** The weather in a city. */" in found.typescript
    assert catalog.describe("github.issues") is None


def test_a_fingerprint_changes_with_the_definition_and_with_nothing_else() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}
    tool = Tool("x.y", "Does.", schema)
    same = Tool("x.y", "Does.", {"required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}, "type": "object"})
    assert fingerprint(tool) == fingerprint(same)
    turned = {"type": "object", "properties": {"b": {}, "a": {"type": "string"}}, "required": ["a"]}
    others = [
        replace(tool, address="x.z"),
        replace(tool, description="Does!"),
        replace(tool, writes=True),
        replace(tool, input_schema=turned),
        replace(tool, output_schema={}),
    ]
    assert len({fingerprint(tool), *map(fingerprint, others)}) == 6


@pytest.mark.long
def test_ten_thousand_tools_are_looked_up_suggested_and_searched() -> None:
    paths = [f"group{n % 97}.create_thing_{n}" for n in range(10_000)]
    catalog = Catalog([Listed("big", *paths, description="Make a thing of a group")])
    catalog.suggest("warm")
    catalog.search("warm")
    assert catalog.suggest("big.group3.create_thng_3") == catalog.suggest("big.group3.create_thng_3")
    assert catalog.search("create thing 77").tools[0].address.endswith("_77")


def test_a_function_of_a_named_source_has_its_address_and_its_own_name() -> None:
    catalog = Catalog([functions([]), functions([get_weather], name="forecast")])
    by_name, by_address = catalog.find("get_weather"), catalog.find("forecast.get_weather")
    assert by_name is by_address is not None
    assert [catalog.path_of(tool) for tool in catalog.tools] == ["forecast.get_weather"]
    assert catalog.names() == ("local", "forecast", "get_weather")


def test_a_name_that_is_taken_or_that_two_sources_have_is_not_mounted_at_the_root() -> None:
    def github() -> None: ...
    def search() -> None: ...
    def gone() -> None: ...

    shadowing = functions([github, search, gone, send_email, get_weather], name="shadowing")
    other, own = functions([send_email], name="other"), functions([get_weather])
    problems = {"gone": Problem("gone", "it is not open")}
    catalog = Catalog([own, shadowing, other, Listed("github", "issues.list")], broken=problems)
    assert [catalog.find(name) for name in ("github", "search", "gone", "send_email")] == [None] * 4
    found = catalog.find("get_weather")
    assert found is not None
    assert found.address == "local.get_weather"


def test_a_look_alike_of_a_root_name_is_not_mounted_at_the_root() -> None:
    alike = functions({"gith\u0446b": get_weather, "shор": send_email}, name="alike")
    catalog = Catalog([alike, Listed("shop", "list")])
    assert catalog.find("shор") is None
    assert catalog.find("alike.shор") is not None


def test_the_refusal_of_a_call_names_a_source_that_is_not_open_once() -> None:
    named = Problem("shop", "the source shop can't be opened: it wants a credential").refusal("tools.shop.list")
    assert named == "`tools.shop.list` can't be called: the source shop can't be opened: it wants a credential"
    other = Problem("shop", "connection refused").refusal("tools.shop.list")
    assert other == "`tools.shop.list` can't be called: the source shop is not open: connection refused"
