"""No name, query or program text makes a question to the catalog take long."""

from __future__ import annotations

import pytest

from gloveport.catalog import Catalog
from gloveport.catalog.confusables import find_confusable, skeleton
from gloveport.catalog.declarations import mentioned
from gloveport.errors import OptionError
from gloveport.types import Tool
from tests.bridge.support import FakeSource
from tests.holding import MAX_HOLD_MS, cpu_ms, longest_hold_ms

MARKS = "\u0315\u0300" * 20_000
MIB = 2**20
EMPTY = {"type": "object", "properties": {}}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    names = [f"{'abcdefgh'[number % 8]}thing{number}_of{number % 97}" for number in range(2000)]
    tools = [Tool(f"x.get_{name}", f"Get the thing {name} and more words", EMPTY) for name in names]
    made = Catalog([FakeSource("x", tools), *(FakeSource(f"source{number}", []) for number in range(50))])
    made.search("load")
    made.suggest("load")
    return made


def test_a_name_of_combining_marks_is_compared_in_linear_time() -> None:
    assert cpu_ms(skeleton, "a" + MARKS) < MAX_HOLD_MS
    assert cpu_ms(find_confusable, ["a" + MARKS, "b" + MARKS]) < MAX_HOLD_MS
    assert skeleton("a" + MARKS) == skeleton("\u0430") == "a"


def test_a_name_that_is_too_long_is_refused_at_once() -> None:
    made = [Tool(f"x.a{MARKS}", "", EMPTY)]
    assert cpu_ms(Catalog, [FakeSource("x", made)]) < MAX_HOLD_MS
    with pytest.raises(OptionError, match="longer than 256 characters"):
        Catalog([FakeSource("x", made)])


QUERIES = [
    "x" * MIB,
    "a " * MIB,
    "thng " * MIB,
    "e" + MARKS,
    " ".join(f"wrd{number}" for number in range(100_000)),
    "aB" * MIB,
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_no_query_or_name_takes_long(catalog: Catalog, query: str) -> None:
    assert cpu_ms(catalog.search, query) < MAX_HOLD_MS
    assert cpu_ms(catalog.suggest, query) < MAX_HOLD_MS


TEXTS = {
    "words": "a b " * (MIB // 4),
    "roots": "source1 " * (MIB // 8),
    "spaces": "tools" + " " * MIB,
    "a chain": "tools" + ".a" * (MIB // 2),
    "chains": "tools.a.b.c;" * (MIB // 12),
    "dots and spaces": ("tools ." + " " * 150) * (MIB // 157),
    "brackets": 'tools["a' * (MIB // 8),
    "a long name": "tools." + "a" * MIB,
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_program_text_holds_the_interpreter_lock_for_long(catalog: Catalog, name: str) -> None:
    assert longest_hold_ms(lambda: list(mentioned(catalog, TEXTS[name]))) < MAX_HOLD_MS
    assert cpu_ms(lambda: list(mentioned(catalog, TEXTS[name]))) < 1000
