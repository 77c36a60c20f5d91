"""A target: code that must accept any bytes, and the promise that it makes about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"
SOURCE = Path(__file__).parents[1] / "src" / "gloveport"

Mutate = Callable[[bytes, bytes, Random], bytes]
"""Makes a new input from a known one, and may take pieces of a second one."""


@dataclass(frozen=True)
class Target:
    """`judge` returns if the code accepts an input or refuses it properly, and raises if it breaks its promise."""

    name: str
    judge: Callable[[bytes], None]
    mutate: Mutate
    seeds: tuple[bytes, ...]
    watched: tuple[str, ...]  # paths below src/gloveport whose coverage guides the campaign; may be empty
    max_bytes: int = 16 * 1024
    max_seconds: float = 5.0  # of CPU time for one input with coverage on: enough unless the code hangs
    test_seconds: float = 1.5
    close: Callable[[], None] = lambda: None
    went_further: Callable[[], bool] = lambda: False  # whether the last input is worth mutating, apart from its coverage

    def corpus(self) -> list[bytes]:
        """Return the seeds and the kept inputs: those that took new paths, and every find."""
        kept = sorted((CORPUS / self.name).glob("*"))
        return [*self.seeds, *(path.read_bytes() for path in kept)]


class BrokenPromise(AssertionError):
    """A target did not keep its promise for an input."""
