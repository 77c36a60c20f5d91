"""Splits the texts of tools and queries into words: in lower case, stemmed, with stop words marked."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gloveport.types import Tool

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
MIN_STEM_CHARS = 3
MAX_TEXT_CHARS, MAX_CATALOG_TEXT_CHARS = 1500, 3_000_000
"""Bounds on the text that is indexed: of one tool, and of all tools of a catalog together."""
_VOWEL = re.compile(r"[aeiouy]")
_SEPARATORS = re.compile(r"[\W_]+")


class SearchedText(NamedTuple):
    """The parts of a tool in which words are searched. `path` is what is above the name, `text` is below the summary."""

    name: str
    path: str
    source: str
    summary: str
    text: str
    parameters: str
    parameter_text: str

    @classmethod
    def of(cls, tool: Tool, catalog_size: int) -> SearchedText:
        """Return the texts of a tool, each cut to the part that is indexed in a catalog of this size."""
        most = min(MAX_TEXT_CHARS, MAX_CATALOG_TEXT_CHARS // catalog_size)
        source, _, address = tool.address.partition(".")
        path, _, name = address.rpartition(".")
        summary, _, text = tool.description[:most].partition("\n")
        return cls(name, path, source, summary, text, " ".join(tool.parameters)[:most], tool.parameter_text[:most])


def split(text: str) -> list[str]:
    """Return the words of a name or sentence in lower case: camelCase and snake_case are split."""
    return list(map(str.lower, WORD.findall(text)))


def words(text: str) -> list[str]:
    """Return the words of a name or sentence without their endings: `createdIssues` and "creating an issue" share two."""
    return list(map(stem, WORD.findall(text)))


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a word in lower case without the ending of a plural, `-ing`, `-ed` or a silent `-e`."""
    word = _singular(word.lower())
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= MIN_STEM_CHARS and _VOWEL.search(rest):
            is_doubled = len(rest) > MIN_STEM_CHARS and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if is_doubled else rest
    return word[:-1] if len(word) > MIN_STEM_CHARS + 1 and word.endswith("e") else word


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def joined(name: str) -> str:
    """Return a name in lower case without separators: two spellings of one name give the same."""
    return _SEPARATORS.sub("", name).lower()


# Words of sentences that tell nothing about a tool. Most are rare in a catalog, so ranking by rarity would favour them.
_STOP_WORDS = """a about after again all also am an and any anybody are as at be because been before being but by can could
did do does done each everybody everything few for from get had has have he her here his how i if in into is it its just let
like may me might more most much must my need no nobody not now of off on once one only or other our out over please same
several she should show since so some somebody something still such tell than that the their them then there these they this
those through to too under until up us very want was way we were what when where whether which while who whom whose why will
with without would yet you your"""
STOP_WORDS = frozenset(map(stem, _STOP_WORDS.split()))
# Words that people use as synonyms when they search for a tool.
_SYNONYM_GROUPS = """repo repository/org organization organisation/pr pull/delete remove destroy/create add new make
get read fetch show retrieve/update edit change modify set/run execute trigger start dispatch/stop cancel end
config configuration setting/doc document documentation/auth authentication authorization/current authenticated"""


def is_stop_word(word: str) -> bool:
    """Return True for a word that tells nothing about a tool."""
    return stem(word) in STOP_WORDS


def significant(listed: list[str]) -> list[str]:
    """Return the words that are not stop words; all of them if there is no other."""
    return [word for word in listed if not is_stop_word(word)] or listed


def _synonyms() -> dict[str, tuple[str, ...]]:
    groups = [list(map(stem, group.split())) for group in re.split(r"[/\n]", _SYNONYM_GROUPS)]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


SYNONYMS = _synonyms()
