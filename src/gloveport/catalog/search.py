"""Finding tools by what they do. One class behind a small interface, so that another index can take its place."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gloveport.catalog.nearest import Sieve, distance, tolerated
from gloveport.types import Tool

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
NAME, PARAMETER, TEXT = 6.0, 2.0, 1.0
LONGEST_QUERY = 400
LONGEST_TEXT = 2000
_STOP = "a an and are as at by for from get in into is it of on or that the this to with"
STOP = frozenset(_STOP.split())


@dataclass(frozen=True, slots=True)
class Matches:
    """The best matches, and how many there are in all."""

    tools: tuple[Tool, ...]
    total: int


def words(text: str) -> list[str]:
    """The words of a name or sentence: camelCase and snake_case split, lower case, singular."""
    return [_singular(word.lower()) for word in WORD.findall(text)]


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Index:
    """Ranks tools by the words they share with a query: rare words and words of names weigh more."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._found: dict[str, dict[int, float]] = defaultdict(dict)
        for place, tool in enumerate(tools):
            self._add(place, tool.address, NAME)
            self._add(place, " ".join(tool.parameters), PARAMETER)
            self._add(place, tool.description[:LONGEST_TEXT], TEXT)
        self._vocabulary = list(self._found)
        self._sieve = Sieve(self._vocabulary)

    def _add(self, place: int, text: str, weight: float) -> None:
        for word in words(text):
            places = self._found[word]
            places[place] = max(weight, places.get(place, 0.0))

    def search(self, query: str, source: str | None, limit: int) -> Matches:
        """The tools that match; all of them, in their order, for a query without words."""
        wanted = dict.fromkeys(words(query[:LONGEST_QUERY]))
        telling = [word for word in wanted if word not in STOP] or list(wanted)
        if not telling:
            places: Iterable[int] = range(len(self._tools))
        else:
            scores = self._scores(telling)
            places = sorted(scores, key=lambda place: (-scores[place], len(self._tools[place].address), place))
        found = [self._tools[place] for place in places if source is None or self._tools[place].source == source]
        return Matches(tuple(found[:limit]), len(found))

    def _scores(self, wanted: list[str]) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        for word in wanted:
            best: dict[int, float] = {}
            for near, worth in self._readings(word):
                places = self._found[near]
                rare = math.log(1 + len(self._tools) / len(places))
                for place, weight in places.items():
                    best[place] = max(best.get(place, 0.0), weight * rare * worth)
            for place, score in best.items():
                scores[place] += score + 2  # each further word of the query counts by itself
        return scores

    def _readings(self, word: str) -> list[tuple[str, float]]:
        """The words of the catalog that a word of the query may stand for, and how much each is worth."""
        found = [(word, 1.0)] if word in self._found else []
        like = [self._vocabulary[place] for place in self._sieve.like(word)]
        found += [(other, 0.6) for other in like if len(word) >= 3 and other != word and other.startswith(word)]
        if found or len(word) < 4:
            return found
        most = min(2, tolerated(word))
        return [(other, 0.4) for other in like if distance(word, other, most) <= most]
