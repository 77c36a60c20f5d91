"""Which settings of a project's file loosen the user's own, and whether the user has trusted exactly those (M6).

A project's file comes with a repository that somebody else may have written. It may tighten what the user has set. What
loosens it has no effect until the user trusts it, and neither has a setting of which this module does not know that it
tightens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gloveport.limits import Limits
from gloveport.trust_store import digest_of, record, trusted

STRENGTHS = ("none", "kernel", "full")
PRESETS = ("strict", "standard", "open")
DEFAULTS: Mapping[tuple[str, str], Any] = {
    **{("limits", name): value for name, value in asdict(Limits()).items()},
    ("sandbox", "minimum"): "kernel",
    ("policy", "preset"): "standard",
    ("sandbox", "allow_eval"): False,
    ("sandbox", "allow_wasm"): False,
}


@dataclass(frozen=True, slots=True)
class LooseningSetting:
    """A setting of a project's file that loosens the user's: its table, key, value and place, and what it loosens."""

    table: str
    key: str
    value: Any
    place: str
    reason: str

    @property
    def name(self) -> str:
        """The key with its table: `limits.memory_mb`."""
        return f"{self.table}.{self.key}"

    @property
    def shown(self) -> str:
        """The setting as it would stand in a file, in printable characters: `limits.memory_mb = 4096`."""
        return f"{self.name!a} = {self.value!a:.80}".replace("'", "", 2)


def reason_of(key: tuple[str, str], value: Any, yours: Any) -> str | None:
    """Return how a project's value loosens the user's (None where the user has none); None when it only tightens."""
    yours = DEFAULTS.get(key) if yours is None else yours
    if yours is not None and type(value) is type(yours) and value == yours:
        return None
    if key[0] == "limits" and _is_number(value) and _is_number(yours):
        return None if value <= yours else f"yours is {yours:,}"
    if key == ("sandbox", "minimum") and value in STRENGTHS and yours in STRENGTHS:
        return None if STRENGTHS.index(value) > STRENGTHS.index(yours) else f"yours is {yours}, which is stronger"
    if key == ("policy", "preset") and value in PRESETS and yours in PRESETS:
        return None if PRESETS.index(value) < PRESETS.index(yours) else f"yours is {yours}, which is stricter"
    if key == ("packages", "allow") and isinstance(value, list) and (yours is None or isinstance(yours, list)):
        return None if yours is None or set(map(str, value)) <= set(map(str, yours)) else "yours allows fewer packages"
    if key in (("sandbox", "allow_eval"), ("sandbox", "allow_wasm")) and isinstance(value, bool):
        return "yours is off" if value else None
    return f"yours is {yours!r:.60}" if yours is not None else "you have not set it"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def are_trusted(settings: Path, found: Sequence[LooseningSetting]) -> bool:
    """Return whether the user has trusted exactly these settings of this file."""
    return trusted(_digest(settings, found)) is not None


def trust_settings(settings: Path, found: Sequence[LooseningSetting]) -> None:
    """Record that the user lets these settings of this file take effect. Any other value of one of them asks again."""
    record(_digest(settings, found), {"settings": str(settings), "loosens": {each.name: each.value for each in found}})


def _digest(settings: Path, found: Sequence[LooseningSetting]) -> str:
    return digest_of({"settings": os.path.realpath(settings), "loosens": {each.name: each.value for each in found}})
