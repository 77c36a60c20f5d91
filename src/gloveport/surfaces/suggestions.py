"""Did you mean …?"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str | None:
    """The question that names up to three near words; None when none is near."""
    from gloveport.catalog.nearest import near

    found = [f"`{other}`" for other in near(word, words)]
    if not found:
        return None
    return f"did you mean {', '.join(found[:-1])}{' or ' if found[1:] else ''}{found[-1]}?"
