"""An entrance: a way by which hostile input gets into the host, and what the host must say when it refuses it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.stall.recipe import expand
from fuzz.target import BrokenPromise
from gloveport.errors import CODES, GloveportError
from gloveport.types import Outcome

MIB = 1024 * 1024
Document = Mapping[str, Any]
Attack = Callable[[], Awaitable["Refusal | Elsewhere | None"]]
Take = Callable[[Document], Awaitable[Attack]]
"""Gets ready to give an input to the host, and returns the coroutine function that does it. Only that is measured."""


def use_empty_folders() -> None:
    """Let the host find nothing cached, accepted or trusted; what it stored before is gone."""
    folder = Path.cwd() / "folders"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        os.environ[name] = str(folder / name)


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
class Elsewhere:
    """The result of an attack on a loop of another process: its longest gap, with the stacks, and the refusal."""

    seconds: float
    stacks: str
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class Entrance:
    """The attribute ENTRANCE of `module`. `open` starts the host and yields `Take`, which gets what `prepared` returns.

    `honest` is an input that must succeed: it warms the host up, and is given again after every hostile one.
    """

    name: str
    module: str
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
