"""The settings of sessions: `[sessions]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.config.layers import place_prefix
from gloveport.errors import OptionError

SESSIONS_KEYS = ("max_mb", "max_files", "max_sessions", "keep_days")


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """What a session may hold, how many an agent may have, and after how many days without use one is deleted."""

    max_mb: int = 32
    max_files: int = 1000
    max_sessions: int = 100
    keep_days: float = 30.0


_BOUNDS: Mapping[str, tuple[type | tuple[type, ...], float, float, str]] = {
    "max_mb": (int, 1, 1024, "a whole number"),
    "max_files": (int, 1, 100_000, "a whole number"),
    "max_sessions": (int, 1, 10_000, "a whole number"),
    "keep_days": ((int, float), 1, 36_500, "a number"),
}


def sessions_from(values: Mapping[str, Any], origins: Mapping[str, str]) -> SessionsConfig:
    """Return the settings of sessions; raise OptionError with the place of a value that can't be one."""
    for key, value in values.items():
        kind, least, most, expected = _BOUNDS[key]
        if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
            place = place_prefix(origins, f"sessions.{key}")
            raise OptionError(
                f"{place}{key} of [sessions] must be {expected} from {least:,} to {most:,}, not {value!r:.60}"
            )
    return SessionsConfig(**values)
