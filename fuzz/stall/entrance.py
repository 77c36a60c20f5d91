"""An entrance: a way by which hostile input gets into the host, and what the host must say when it refuses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from fuzz.stall.recipe import expand
from fuzz.target import BrokenPromise
from gloveport.errors import CODES, GloveportError
from gloveport.types import Outcome

MIB = 1024 * 1024
Document = Mapping[str, Any]
Attack = Callable[[], Awaitable["Refusal | None"]]
Take = Callable[[Document], Awaitable[Attack]]
"""Gets ready to give an input to the host, and returns the coroutine function that does it. Only that is measured."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How the host refused an input: a code and a message."""

    code: str
    message: str

    @classmethod
    def of(cls, error: GloveportError) -> Refusal:
        """Return the refusal that an error stands for."""
        return cls(error.code, error.message)

    @classmethod
    def ending(cls, outcome: Outcome) -> Refusal | None:
        """Return the error that ended a run, or None."""
        return None if outcome.error is None else cls(outcome.error.code, outcome.error.message)

    def check(self) -> None:
        """Raise BrokenPromise unless the refusal is a clear error."""
        if self.code not in CODES or self.code == "internal-error" or not self.message.strip():
            raise BrokenPromise(f"the input was refused with {self.code!r}: {self.message!r:.300}")


@dataclass(frozen=True, slots=True)
class Entrance:
    """`open` starts the host and yields `Take`, which gets inputs whose recipes `prepared` has expanded.

    `honest` is an input that must succeed: it warms the host up, and is given again after every hostile one.
    """

    name: str
    open: Callable[[], AbstractAsyncContextManager[Take]]
    seeds: Mapping[str, Document]
    honest: Document
    words: tuple[str, ...]
    max_bytes: int

    def prepared(self, document: Any) -> Document:
        """Return the document with every recipe in it expanded; raises ValueError if it is none."""
        if not isinstance(document, dict):
            raise ValueError("an input is an object")
        recipes = {name: value for name, value in document.items() if isinstance(value, (str, list, dict))}
        return {**document, **{name: expand(value, self.max_bytes) for name, value in recipes.items()}}
