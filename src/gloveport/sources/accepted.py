"""What was accepted of a definition that lies outside: when a tool's fingerprint changes, it is suspended (M4).

A definition is accepted when it is first seen. One that a user keeps in a file of his own is his to change, and is not
compared.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gloveport.errors import OptionError


class Seen(msgspec.Struct, frozen=True):
    """The fingerprints of a source's tools as they were accepted, and the shelf that has their definitions."""

    tools: dict[str, str]
    shelf: str = ""


class Accepted:
    """The accepted definitions, one small file for each source, in a folder of the user's data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def changed(self, key: str, now: Mapping[str, str], shelf: str = "") -> frozenset[str]:
        """The tools whose definition is no longer the accepted one. What is seen for the first time is accepted."""
        seen = self.find(key)
        if seen is None:
            self.accept(key, now, shelf)
            return frozenset()
        changed = frozenset(address for address, print_ in now.items() if seen.tools.get(address, print_) != print_)
        if not changed and seen.tools != now:  # new tools, or some that are gone: nothing that was shown has changed
            self.accept(key, {**seen.tools, **now}, shelf)
        return changed

    def accept(self, key: str, now: Mapping[str, str], shelf: str = "") -> None:
        """Takes the definition as it is now."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(Seen(dict(now), shelf)))
        os.replace(name, path)

    def find(self, key: str) -> Seen | None:
        """What was accepted of a source, or None."""
        path = self._path(key)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Seen)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            # Not silently accepted anew: whoever can damage the file could otherwise wave a change through.
            raise OptionError(f"what was accepted of a source can't be read: {error}", hint=f"delete {path}") from None

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
