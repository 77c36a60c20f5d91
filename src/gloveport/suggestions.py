"""Find the known words closest to an unknown one, and word the question "did you mean …?".

Small vocabularies (options, keys, parameters) are compared word by word. A catalog of thousands of tools is filtered by a
`Sieve` first, so that the edit distance is computed for a few words only.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Iterable, Sequence

MAX_SUGGESTIONS = 3
MAX_WORD_CHARS = 64  # a program may name anything: nothing is compared with a longer word
MAX_WORDS = 160  # of a vocabulary that is compared word by word
MIN_PREFIX_CHARS = 3
MIN_STEM_CHARS = 4
MAX_SIEVED_WORDS = 16
MASK_BITS = 251  # prime, so that pairs of letters spread over all bits
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the question that names the known words similar to `word`; None when there are none."""
    found = similar(word, known)
    return question(found) if found else None


def question(names: Sequence[str]) -> str:
    """Return the question that offers these names: "did you mean `a`, `b` or `c`?"."""
    *others, last = [f"`{name}`" for name in names]
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def similar(word: str, known: Iterable[str], limit: int = MAX_SUGGESTIONS) -> tuple[str, ...]:
    """Return the known words that `word` may stand for: misspelt, or else cut short or incomplete, the closest first."""
    if len(word) > MAX_WORD_CHARS:
        return ()
    words = [other for other in itertools.islice(known, MAX_WORDS) if len(other) <= MAX_WORD_CHARS]
    if found := near(word, words, limit):
        return found
    parts = _parts(word)
    related = [other for other in words if _extends(word, other) or _shares_parts(parts, _parts(other))]
    return tuple(sorted(related, key=lambda other: abs(len(other) - len(word)))[:limit])


def near(word: str, known: Iterable[str], limit: int = MAX_SUGGESTIONS) -> tuple[str, ...]:
    """Return the known words that `word` may be a misspelling of, the closest first."""
    if len(word) > MAX_WORD_CHARS:
        return ()
    folded = fold(word)
    most = tolerated(folded)
    found = [(distance(folded, fold(other), most), other) for other in known]
    return tuple(other for apart, other in sorted(found) if apart <= most)[:limit]


def _extends(word: str, other: str) -> bool:
    """Whether one of the words begins with the other: `claude` and `claude-code`."""
    shortest = min(len(word), len(other))
    if len(word) <= len(other):
        return shortest >= MIN_PREFIX_CHARS and other.startswith(word)
    return shortest >= MIN_STEM_CHARS and word.startswith(other)


def _parts(word: str) -> set[str]:
    return {part.lower() for part in _PARTS.findall(word)}


def _shares_parts(one: set[str], two: set[str]) -> bool:
    """Whether one of the words has all parts of the other: `max_bytes` and `max_response_bytes`."""
    fewer = min(one, two, key=len)
    return (one <= two or two <= one) and sum(map(len, fewer)) >= MIN_PREFIX_CHARS


def fold(word: str) -> str:
    """Return the word without what people get wrong first: case, underscores and dashes."""
    return word.lower().replace("_", "").replace("-", "")


def tolerated(word: str) -> int:
    """Return how many edits away from a word of this length another may be and still be meant."""
    return 1 if len(word) <= 3 else 2 if len(word) <= 8 else 3


def distance(one: str, other: str, most: int) -> int:
    """Return the edit distance, where a swap of two neighbouring letters counts once; `most + 1` for all above `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    if not one:
        return len(other)
    # Hyyrö's bit-parallel algorithm: each integer holds one column of the table, a bit for each letter of `one`.
    last = 1 << (len(one) - 1)
    all_bits = 2 * last - 1
    places: dict[str, int] = {}
    for index, letter in enumerate(one):
        places[letter] = places.get(letter, 0) | 1 << index
    apart, rises, falls, diagonal, matched_before = len(one), all_bits, 0, 0, 0
    for left, letter in enumerate(other, 1 - len(other)):
        matched = places.get(letter, 0)
        swapped = ((~diagonal & matched) << 1) & matched_before
        diagonal = (((matched & rises) + rises) ^ rises) | matched | falls | swapped
        to_right_up, to_right_down = falls | (~(diagonal | rises) & all_bits), diagonal & rises
        apart += bool(to_right_up & last) - bool(to_right_down & last)
        if apart + left > most:  # each of the `-left` letters that follow takes one away at most
            return most + 1
        to_right_up, to_right_down = to_right_up << 1 | 1, to_right_down << 1
        rises, falls = (to_right_down | ~(diagonal | to_right_up)) & all_bits, to_right_up & diagonal & all_bits
        matched_before = matched
    return min(apart, most + 1)


class Sieve:
    """Finds the words that share the most pairs of letters with a given one, in about 0.1 µs for each word it holds."""

    def __init__(self, words: Sequence[str]) -> None:
        self._masks = [_mask(word) for word in words]
        self._sizes = [bits.bit_count() for bits in self._masks]

    def like(self, word: str, limit: int = MAX_SIEVED_WORDS) -> list[int]:
        """Return the indices of the likeliest words."""
        wanted = _mask(word)
        size = wanted.bit_count()
        shares = [
            (wanted & bits).bit_count() / (size + other) for bits, other in zip(self._masks, self._sizes, strict=True)
        ]
        return heapq.nlargest(limit, range(len(shares)), key=shares.__getitem__)


def _mask(word: str) -> int:
    """Return the word's pairs of letters as bits of one integer: two words share about as many bits as pairs."""
    bits = 0
    for one, two in zip(f"^{word}", f"{word}$", strict=True):
        bits |= 1 << ((ord(one) * 31 + ord(two)) % MASK_BITS)
    return bits
