"""The limits of a run. They are apart from the other types, because the settings are read without those."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from gloveport.errors import OptionError

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. They are enforced from outside the sandbox; waiting for people does not count."""

    wall_seconds: float = 60
    cpu_seconds: float = 30
    memory_mb: int = 256
    max_calls: int = 1000
    max_concurrent_calls: int = 128
    max_log_bytes: int = 256 * KIB
    max_result_bytes: int = 8 * MIB
    max_frame_bytes: int = 16 * MIB
    max_code_bytes: int = 1 * MIB

    def __post_init__(self) -> None:
        for item in fields(self):
            _check_limit(item.name, getattr(self, item.name), whole=item.type == "int")

    def with_(self, **changes: Any) -> Limits:
        """Return a copy with some limits changed. Raise OptionError for an unknown name or an impossible value."""
        if not changes:
            return self
        known = [item.name for item in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise OptionError(f"there is no limit `{unknown[0]}`", hint=f"the limits are {', '.join(known)}")
        return replace(self, **changes)


MIN_LIMITS = {"memory_mb": 16, "max_log_bytes": 0, "max_calls": 0, "max_frame_bytes": 64 * KIB}
MAX_LIMITS = {
    "wall_seconds": 30 * 86400,
    "cpu_seconds": 30 * 86400,
    "memory_mb": 1024 * 1024,
    "max_calls": 10_000_000,
    "max_concurrent_calls": 100_000,
    "max_log_bytes": 256 * MIB,
    "max_result_bytes": 256 * MIB,
    "max_frame_bytes": 256 * MIB,
    "max_code_bytes": 8 * MIB,
}


def _check_limit(name: str, value: object, *, whole: bool) -> None:
    kind = "a whole number" if whole else "a number of seconds"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise OptionError(f"{name} must be {kind}, not {value!r}", hint=f"for example {name}={'64' if whole else '2.5'}")
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f"{name} must be finite, not {value!r}")
    smallest = MIN_LIMITS.get(name, 1 if whole else 0)
    if value < smallest or (not whole and value <= 0):
        least = f"at least {smallest}" if whole else "more than 0"
        raise OptionError(f"{name} must be {least}, not {value!r}")
    if value > MAX_LIMITS[name]:
        raise OptionError(f"{name} must be at most {MAX_LIMITS[name]:,}, not {value!r:.40}")
