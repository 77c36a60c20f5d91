"""The list of all targets. `make fuzz` and the tests run each of them."""

from __future__ import annotations

from fuzz import definitions, guests, monty, programs, run_attempts, settings, urls, wire
from fuzz.stall import targets as stall
from fuzz.target import Target

TARGETS: tuple[Target, ...] = (
    *wire.TARGETS,
    *run_attempts.TARGETS,
    *monty.TARGETS,
    *programs.TARGETS,
    *definitions.TARGETS,
    *urls.TARGETS,
    *settings.TARGETS,
    *guests.TARGETS,
    *stall.TARGETS,
)
