"""Plans: the writes that a program would make, found by running it with its writes held back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write that was held back. `tool` is an address, `definition` its fingerprint, `line` the line of the program.

    `unknown` are the paths of the arguments that contain a made-up result of an earlier write, as far as that can be seen.
    `after` are the private and untrusted reads after which it could send data out.
    """

    call: int
    tool: str
    args: Mapping[str, Any]
    definition: str
    line: int | None = None
    unknown: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes that a program would make, in order. `notes` say what could not be known.

    It can be approved until `expires` (seconds since 1970).
    """

    run: str
    agent: str
    writes: tuple[PlannedWrite, ...]
    expires: float
    notes: tuple[str, ...] = ()
