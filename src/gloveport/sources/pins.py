"""What was accepted of a definition that lies outside: when a tool's fingerprint changes, it is suspended (M4).

A definition is accepted when it is first seen. One that a user keeps in a file of his own settings is his to change, and is
not compared; one that a project's settings name came with the project.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from gloveport.errors import OptionError


class Seen(msgspec.Struct, frozen=True):
    """The fingerprints of a source's tools as they were accepted, and the shelf that has their definitions.

    Where there is no shelf, `definitions` has the description and the schemas of each.
    """

    tools: dict[str, str]
    shelf: str = ""
    definitions: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {}


class Accepted:
    """The accepted definitions, one small file for each source, in a folder of the user's data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def changed(self, key: str, now: Seen, writes: frozenset[str] = frozenset()) -> frozenset[str]:
        """The tools whose definition is not the accepted one. A source that is seen for the first time is accepted.

        So are tools that are new in it, unless they write.
        """
        seen = self.find(key)
        if seen is None:
            self.accept(key, now)
            return frozenset()
        changed = frozenset(address for address, print_ in now.tools.items() if seen.tools.get(address, print_) != print_)
        changed |= writes - seen.tools.keys()
        new = {address: print_ for address, print_ in now.tools.items() if address not in seen.tools.keys() | changed}
        if new or (not changed and seen.shelf != now.shelf):
            # What is gone stays known: when it comes back it must be what it was.
            together = {
                **{address: now.definitions[address] for address in new if address in now.definitions},
                **seen.definitions,
            }
            self.accept(key, Seen({**seen.tools, **new}, seen.shelf if changed else now.shelf, together))
        return changed

    def accept(self, key: str, now: Seen) -> None:
        """Takes the definition as it is now."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(now))
            os.replace(name, path)
        except OSError as error:
            raise OptionError(f"what was accepted can't be kept in {path.parent}: {error.strerror}") from None

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
