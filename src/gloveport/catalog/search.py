"""Search tools by what they do. SearchIndex has a small interface, so that another index can replace it."""

from __future__ import annotations

import bisect
import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Generic, Protocol, TypeVar, cast

from gloveport.catalog.semantic import EmbeddingIndex, embed_tools, fuse_rankings
from gloveport.suggestions import Sieve, distance, tolerated
from gloveport.types import Tool

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
# The weight of a word in a tool's name, the path above it, its summary, its parameters and the rest of its text. It is less
# where the word is one of many.
NAME_WEIGHT, PATH_WEIGHT, SUMMARY_WEIGHT, PARAMETER_WEIGHT, TEXT_WEIGHT = 5.0, 3.0, 4.0, 1.0, 0.7
LENGTH_PENALTY = tuple(1 / (1 + 0.35 * math.log(1 + count)) for count in range(200))
# A word is common if more tools have it than both of these, as a share and as a number.
COMMON_WORD_SHARE, COMMON_WORD_TOOLS = 0.05, 100
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 400, 16
MAX_TEXT_CHARS = 240
MAX_COMPLETIONS = 20
MAX_FUSED = 60
_STOP_WORDS = "a am an and are as at by do for from get i in into is it me my of on or please that the this to want with"
STOP_WORDS = frozenset(_STOP_WORDS.split())
# Words that people use as synonyms when they search for a tool.
_SYNONYM_GROUPS = """repo repository/org organization organisation/pr pull/delete remove destroy/create add new make
get read fetch show retrieve/update edit change modify set/run execute trigger start dispatch/stop cancel end
config configuration setting/doc document documentation/auth authentication authorization/current authenticated"""


def words(text: str) -> list[str]:
    """Return the words of a name or sentence: camelCase and snake_case split, lower case, singular."""
    return list(map(_normalize, WORD.findall(text)))


@lru_cache(maxsize=20_000)
def _normalize(word: str) -> str:
    word = word.lower()
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _synonyms() -> dict[str, tuple[str, ...]]:
    groups = [group.split() for group in re.split(r"[/\n]", _SYNONYM_GROUPS)]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


SYNONYMS = _synonyms()
Scores = dict[int, float]
Postings = Mapping[str, Scores]
"""For each word the tools that have it, by index, each with the weight of the word in it."""


class Addressed(Protocol):
    """What a search needs to know of a tool once the words are indexed."""

    @property
    def address(self) -> str:
        """The source and the path."""
        ...

    @property
    def source(self) -> str:
        """The name of the source."""
        ...


T = TypeVar("T", bound=Addressed)


@dataclass(frozen=True, slots=True)
class SearchResult(Generic[T]):
    """The best matches, and the number of all matches."""

    tools: tuple[T, ...]
    total: int


def index_words(tools: Iterable[Tool]) -> Postings:
    """Return the postings of all words in the names, texts and parameters of the tools."""
    postings: dict[str, Scores] = defaultdict(dict)

    def add(index: int, text: list[str], weight: float) -> None:
        unique = set(text)
        weight *= LENGTH_PENALTY[min(len(unique), len(LENGTH_PENALTY) - 1)]
        for word in unique:
            weights = postings[word]
            weights[index] = weights.get(index, 0.0) + weight

    for index, tool in enumerate(tools):
        source, _, address = tool.address.partition(".")
        above, _, leaf = address.rpartition(".")
        summary, _, text = tool.description.partition("\n")
        add(index, words(leaf), NAME_WEIGHT)
        add(index, words(above), PATH_WEIGHT)
        add(index, words(summary[:MAX_TEXT_CHARS]), SUMMARY_WEIGHT)
        add(index, words(" ".join(tool.parameters)), PARAMETER_WEIGHT)
        add(index, words(f"{source} {text[:MAX_TEXT_CHARS]}"), TEXT_WEIGHT)
    return dict(postings)


class SearchIndex(Generic[T]):
    """Ranks tools by the words they share with a query: rare words, and words of names and summaries, weigh more.

    With the postings of an index on disk, it ranks by words alone; else also by meaning, if that extra is installed.
    """

    def __init__(self, tools: Sequence[T], postings: Postings | None = None) -> None:
        self._tools = tools
        self._is_stored = postings is not None
        self._postings = index_words(cast(Sequence[Tool], tools)) if postings is None else postings
        self._vocabulary = sorted(self._postings)

    def prepare(self) -> None:
        """Load what the first search would load."""
        _ = self._embeddings

    def search(self, query: str, source: str | None, limit: int) -> SearchResult[T]:
        """Return the matching tools, best first; for a query without words all tools, in their order."""
        wanted = list(dict.fromkeys(words(query[:MAX_QUERY_CHARS])))[:MAX_QUERY_WORDS]
        significant = [word for word in wanted if word not in STOP_WORDS] or wanted
        if not significant:
            found = [tool for tool in self._tools if source in (None, tool.source)]
            return SearchResult(tuple(found[:limit]), len(found))
        scores = self._scores(significant)
        if source is not None:
            scores = {index: score for index, score in scores.items() if self._tools[index].source == source}
        wide = limit if self._embeddings is None else max(limit, MAX_FUSED)
        best = heapq.nsmallest(wide, scores, key=lambda index: (-scores[index], len(self._tools[index].address), index))
        if self._embeddings is not None:
            near = self._embeddings.nearest(query, MAX_FUSED)
            best = fuse_rankings(best, [index for index in near if source in (None, self._tools[index].source)])
        return SearchResult(tuple(self._tools[index] for index in best[:limit]), max(len(scores), min(limit, len(best))))

    def _scores(self, wanted: list[str]) -> Scores:
        """Score the tools. Rare words select them; common words then only change their order."""
        readings = sorted((reading for word in wanted if (reading := self._readings(word))), key=_posting_count)
        scores: Scores = {}
        for reading in readings:
            common = scores and _posting_count(reading) > max(COMMON_WORD_TOOLS, COMMON_WORD_SHARE * len(self._tools))
            for index, score in self._best(reading, scores if common else None).items():
                scores[index] = scores.get(index, 0.0) + score + 2  # each further word of the query that matches counts
        return scores

    def _best(self, reading: list[tuple[Scores, float]], among: Scores | None) -> Scores:
        best: Scores = {}
        for weights, factor in reading:
            rarity = factor * math.log(1 + len(self._tools) / len(weights))
            for index in weights if among is None else among:
                score = weights.get(index, 0.0) * rarity
                if score > best.get(index, 0.0):
                    best[index] = score
        return best

    def _readings(self, word: str) -> list[tuple[Scores, float]]:
        """Return the postings of a query word and of words that it may stand for, each with a factor for its weight."""
        exact = [(word, 1.0)] if word in self._postings else []
        others = [(other, 0.5) for other in SYNONYMS.get(word, ()) if other in self._postings]
        others += [(other, 0.5) for other in self._starting_with(word)] if len(word) >= 3 else []
        if not exact and len(word) >= 4:
            similar, max_distance = [self._vocabulary[index] for index in self._sieve.like(word)], min(2, tolerated(word))
            others += [(other, 0.4) for other in similar if distance(word, other, max_distance) <= max_distance]
        return [(self._postings[other], factor) for other, factor in exact + others]

    def _starting_with(self, word: str) -> list[str]:
        start = bisect.bisect_right(self._vocabulary, word)
        return [other for other in self._vocabulary[start : start + MAX_COMPLETIONS] if other.startswith(word)]

    @cached_property
    def _embeddings(self) -> EmbeddingIndex | None:
        return None if self._is_stored else embed_tools(cast(Sequence[Tool], self._tools))

    @cached_property
    def _sieve(self) -> Sieve:
        return Sieve(self._vocabulary)


def _posting_count(reading: list[tuple[Scores, float]]) -> int:
    return sum(len(weights) for weights, _ in reading)
