"""Did you mean …?"""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST, MOST = 3, 3  # of the beginning of a word, and how many are named


def did_you_mean(word: str, words: Iterable[str]) -> str | None:
    """The question that names up to three near words, or else those that begin so; None when there is none."""
    from gloveport.suggestions import near

    known = list(words)
    begun = [other for other in known if len(word) >= SHORTEST and other.startswith(word)]
    found = [f"`{other}`" for other in near(word, known) or begun[:MOST]]
    if not found:
        return None
    return f"did you mean {', '.join(found[:-1])}{' or ' if found[1:] else ''}{found[-1]}?"
