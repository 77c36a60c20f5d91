"""A target: something that must take any bytes, and the promise that it makes about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"
SOURCE = Path(__file__).parents[1] / "src" / "gloveport"

Mutate = Callable[[bytes, bytes, Random], bytes]
"""A new input made of one that is known, with another at hand to take pieces from."""


@dataclass(frozen=True)
class Target:
    """`judge` returns for an input that was taken or properly refused, and raises anything else for a broken promise."""

    name: str
    judge: Callable[[bytes], None]
    mutate: Mutate
    seeds: tuple[bytes, ...]
    watched: tuple[str, ...]  # paths below src/gloveport whose ways are followed; none: every input is as good as another
    most_bytes: int = 16 * 1024
    most_seconds: float = 5.0  # of CPU time for one input, while its ways are followed; what hangs takes for ever
    test_seconds: float = 1.5
    close: Callable[[], None] = lambda: None

    def corpus(self) -> list[bytes]:
        """The seeds, and the inputs that are kept for it: those that went new ways, and every one that was a find."""
        kept = sorted((CORPUS / self.name).glob("*"))
        return [*self.seeds, *(path.read_bytes() for path in kept)]


class BrokenPromise(AssertionError):
    """An input for which a target did not do as it says."""
