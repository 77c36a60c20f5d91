"""Search tools by what they do: by the words of their texts and, with an extra, by meaning.

The words are ranked as BM25F does it: a rare word counts more, a word in a name more than one in a long text, and a word
that is there often little more than one that is there once. The same code ranks tools in memory and in an index on disk.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

from gloveport.catalog.words import SYNONYMS, SearchedText, joined, significant, split, words
from gloveport.suggestions import Sieve, distance, tolerated

if TYPE_CHECKING:
    from gloveport.catalog.semantic import EmbeddingIndex
    from gloveport.types import Tool

SATURATION = 1.2
WEIGHT_LEVELS = 256
_LEVELS = tuple((level + 0.5) / WEIGHT_LEVELS for level in range(WEIGHT_LEVELS + 1))
"""All weights that a word can have in a tool: a catalog has a million weights, and they share these objects."""
LENGTH_SHARE = 0.75  # of a word's weight that depends on the length of its field
SYNONYM_FACTOR, COMPLETION_FACTOR, CORRECTION_FACTOR = 0.5, 0.5, 0.4
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 1000, 32
MIN_SCORE_SHARE = 0.3
"""Part of the best score that a match must reach. Tools below it share only the most common words with the query."""
MAX_CORRECTED_WORDS = 6
"""A longer query is not corrected: its other words find the tool, and its names of people and places are no mistakes."""
MAX_COMPLETIONS = 20
MAX_SELECTING_WEIGHTS, MAX_WEIGHTS = 10_000, 150_000
"""Bounds on the postings that one query reads, from the rarest word on. Words beyond the first bound only change the order
of tools that others have selected; words beyond the second are ignored."""
MAX_VOCABULARY = 30_000


class _Field(NamedTuple):
    """A part of a tool's text: its weight, and the number of words that it has in most tools."""

    weight: float
    usual_words: float


# Of a `SearchedText`, in its order. `benchmarks.search` measures these weights.
_FIELDS = (
    _Field(3, 3),  # name
    _Field(2, 2),  # path
    _Field(1, 1),  # source
    _Field(2, 10),  # summary
    _Field(1, 40),  # text
    _Field(0.7, 6),  # parameters
    _Field(0.7, 80),  # parameter_text
)

Scores = dict[int, float]
"""Tools by index, each with a weight or a score."""


class Postings(Protocol):
    """For each word of a catalog the tools that have it, each with the weight of the word in it."""

    def get(self, word: str) -> Scores | None:
        """Return the tools that have the word; None when none has."""
        ...

    def starting_with(self, word: str, limit: int) -> list[str]:
        """Return the first longer words that start with this one, in alphabetical order."""
        ...

    def vocabulary(self) -> Sequence[str]:
        """Return all words."""
        ...


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


class WordIndex:
    """The postings of tools in memory."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.by_word: dict[str, Scores] = {}
        for index, tool in enumerate(tools):
            for word, weight in _weights(SearchedText.of(tool, len(tools))).items():
                weights = self.by_word.get(word)
                if weights is None:
                    if len(self.by_word) == MAX_VOCABULARY:
                        continue
                    weights = self.by_word[word] = {}
                weights[index] = weight
        self._vocabulary = sorted(self.by_word)

    def get(self, word: str) -> Scores | None:
        """Return the tools that have the word; None when none has."""
        return self.by_word.get(word)

    def starting_with(self, word: str, limit: int) -> list[str]:
        """Return the first longer words that start with this one, in alphabetical order."""
        start = bisect.bisect_right(self._vocabulary, word)
        return [other for other in self._vocabulary[start : start + limit] if other.startswith(word)]

    def vocabulary(self) -> Sequence[str]:
        """Return all words, in alphabetical order."""
        return self._vocabulary


def _weights(tool: SearchedText) -> Mapping[str, float]:
    """Return the weight of each word in a tool."""
    found: defaultdict[str, float] = defaultdict(float)
    for field, value in zip(_FIELDS, tool, strict=True):
        listed = words(value)
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(listed) / field.usual_words
        for word, count in Counter(listed).items():
            found[word] += field.weight * count / length
    return {word: _LEVELS[int(WEIGHT_LEVELS * weight / (SATURATION + weight))] for word, weight in found.items()}


class SearchIndex(Generic[T]):
    """Finds tools for a query. With the postings of an index on disk, it ranks by words alone."""

    def __init__(self, tools: Sequence[T], postings: Postings | None = None) -> None:
        self._tools = tools
        self._is_stored = postings is not None
        self._postings = WordIndex(cast("Sequence[Tool]", tools)) if postings is None else postings

    def prepare(self) -> None:
        """Load what the first search would load."""
        _ = self._embeddings, self._sieve

    def search(self, query: str, source: str | None, limit: int) -> SearchResult[T]:
        """Return the matching tools, best first; for a query without words all tools, in their order."""
        query = query[:MAX_QUERY_CHARS]
        asked = list(dict.fromkeys(words(query)))
        wanted = significant(asked)[:MAX_QUERY_WORDS]
        if not wanted:
            found = [tool for tool in self._tools if source in (None, tool.source)]
            return SearchResult(tuple(found[:limit]), len(found))
        scores = self._scores(wanted, is_corrected=len(asked) <= MAX_CORRECTED_WORDS)
        if source is not None:
            scores = {index: score for index, score in scores.items() if self._tools[index].source == source}
        named = self._named(query, asked) & scores.keys()
        least = MIN_SCORE_SHARE * max(scores.values(), default=0.0)
        scores = {index: score for index, score in scores.items() if score >= least or index in named}
        total = len(scores)
        if self._embeddings is not None:
            fused = self._embeddings.fuse(query, scores, source, limit)
            scores = dict.fromkeys(named, 0.0) | fused
        best = heapq.nsmallest(
            limit, scores, key=lambda index: (index not in named, -scores[index], len(self._tools[index].address), index)
        )
        return SearchResult(tuple(self._tools[index] for index in best), max(total, len(best)))

    def _named(self, query: str, asked: Iterable[str]) -> set[int]:
        """Return the tools whose name the query is: an address, a path in its source, or a last part of several words."""
        rarest = min((self._postings.get(word) or {} for word in asked), key=len)
        name, found = joined(query), set[int]()
        for index in rarest:
            address = self._tools[index].address
            if address.replace(".", "").replace("_", "").lower().endswith(name):
                path = address.partition(".")[2]
                last = path.rpartition(".")[2]
                if name in (joined(address), joined(path)) or (name == joined(last) and len(split(last)) > 1):
                    found.add(index)
        return found

    def _scores(self, wanted: list[str], *, is_corrected: bool) -> Scores:
        """Score the tools. Rare words select them; words beyond what may be read for that only change their order."""
        readings = [reading for word in wanted if (reading := self._readings(word, is_corrected))]
        scores: Scores = {}
        read = 0
        for reading in sorted(readings, key=_weight_count):
            among = scores if scores and read + _weight_count(reading) > MAX_SELECTING_WEIGHTS else None
            read += sum(len(weights) if among is None else min(len(weights), len(among)) for weights, _ in reading)
            if scores and read > MAX_WEIGHTS:
                break
            for index, score in self._best(reading, among).items():
                scores[index] = scores.get(index, 0.0) + score
        return scores

    def _best(self, reading: list[tuple[Scores, float]], among: Scores | None) -> Scores:
        best: Scores = {}
        for weights, factor in reading:
            rarity = factor * math.log(1 + (len(self._tools) - len(weights) + 0.5) / (len(weights) + 0.5))
            few = weights if among is None or len(weights) < len(among) else among
            for index in few:
                score = weights.get(index, 0.0) * rarity
                if score > best.get(index, 0.0) and (among is None or index in among):
                    best[index] = score
        return best

    def _readings(self, word: str, is_corrected: bool) -> list[tuple[Scores, float]]:
        """Return the postings of a query word and of words that it may stand for, each with a factor for its weight."""
        exact = self._postings.get(word)
        others = [(other, SYNONYM_FACTOR) for other in SYNONYMS.get(word, ())]
        if len(word) >= 3:
            others += [(other, COMPLETION_FACTOR) for other in self._postings.starting_with(word, MAX_COMPLETIONS)]
        if exact is None and is_corrected and len(word) >= 4:
            vocabulary, max_distance = self._postings.vocabulary(), min(2, tolerated(word))
            similar = [vocabulary[index] for index in self._sieve.like(word)]
            others += [
                (other, CORRECTION_FACTOR) for other in similar if distance(word, other, max_distance) <= max_distance
            ]
        found = [(weights, factor) for other, factor in others if (weights := self._postings.get(other))]
        return [(exact, 1.0), *found] if exact else found

    @cached_property
    def _embeddings(self) -> EmbeddingIndex | None:
        if self._is_stored:
            return None
        from gloveport.catalog.semantic import embed_tools

        return embed_tools(cast("Sequence[Tool]", self._tools))

    @cached_property
    def _sieve(self) -> Sieve:
        return Sieve(self._postings.vocabulary())


def _weight_count(reading: list[tuple[Scores, float]]) -> int:
    return sum(len(weights) for weights, _ in reading)
