"""Finding tools by what they do. One class behind a small interface, so that another index can take its place."""

from __future__ import annotations

import bisect
import heapq
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gloveport.catalog.semantic import EmbeddingIndex, embed_tools, fuse_rankings
from gloveport.suggestions import Sieve, distance, tolerated
from gloveport.types import Tool

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
# What a word is worth in the name of a tool, the path above it, its summary, its parameters and the rest of its text; less
# where it is one of many.
NAME, PATH, SUMMARY, PARAMETER, TEXT = 5.0, 3.0, 4.0, 1.0, 0.7
CROWDED = tuple(1 / (1 + 0.35 * math.log(1 + count)) for count in range(200))
COMMON, FEW = 0.05, 100
LONGEST_QUERY, MOST_WORDS = 400, 16
LONGEST_TEXT = 240
MOST_ENDINGS = 20
FUSED = 60
_STOP = "a am an and are as at by do for from get i in into is it me my of on or please that the this to want with"
STOP = frozenset(_STOP.split())
# Words that people use for one another when they ask for a tool.
_ALIKE = """repo repository/org organization organisation/pr pull/delete remove destroy/create add new make
get read fetch show retrieve/update edit change modify set/run execute trigger start dispatch/stop cancel end
config configuration setting/doc document documentation/auth authentication authorization/current authenticated"""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best matches, and how many there are in all."""

    tools: tuple[Tool, ...]
    total: int


def words(text: str) -> list[str]:
    """The words of a name or sentence: camelCase and snake_case split, lower case, singular."""
    return list(map(_plain, WORD.findall(text)))


@lru_cache(maxsize=20_000)
def _plain(word: str) -> str:
    word = word.lower()
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _alike() -> dict[str, tuple[str, ...]]:
    groups = [group.split() for group in re.split(r"[/\n]", _ALIKE)]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


ALIKE = _alike()
Places = dict[int, float]


class SearchIndex:
    """Ranks tools by the words they share with a query: rare words, and words of names and summaries, weigh more."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._found: dict[str, Places] = defaultdict(dict)
        for place, tool in enumerate(tools):
            source, _, address = tool.address.partition(".")
            above, _, leaf = address.rpartition(".")
            summary, _, text = tool.description.partition("\n")
            self._add(place, words(leaf), NAME)
            self._add(place, words(above), PATH)
            self._add(place, words(summary[:LONGEST_TEXT]), SUMMARY)
            self._add(place, words(" ".join(tool.parameters)), PARAMETER)
            self._add(place, words(f"{source} {text[:LONGEST_TEXT]}"), TEXT)
        self._vocabulary = sorted(self._found)

    def _add(self, place: int, text: list[str], weight: float) -> None:
        unique = set(text)
        worth = weight * CROWDED[min(len(unique), len(CROWDED) - 1)]
        for word in unique:
            places = self._found[word]
            places[place] = places.get(place, 0.0) + worth

    def prepare(self) -> None:
        """Loads what the first search would."""
        _ = self._meanings

    def search(self, query: str, source: str | None, limit: int) -> SearchResult:
        """The tools that match, the best first; all of them, in their order, for a query without words."""
        wanted = list(dict.fromkeys(words(query[:LONGEST_QUERY])))[:MOST_WORDS]
        telling = [word for word in wanted if word not in STOP] or wanted
        if not telling:
            found = [tool for tool in self._tools if source in (None, tool.source)]
            return SearchResult(tuple(found[:limit]), len(found))
        scores = self._scores(telling)
        if source is not None:
            scores = {place: score for place, score in scores.items() if self._tools[place].source == source}
        wide = limit if self._meanings is None else max(limit, FUSED)
        best = heapq.nsmallest(wide, scores, key=lambda place: (-scores[place], len(self._tools[place].address), place))
        if self._meanings is not None:
            near = self._meanings.nearest(query, FUSED)
            best = fuse_rankings(best, [place for place in near if source in (None, self._tools[place].source)])
        return SearchResult(tuple(self._tools[place] for place in best[:limit]), max(len(scores), min(limit, len(best))))

    def _scores(self, wanted: list[str]) -> Places:
        """The rarer words choose the tools; words that many tools have then only rank them."""
        readings = sorted((reading for word in wanted if (reading := self._readings(word))), key=_spread)
        scores: Places = {}
        for reading in readings:
            common = scores and _spread(reading) > max(FEW, COMMON * len(self._tools))
            for place, score in self._best(reading, scores if common else None).items():
                scores[place] = scores.get(place, 0.0) + score + 2  # each further word of the query counts by itself
        return scores

    def _best(self, reading: list[tuple[Places, float]], among: Places | None) -> Places:
        best: Places = {}
        for places, worth in reading:
            rare = worth * math.log(1 + len(self._tools) / len(places))
            for place in places if among is None else among:
                score = places.get(place, 0.0) * rare
                if score > best.get(place, 0.0):
                    best[place] = score
        return best

    def _readings(self, word: str) -> list[tuple[Places, float]]:
        """Where a word of the query is found, and where words are that it may stand for, with what each is worth."""
        exact = [(word, 1.0)] if word in self._found else []
        others = [(other, 0.5) for other in ALIKE.get(word, ()) if other in self._found]
        others += [(other, 0.5) for other in self._starting_with(word)] if len(word) >= 3 else []
        if not exact and len(word) >= 4:
            like, most = [self._vocabulary[place] for place in self._sieve.like(word)], min(2, tolerated(word))
            others += [(other, 0.4) for other in like if distance(word, other, most) <= most]
        return [(self._found[other], worth) for other, worth in exact + others]

    def _starting_with(self, word: str) -> list[str]:
        start = bisect.bisect_right(self._vocabulary, word)
        return [other for other in self._vocabulary[start : start + MOST_ENDINGS] if other.startswith(word)]

    @cached_property
    def _meanings(self) -> EmbeddingIndex | None:
        return embed_tools(self._tools)

    @cached_property
    def _sieve(self) -> Sieve:
        return Sieve(self._vocabulary)


def _spread(reading: list[tuple[Places, float]]) -> int:
    return sum(len(places) for places, _ in reading)
