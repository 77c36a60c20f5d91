"""What this user has trusted in projects' files, by digest: sources, and settings that loosen the user's own.

One file in the user's data folder, which only the user can read. A file that can't be read trusts nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gloveport.folders import data_folder

TRUST_FILE = "approved-sources.json"  # the name under which earlier versions already keep what users trust


def digest_of(exact: Mapping[str, Any]) -> str:
    """Return the digest of plain data; it changes with every value."""
    return hashlib.sha256(json.dumps(exact, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)  # str: dates and times of TOML


def trusted(digest: str, folder: Path | None = None) -> Mapping[str, Any] | None:
    """Return what was recorded with this digest when the user trusted it; None if the user never did."""
    found = _read(_file(folder)).get(digest)
    return found if isinstance(found, dict) else None


def ever_trusted(about: Mapping[str, Any], folder: Path | None = None) -> bool:
    """Return whether the user has trusted something that was recorded with these values, in whatever version."""
    entries = (entry for entry in _read(_file(folder)).values() if isinstance(entry, dict))
    return any(all(entry.get(key) == value for key, value in about.items()) for entry in entries)


def record(digest: str, about: Mapping[str, Any], folder: Path | None = None) -> None:
    """Record that the user trusts what has this digest; `about` says what that is."""
    file = _file(folder)
    _write(file, {**_read(file), digest: dict(about)})


def _file(folder: Path | None) -> Path:
    return (folder or data_folder()) / TRUST_FILE


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, entries: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # 0600 from the start
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(entries, out, indent=2, default=_plain)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
