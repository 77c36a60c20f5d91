"""The layers of the jail on this machine, and the strength they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the fork server starts 10 ms sooner without it
    from gloveport.types import Strength

REQUIRED_LAYERS: Mapping[Strength, frozenset[str]] = {
    "full": frozenset({"landlock", "seccomp", "namespaces", "root"}),
    "kernel": frozenset({"landlock", "seccomp"}),
    "none": frozenset(),
}
"""The layers that each strength requires, the strongest first."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the jail: whether a probe could apply it, what the probe found, and how to get it when it is missing."""

    name: str
    in_force: bool
    detail: str
    fix: str | None = None


STRENGTH_MEANING: dict[Strength, str] = {
    "full": "full: namespaces, a root filesystem of its own, Landlock and seccomp",
    "kernel": "kernel: Landlock and seccomp, without namespaces",
    "none": "none: Landlock or seccomp is missing",
}


@dataclass(frozen=True, slots=True)
class JailReport:
    """The layers, as the fork server probed them at its start, and the strength they add up to."""

    strength: Strength
    layers: tuple[Layer, ...]

    def layer(self, name: str) -> Layer:
        """Return the layer of this name."""
        return next(layer for layer in self.layers if layer.name == name)


def holds_native_code(report: JailReport) -> bool:
    """Return whether the jail is strong enough for a guest that runs native code, as a forked Python with ctypes does.

    At `kernel` strength guests share a user and a PID namespace. Without Landlock's signal scope, seccomp alone would
    separate them, and native code must be held by more than one layer.
    """
    return report.strength == "full" or (report.strength == "kernel" and report.layer("signal scope").in_force)


def assess(layers: Iterable[Layer]) -> JailReport:
    """Return the report on these layers, with the greatest strength whose required layers are all in force."""
    layers = tuple(layers)
    holding = {layer.name for layer in layers if layer.in_force}
    strength: Strength = next(name for name in REQUIRED_LAYERS if holding >= REQUIRED_LAYERS[name])
    return JailReport(strength, layers)
