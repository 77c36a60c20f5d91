"""Search: what is found by which of a tool's texts, names before all else, and at least what SQLite's FTS5 finds."""

from __future__ import annotations

import itertools
import string

import pytest
from benchmarks.search import Hits, Searches, questions, server_tools

from gloveport.catalog import semantic
from gloveport.catalog.search import MAX_VOCABULARY, SearchIndex, WordIndex
from gloveport.catalog.words import stem, words
from gloveport.types import MAX_PARAMETER_TEXT_CHARS, Tool
from tests.holding import MAX_HOLD_MS, cpu_ms, longest_hold_ms

SHIP = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "The recipient's postal code"},
        "any": True,
        "odd": {"description": 7},
    },
}
TOOLS = [
    Tool("parcels.ship", "Send a package.", SHIP),
    Tool("parcels.labels.create", "Print a label.\n\nUses thermal paper.", {}),
    Tool("parcels.labels.create_many", "Print labels.", {}),
    Tool("parcels.create_labels_in_bulk", "Create labels, create labels, create labels of parcels.", {}),
    Tool("mail.send", "Deliver a message.", {}),
    Tool("mail.drafts.list", "List messages that are not delivered.", {}),
]


def best(index: SearchIndex[Tool], query: str) -> str:
    return index.search(query, None, 1).tools[0].address


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("recipient", "parcels.ship"),
        ("thermal", "parcels.labels.create"),
        ("mail", "mail.send"),
        ("delivering", "mail.send"),
        ("I want to know what we still have to do with that message before we can deliver it", "mail.send"),
    ],
)
def test_every_text_of_a_tool_is_searched_and_words_that_say_nothing_are_not(query: str, expected: str) -> None:
    assert best(SearchIndex(TOOLS, WordIndex(TOOLS)), query) == expected


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("parcels.labels.create", "parcels.labels.create"),
        ("parcels:labels.create", "parcels.labels.create"),
        ("labels.create", "parcels.labels.create"),
        ("create_many", "parcels.labels.create_many"),
        ("createMany", "parcels.labels.create_many"),
        ("send", "mail.send"),
    ],
)
def test_a_tool_that_the_query_names_comes_first(query: str, named: str) -> None:
    rivals = [
        Tool(f"parcels.create_labels_{number}", "Create parcels' labels, create many, send many, create parcels.labels", {})
        for number in range(200)
    ]
    tools = [*rivals, *TOOLS]
    assert best(SearchIndex(tools, WordIndex(tools)), query) == best(SearchIndex(tools), query) == named


def test_words_are_split_and_lose_their_endings() -> None:
    assert words("createdIssues_by HTTPServer2") == ["creat", "issu", "by", "http", "server", "2"]
    for group in ("merge merges merged merging", "ship shipped shipping", "bill bills billed billing", "box boxes"):
        assert len(set(map(stem, group.split()))) == 1, group
    for word in ("string", "king", "red", "use", "status", "address"):
        assert stem(word) == word


def test_a_parameter_text_is_bounded_and_skips_what_is_no_text() -> None:
    assert TOOLS[0].parameter_text == "The recipient's postal code"
    many = {f"p{number}": {"description": "x" * 400} for number in range(100)}
    assert len(Tool("a.b", "", {"properties": many}).parameter_text) == MAX_PARAMETER_TEXT_CHARS
    assert Tool("a.b", "", {"properties": many}, described="known").parameter_text == "known"


@pytest.mark.parametrize("is_task", [False, True])
def test_search_finds_what_fts5_finds_and_more(is_task: bool) -> None:
    tools = server_tools()
    addresses = {tool.address for tool in tools}
    asked = [one for one in questions() if one.tools <= addresses and one.is_task is is_task]
    assert len(asked) >= 20
    searches = Searches(tools)
    fts5, by_words, by_meaning = (Hits.of(find, asked) for find in (searches.fts5, searches.words, searches.semantic))
    assert by_words.first > fts5.first
    assert by_words.ten >= fts5.ten
    assert by_meaning.first > fts5.first
    assert by_meaning.ten >= fts5.ten


def test_every_question_has_an_answer_of_a_known_source() -> None:
    sources = {address.partition(".")[0] for one in questions() for address in one.tools}
    assert sources == {"github", "stripe", *(tool.source for tool in server_tools())}
    assert len({one.ask for one in questions()}) == len(questions()) >= 120


@pytest.mark.long
def test_no_catalog_takes_long_to_search_or_holds_the_interpreter_lock_while_it_is_indexed() -> None:
    new_words = map("".join, itertools.product(string.ascii_lowercase, repeat=4))

    def text(count: int) -> str:
        return " ".join(itertools.islice(new_words, count))

    tools = [Tool(f"x.t{number}", text(50), {}, named=(text(5),), described=text(50)) for number in range(3000)]
    semantic.load_model()
    made: list[SearchIndex[Tool]] = []

    def build() -> None:
        made.append(SearchIndex(tools))
        made[-1].prepare()

    assert longest_hold_ms(build) < MAX_HOLD_MS
    vocabulary = WordIndex(tools).vocabulary()
    assert len(vocabulary) == MAX_VOCABULARY
    starts = " ".join(word[:3] for word in vocabulary[::500])
    for query in (text(6), text(100), starts, " ".join(vocabulary[:100]), "x " * 500, "x"):
        assert cpu_ms(made[-1].search, query, None, 10) < MAX_HOLD_MS, query[:50]


def test_tools_that_share_only_a_common_word_with_the_query_are_no_matches() -> None:
    tools = [Tool(f"shop.order_{number}", "An order", {}) for number in range(300)]
    tools += [Tool(f"bank.order_{number}", "An order", {}) for number in range(3)]
    index = SearchIndex(tools, WordIndex(tools))
    assert index.search("order 7", None, 100).total == 1
    assert index.search("order 7", "bank", 100).total == 3
    assert index.search("order", None, 10).total == 303
