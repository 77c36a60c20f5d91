"""How a write is undone: the inverse that its tool declares, and what became of the writes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

UndoStatus = Literal["undone", "undone-before", "no-inverse", "unknown", "denied", "failed"]
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """The inverse of a tool: a call of `tool` (an address) whose arguments come from the call that it undoes.

    Each argument is a constant, or a place: `("result", "id")`, `("args", "owner")`.
    """

    tool: str
    places: Mapping[str, Place]
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UndoneWrite:
    """What became of one write: `tool` is its address, `undo` the inverse that was called, with `undo_args`.

    `problem` says why it was not undone.
    """

    call: int
    tool: str
    args: Any
    status: UndoStatus
    undo: str | None = None
    undo_args: Mapping[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Rollback:
    """What became of the writes of a run, in the order in which they were undone: the last one first."""

    run: str
    writes: tuple[UndoneWrite, ...]

    @property
    def ok(self) -> bool:
        """True when every write is undone."""
        return all(write.status in ("undone", "undone-before") for write in self.writes)
