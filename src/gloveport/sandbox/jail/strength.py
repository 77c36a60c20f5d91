"""What the jail on this machine consists of, layer by layer, and how strong that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the fork server starts 10 ms sooner without it
    from gloveport.types import Strength

NEEDS: Mapping[Strength, frozenset[str]] = {
    "full": frozenset({"landlock", "seccomp", "namespaces", "root"}),
    "kernel": frozenset({"landlock", "seccomp"}),
    "none": frozenset(),
}
"""The layers that make a strength."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the jail: whether it was put in force when tried, what that showed, and what would bring it."""

    name: str
    in_force: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class JailReport:
    """The layers, as tried out by the fork server when it started, and the strength that they add up to."""

    strength: Strength
    layers: tuple[Layer, ...]

    def layer(self, name: str) -> Layer:
        """The layer of this name."""
        return next(layer for layer in self.layers if layer.name == name)


def holds_forks(report: JailReport) -> bool:
    """True when the jail holds an engine that is native code to its guest, as a forked Python with ctypes is.

    In a jail of `kernel` strength guests share a user and a PID namespace with others; seccomp alone would keep them
    from each other then, and a boundary around native code should not be one line thick.
    """
    return report.strength == "full" or (report.strength == "kernel" and report.layer("signal scope").in_force)


def judge(layers: Iterable[Layer]) -> JailReport:
    """The report on these layers: the greatest strength that has all it needs."""
    layers = tuple(layers)
    holding = {layer.name for layer in layers if layer.in_force}
    strength: Strength = next(name for name in NEEDS if holding >= NEEDS[name])
    return JailReport(strength, layers)
