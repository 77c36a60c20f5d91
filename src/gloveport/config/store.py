"""The settings of the store: `[store]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.config.layers import place_prefix
from gloveport.errors import OptionError

STORE_KEYS = ("path", "keep_days", "max_mb", "encrypt", "key")
DEFAULT_KEEP_DAYS = 90.0
DEFAULT_MAX_MB = 1024.0
MAX_KEEP_DAYS = 36_500
MAX_STORE_MB = 1_000_000
KEY_PLACE = re.compile(r"(keyring|file|env):.{1,1000}")


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """What the store keeps: runs that have ended for so many days, and about so many megabytes.

    With `encrypt`, contents are encrypted; `key` is where the key is, as `keyring:NAME`, `file:PATH` or `env:NAME`.
    """

    keep_days: float = DEFAULT_KEEP_DAYS
    max_mb: float = DEFAULT_MAX_MB
    encrypt: bool = False
    key: str | None = None


def _with_home(key: str | None) -> str | None:
    kind, _, name = (key or "").partition(":")
    return f"file:{Path(name).expanduser()}" if kind == "file" else key


def store_from(values: Mapping[str, Any], origins: Mapping[str, str]) -> StoreConfig:
    """Return the settings of the store; raise OptionError with the place of a value that can't be one."""

    def number(key: str, default: float, least: float, most: int) -> float:
        value = values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            place = place_prefix(origins, f"store.{key}")
            raise OptionError(f"{place}{key} of [store] must be a number from {least:g} to {most:,}, not {value!r:.60}")
        return float(value)

    encrypt, key = values.get("encrypt", False), values.get("key")
    if not isinstance(encrypt, bool):
        place = place_prefix(origins, "store.encrypt")
        raise OptionError(f"{place}encrypt of [store] must be true or false, not {encrypt!r:.60}")
    if key is not None and not (isinstance(key, str) and KEY_PLACE.fullmatch(key)):
        place = place_prefix(origins, "store.key")
        raise OptionError(f"{place}key of [store] must be keyring:NAME, file:PATH or env:NAME, not {key!r:.60}")
    return StoreConfig(
        encrypt=encrypt,
        key=_with_home(key),
        keep_days=number("keep_days", DEFAULT_KEEP_DAYS, 1, MAX_KEEP_DAYS),
        max_mb=number("max_mb", DEFAULT_MAX_MB, 16, MAX_STORE_MB),
    )
