"""The list of all entrances, by name."""

from __future__ import annotations

from fuzz.stall import definitions, frames, programs
from fuzz.stall.entrance import Entrance

ENTRANCES: dict[str, Entrance] = {module.ENTRANCE.name: module.ENTRANCE for module in (programs, definitions, frames)}
